// SPDX-License-Identifier: Apache-2.0

package cursor

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/moraine-store/moraine/pkg/lifecycle/cursor/cursorpb"
)

const walksPrefix = "walks/"

// Walk is the checkpoint of a walk under way over a source branch.
type Walk struct {
	RepositoryUID, BranchUID string
	Began                    int64  // the frozen time of the pass that began it
	Head                     Point  // what is walked
	After                    string // the last logical key that the walk is done with; "": none yet
	RuleSetHash              [32]byte
	PromotedHash             [32]byte
}

// Walk returns the checkpoint of the walk over a source; false means that none is under way.
func (s *Store) Walk(ctx context.Context, repositoryUID, branchUID string) (Walk, bool, error) {
	if err := checkSource(repositoryUID, branchUID); err != nil {
		return Walk{}, false, invalid("%v", err)
	}
	return get(ctx, s, Walk{RepositoryUID: repositoryUID, BranchUID: branchUID}.key(), decodeWalk)
}

// Walks yields the walks under way by the UIDs of repository and branch. One that is malformed is yielded as its error, and does not end the sequence; any other error does.
func (s *Store) Walks(ctx context.Context) iter.Seq2[Walk, error] {
	return scan(ctx, s, walksPrefix, decodeWalk)
}

// SaveWalk writes the checkpoint of a walk.
func (s *Store) SaveWalk(ctx context.Context, w Walk) error {
	return save(ctx, s, "walk", []Walk{w})
}

// RemoveWalk removes the checkpoint of a walk that has ended. It may be repeated.
func (s *Store) RemoveWalk(ctx context.Context, repositoryUID, branchUID string) error {
	return s.remove(ctx, "walk", Walk{RepositoryUID: repositoryUID, BranchUID: branchUID}.key())
}

func (w Walk) key() string { return walksPrefix + w.RepositoryUID + "/" + w.BranchUID }

func (w Walk) check() error {
	return cmp.Or(checkSource(w.RepositoryUID, w.BranchUID), checkTime("time of beginning", w.Began), w.Head.check("head"))
}

func (w Walk) encode() ([]byte, error) {
	head, err := w.Head.message("head")
	if err := cmp.Or(w.check(), err); err != nil {
		return nil, invalid("%v", err)
	}
	return seal(&cursorpb.WalkData{
		Version: version, RepositoryUid: w.RepositoryUID, BranchUid: w.BranchUID, Began: w.Began, Head: head, After: []byte(w.After),
		RuleSetHash: w.RuleSetHash[:], PromotedHash: w.PromotedHash[:],
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
	w := Walk{m.RepositoryUid, m.BranchUid, m.Began, head, string(m.After), ruleSet, promoted}
	return w, cmp.Or(headErr, ruleSetErr, promotedErr, w.check())
}
