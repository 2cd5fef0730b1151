// SPDX-License-Identifier: Apache-2.0

package cursor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor/cursorpb"
)

const deferredPrefix = "deferred/"

// Deferred is an object to look at again at a known time, such as when the lock ends that bars its removal.
type Deferred struct {
	Shard                    int
	Due                      int64 // when to look again
	RepositoryUID, BranchUID string
	Key                      graveler.Key // of the entry
	LogicalKey               string
	Kind                     string // of the action that was held back
	Identity                 []byte // of the object's content
	Blocked                  *Block // why it could not be carried out when it was due; nil: that is not so
}

// Defer writes what is to be looked at again. Writing the same again changes nothing: due, branch, key, kind and identity make
// the key of the record, and what it is blocked by does not.
func (s *Store) Defer(ctx context.Context, deferred ...Deferred) error {
	return save(ctx, s, "deferred object", deferred)
}

// Due yields what of a shard is due at now, the earliest first, in pages as the store reads them; what is not due costs nothing.
// What it has yielded may be removed meanwhile. A record that is malformed is yielded as its error, and does not end the
// sequence; any other error does.
func (s *Store) Due(ctx context.Context, shard int, now int64) iter.Seq2[Deferred, error] {
	if err := checkShard(shard); err != nil {
		return failed[Deferred](invalid("%v", err))
	}
	return func(yield func(Deferred, error) bool) {
		prefix := deferredIn(shard)
		end := prefix + fmt.Sprintf("%016x", uint64(max(now, -1))+1)
		err := s.each(ctx, prefix, func(key string, value []byte) bool {
			return key < end && yield(decodeDeferred(key, value))
		})
		if err != nil {
			yield(Deferred{}, err)
		}
	}
}

// AllDeferred yields what is deferred, due or not, by shard and due time, as Due does.
func (s *Store) AllDeferred(ctx context.Context) iter.Seq2[Deferred, error] {
	return scan(ctx, s, deferredPrefix, decodeDeferred)
}

// RemoveDeferred removes what has been looked at; what is not there is fine.
func (s *Store) RemoveDeferred(ctx context.Context, deferred ...Deferred) error {
	keys := make([]string, len(deferred))
	for i, d := range deferred {
		keys[i] = d.key()
	}
	return s.remove(ctx, "deferred object", keys...)
}

func deferredIn(shard int) string { return fmt.Sprintf("%s%02d/", deferredPrefix, shard) }

func (d Deferred) key() string {
	return fmt.Sprintf("%s%016x/%x", deferredIn(d.Shard), d.Due, d.hash())
}

// hash is SHA-256 of the tag "moraine lifecycle deferred 1" and then the UIDs of repository and branch, key, kind and identity,
// each preceded by its length as 8 bytes, big-endian. Contents that followed one another under a key, and are due at one time,
// must not replace each other's records.
func (d Deferred) hash() []byte {
	h := sha256.New()
	for _, part := range [][]byte{
		[]byte("moraine lifecycle deferred 1"), []byte(d.RepositoryUID), []byte(d.BranchUID), d.Key, []byte(d.Kind), d.Identity,
	} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum(nil)
}

func (d Deferred) check() error {
	switch {
	case d.LogicalKey == "":
		return errors.New("logical key is missing")
	case d.Kind == "" || !utf8.ValidString(d.Kind):
		return fmt.Errorf("%q is no kind of action", d.Kind)
	case len(d.Identity) == 0:
		return errors.New("identity is missing")
	}
	err := cmp.Or(checkShard(d.Shard), checkSource(d.RepositoryUID, d.BranchUID), checkTime("due time", d.Due), graveler.ValidateKey(d.Key))
	if d.Blocked != nil {
		err = cmp.Or(err, checkTime("blocked since", d.Blocked.Since))
	}
	return err
}

func (d Deferred) encode() ([]byte, error) {
	if err := d.check(); err != nil {
		return nil, invalid("%v", err)
	}
	return seal(&cursorpb.DeferredData{
		Version: version, Shard: uint32(d.Shard), Due: d.Due, RepositoryUid: d.RepositoryUID, BranchUid: d.BranchUID,
		Key: d.Key, LogicalKey: []byte(d.LogicalKey), Kind: d.Kind, Identity: d.Identity, Blocked: d.Blocked.message(),
	})
}

func decodeDeferred(key string, value []byte) (Deferred, error) {
	d, err := parseDeferred(value)
	if err == nil && d.key() != key {
		err = fmt.Errorf("holds the record of key %q", d.key())
	}
	if err != nil {
		return Deferred{}, Malformed(key, err)
	}
	return d, nil
}

func parseDeferred(value []byte) (Deferred, error) {
	m := &cursorpb.DeferredData{}
	if err := unseal(value, m); err != nil {
		return Deferred{}, err
	}
	d := Deferred{int(m.Shard), m.Due, m.RepositoryUid, m.BranchUid, m.Key, string(m.LogicalKey), m.Kind, m.Identity, parseBlock(m.Blocked)}
	return d, d.check()
}
