// SPDX-License-Identifier: Apache-2.0

package cursor

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"regexp"

	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor/cursorpb"
)

const walksPrefix = "walks/"

// shardsPattern is what follows the UIDs in the keys of walks over some shards.
var shardsPattern = regexp.MustCompile(`^[0-9a-f]{4}$`)

// Walk is what is remembered of the walks over a source branch.
type Walk struct {
	RepositoryUID, BranchUID string
	// Shards are those whose keys are walked: bit n is shard n, and 0 all of them. Walks over different shards know nothing of each other.
	Shards       uint16
	Began        int64  // the frozen time of the pass that began the walk under way; 0: none is
	Head         Point  // of the branch at that time
	After        string // the last logical key that the walk under way is done with; "": none yet
	RuleSetHash  [32]byte
	PromotedHash [32]byte
	// Last is when the last walk that has ended began; 0: none has.
	Last int64
	// Blocked is the first key that was due and could not be done, of those that the walk under way is done with or else of the
	// last one; nil: there was none.
	Blocked *Block
}

// Walk returns what is remembered of the walks over some shards of a source; false means that there was none yet.
func (s *Store) Walk(ctx context.Context, repositoryUID, branchUID string, shards uint16) (Walk, bool, error) {
	if err := checkSource(repositoryUID, branchUID); err != nil {
		return Walk{}, false, invalid("%v", err)
	}
	return get(ctx, s, Walk{RepositoryUID: repositoryUID, BranchUID: branchUID, Shards: shards}.key(), decodeWalk)
}

// Walks yields what is remembered of all walks, by the UIDs of repository and branch. One that is malformed is yielded as its
// error, and does not end the sequence; any other error does.
func (s *Store) Walks(ctx context.Context) iter.Seq2[Walk, error] {
	return scan(ctx, s, walksPrefix, decodeWalk)
}

// SaveWalk writes what is remembered of the walks over a source.
func (s *Store) SaveWalk(ctx context.Context, w Walk) error {
	return save(ctx, s, "walk", []Walk{w})
}

func (w Walk) key() string {
	key := walksPrefix + w.RepositoryUID + "/" + w.BranchUID
	if w.Shards != 0 {
		key += fmt.Sprintf("/%04x", w.Shards)
	}
	return key
}

func (w Walk) check() error {
	err := cmp.Or(checkSource(w.RepositoryUID, w.BranchUID), checkTime("time of beginning", w.Began), checkTime("time of the last one", w.Last), w.Head.check("head"))
	if w.Blocked != nil {
		err = cmp.Or(err, checkTime("blocked since", w.Blocked.Since))
	}
	return err
}

func (w Walk) encode() ([]byte, error) {
	head, err := w.Head.message("head")
	if err := cmp.Or(w.check(), err); err != nil {
		return nil, invalid("%v", err)
	}
	return seal(&cursorpb.WalkData{
		Version: version, RepositoryUid: w.RepositoryUID, BranchUid: w.BranchUID, Began: w.Began, Head: head, After: []byte(w.After),
		RuleSetHash: w.RuleSetHash[:], PromotedHash: w.PromotedHash[:], Shards: uint32(w.Shards), Last: w.Last, Blocked: w.Blocked.message(),
	})
}

func decodeWalk(key string, value []byte) (Walk, error) {
	w, err := parseWalk(value)
	if err == nil && w.key() != key {
		err = fmt.Errorf("holds the record of key %q", w.key())
	}
	if err != nil {
		return Walk{}, Malformed(key, err)
	}
	return w, nil
}

func parseWalk(value []byte) (Walk, error) {
	m := &cursorpb.WalkData{}
	if err := unseal(value, m); err != nil {
		return Walk{}, err
	}
	head, headErr := parsePoint("head", m.Head)
	ruleSet, ruleSetErr := hash("hash of the rule set", m.RuleSetHash)
	promoted, promotedErr := hash("hash of what is promoted", m.PromotedHash)
	if m.Shards > math.MaxUint16 {
		return Walk{}, fmt.Errorf("shards %x are not in [0,%d)", m.Shards, lifecycle.Shards)
	}
	w := Walk{m.RepositoryUid, m.BranchUid, uint16(m.Shards), m.Began, head, string(m.After), ruleSet, promoted, m.Last, parseBlock(m.Blocked)}
	return w, cmp.Or(headErr, ruleSetErr, promotedErr, w.check())
}
