// SPDX-License-Identifier: Apache-2.0

package cursor

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
)

const cursorsPrefix = "cursors/"

// Cursor is how far a shard has come.
type Cursor struct {
	Shard int
	// Time is the frozen time of the latest pass up to which all lanes of the shard have done everything that was due under these hashes.
	Time         int64
	RuleSetHash  [32]byte
	PromotedHash [32]byte
	// LastWalked is when the oldest of the last finished walks began, of the repositories whose names are in the shard.
	LastWalked int64
}

// Cursor returns the cursor of a shard; false means that there is none, which is a cold start.
func (s *Store) Cursor(ctx context.Context, shard int) (Cursor, bool, error) {
	if err := checkShard(shard); err != nil {
		return Cursor{}, false, invalid("%v", err)
	}
	return get(ctx, s, cursorKey(shard), decodeCursor)
}

// Cursors yields the cursors that there are, by shard. One that is malformed is yielded as its error, and does not end the
// sequence; any other error does.
func (s *Store) Cursors(ctx context.Context) iter.Seq2[Cursor, error] {
	return scan(ctx, s, cursorsPrefix, decodeCursor)
}

// SaveCursors writes cursors.
func (s *Store) SaveCursors(ctx context.Context, cursors ...Cursor) error {
	return save(ctx, s, "cursor", cursors)
}

func cursorKey(shard int) string { return fmt.Sprintf("%sshard-%02d", cursorsPrefix, shard) }

func (c Cursor) key() string { return cursorKey(c.Shard) }

// cursorData is the stored form.
type cursorData struct {
	Version      int    `json:"version"`
	Shard        int    `json:"shard_id"`
	Time         int64  `json:"ts_ns"`
	RuleSetHash  string `json:"rule_set_hash"`
	PromotedHash string `json:"promoted_hash"`
	LastWalked   int64  `json:"last_walked_ns,omitempty"`
}

func (c Cursor) encode() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, invalid("%v", err)
	}
	return json.Marshal(cursorData{
		version, c.Shard, c.Time, hex.EncodeToString(c.RuleSetHash[:]), hex.EncodeToString(c.PromotedHash[:]), c.LastWalked,
	})
}

func (c Cursor) check() error {
	return cmp.Or(checkShard(c.Shard), checkTime("ts_ns", c.Time), checkTime("last_walked_ns", c.LastWalked))
}

func decodeCursor(key string, value []byte) (Cursor, error) {
	c, err := parseCursor(value)
	if err == nil && c.key() != key {
		err = fmt.Errorf("holds the cursor of shard %d", c.Shard)
	}
	if err != nil {
		return Cursor{}, Malformed(key, err)
	}
	return c, nil
}

func parseCursor(value []byte) (Cursor, error) {
	var d cursorData
	err := decodeObject(value, map[string]any{
		"version": &d.Version, "shard_id": &d.Shard, "ts_ns": &d.Time, "rule_set_hash": &d.RuleSetHash, "promoted_hash": &d.PromotedHash, "last_walked_ns": &d.LastWalked,
	}, "last_walked_ns")
	if err != nil {
		return Cursor{}, err
	}
	if d.Version != version {
		return Cursor{}, fmt.Errorf("has version %d, expected %d", d.Version, version)
	}
	ruleSet, ruleSetErr := hexHash("rule_set_hash", d.RuleSetHash)
	promoted, promotedErr := hexHash("promoted_hash", d.PromotedHash)
	c := Cursor{d.Shard, d.Time, ruleSet, promoted, d.LastWalked}
	return c, cmp.Or(ruleSetErr, promotedErr, c.check())
}

func hexHash(what, digits string) ([32]byte, error) {
	b, err := hex.DecodeString(digits)
	if err != nil {
		return [32]byte{}, fmt.Errorf("%s %q is not hexadecimal", what, digits)
	}
	return hash(what, b)
}
