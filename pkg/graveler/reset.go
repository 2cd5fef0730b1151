// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// ResetParams says how to move a head to a ref.
type ResetParams struct {
	Actor string
	// AllowDirty keeps uncommitted changes, on top of the new head.
	AllowDirty bool
}

// alreadyThere is ErrNoChanges in the words of a reset, which commits nothing in any case.
type alreadyThere struct{}

func (alreadyThere) Error() string        { return "already there" }
func (alreadyThere) Is(target error) bool { return target == ErrNoChanges }

// Reset makes the commit ref the head of a branch. The commits that the branch reaches no more stay, and its log names them. It returns
// ErrDirtyBranch where there are uncommitted changes and they are not allowed, and ErrNoChanges where ref is the head.
func (g *Graveler) Reset(ctx context.Context, repo RepositoryID, branch BranchID, ref string, p ResetParams) (c Commit, err error) {
	defer g.observe("reset", time.Now(), &err)
	to, err := g.reset(ctx, repo, branch, ref, p)
	if err != nil {
		return Commit{}, fmt.Errorf("reset %s/%s to %s: %w", repo, branch, ref, err)
	}
	return *to.Clone(), nil
}

func (g *Graveler) reset(ctx context.Context, repo RepositoryID, branch BranchID, ref string, p ResetParams) (*Commit, error) {
	if err := ValidateBranchID(branch); err != nil {
		return nil, err
	}
	r, to, err := g.resolve(ctx, repo, ref)
	if err == nil {
		err = checkWritable(r)
	}
	if err != nil {
		return nil, err
	}
	return to, g.resetTo(ctx, r, branch, "", to, p)
}

// ResetToMove is Reset to the head that a move of the branch's log left: the last one that is not after a time, in nanoseconds
// since the epoch. It returns ErrNotFound where the log, as far as it is kept, has none. The reset is a move itself, so that it
// can be undone in the same way.
func (g *Graveler) ResetToMove(ctx context.Context, repo RepositoryID, branch BranchID, at int64, p ResetParams) (c Commit, err error) {
	defer g.observe("reset", time.Now(), &err)
	r, b, err := g.readLiveBranch(ctx, repo, branch)
	if err == nil {
		err = checkWritable(r)
	}
	if err != nil {
		return Commit{}, err
	}
	to, err := g.headAt(ctx, r, b, at)
	if err == nil {
		err = g.resetTo(ctx, r, branch, b.UID, to, p)
	}
	if err != nil {
		return Commit{}, fmt.Errorf("reset %s/%s to its head at %s: %w", repo, branch, timeText(at), err)
	}
	return *to.Clone(), nil
}

// headAt returns the head that a branch had at a time, which its log must reach.
func (g *Graveler) headAt(ctx context.Context, repo *Repository, b *Branch, at int64) (*Commit, error) {
	start, err := g.refs.LogStart(ctx, repo, b.UID)
	if err != nil {
		return nil, err
	}
	none := fmt.Errorf("move %w: the log has none that early", ErrNotFound)
	if at < start-1 {
		return nil, none
	}
	for m, err := range g.movesAfter(ctx, repo, b, at) {
		switch {
		case err != nil:
			return nil, err
		case m.Previous == 0:
			return nil, none
		}
		return g.referred(ctx, repo, m.Old) // also where the move that made it the head has been removed
	}
	if b.LastMove.Time == 0 {
		return nil, none
	}
	return g.referred(ctx, repo, b.Head)
}

// resetTo makes a commit the head of a branch: of the one with a UID, if that is not "".
func (g *Graveler) resetTo(ctx context.Context, repo *Repository, branch BranchID, uid string, to *Commit, p ResetParams) error {
	_, err := g.changeHead(ctx, repo, branch, headMove{op: OpReset, uid: uid, actor: p.Actor, allowDirty: p.AllowDirty, build: func(head *Commit) (*Commit, error) {
		if head.ID == to.ID {
			return nil, alreadyThere{}
		}
		return to, nil
	}})
	return err
}

// ResetStaged drops the uncommitted changes of the keys with a prefix, or with one of more prefixes; the empty prefix drops all.
// Afterwards the branch shows there what its head holds, and elsewhere what it showed. What is written while the call runs stays
// or goes, each write as a whole. It is one step: an error means that nothing was dropped, or that all was.
//
// It knows nothing of what keys mean: whoever keeps an object in several entries (see catalog.VersionsBelow) names them all.
func (g *Graveler) ResetStaged(ctx context.Context, repo RepositoryID, branch BranchID, prefix Key, more ...Key) error {
	return g.resetStaged(ctx, repo, branch, prefix, func(shown, head MetaRangeID, r *Repository) Iterator[Entry] {
		return newPart(g.trees.Diff(ctx, r.Namespace, shown, head), append(more[:len(more):len(more)], prefix)...)
	})
}

// ResetStagedKey drops the uncommitted change of one key, and in the same step those of the keys with one of the prefixes beside.
func (g *Graveler) ResetStagedKey(ctx context.Context, repo RepositoryID, branch BranchID, key Key, beside ...Key) error {
	if err := ValidateKey(key); err != nil {
		return err
	}
	return g.resetStaged(ctx, repo, branch, key, func(shown, head MetaRangeID, r *Repository) Iterator[Entry] {
		changes := newPart(g.trees.Diff(ctx, r.Namespace, shown, head), append(beside[:len(beside):len(beside)], key)...)
		return &single{part: *changes, key: key, beside: beside}
	})
}

// putBack gives the changes that make some keys of the tree shown what they are in the head's.
type putBack func(shown, head MetaRangeID, repo *Repository) Iterator[Entry]

func (g *Graveler) resetStaged(ctx context.Context, repo RepositoryID, branch BranchID, what Key, putBack putBack) (err error) {
	defer g.observe("reset-staged", time.Now(), &err)
	if err := ValidateBranchID(branch); err != nil {
		return err
	}
	r, err := g.writable(ctx, repo)
	if err != nil {
		return err
	}
	for {
		var sealed *Branch
		if sealed, err = g.seal(ctx, r, branch, false); err == nil {
			_, err = g.moveBranch(ctx, r, branch, ActionStage, func(cur *Branch) (plan, error) { return g.buildReset(ctx, r, sealed, cur, putBack) })
		}
		if !errors.Is(err, errHidden) {
			break
		}
	}
	if err == nil {
		return nil
	}
	place := fmt.Sprintf("%s/%s", repo, branch)
	if len(what) > 0 {
		place += ":" + printable(what)
	}
	return fmt.Errorf("reset uncommitted changes of %s: %w", place, err)
}

func (g *Graveler) buildReset(ctx context.Context, repo *Repository, sealed, cur *Branch, putBack putBack) (plan, error) {
	if cur.UID != sealed.UID {
		return nil, fmt.Errorf("%w: it was deleted and created again", ErrBranchNotFound)
	}
	cur = upTo(cur, sealed.ItemCounter)
	head, shown, err := g.fold(ctx, repo, cur, g.share)
	if err != nil {
		return nil, err
	}
	changes := putBack(shown, head.Tree, repo)
	base, err := g.trees.Apply(ctx, repo.Namespace, shown, changes)
	if err := g.unlessGone(ctx, repo, closing(err, changes)); err != nil {
		return nil, err
	}
	relied, err := g.guard(ctx, repo, cur.ID, Revision{Before: shown, After: base, OldHead: head.Tree, NewHead: head.Tree})
	if err != nil {
		return nil, err
	}
	if base == head.Tree {
		base = ""
	}
	return g.unhidden(ctx, sealed.ItemCounter, relied, func(next *Branch) (*Commit, error) {
		next.Base = base
		takeItems(next, cur)
		return nil, nil
	}), nil
}

// single is the part of one key, and of the keys with one of the prefixes beside.
type single struct {
	part
	key    Key
	beside []Key
}

func (s *single) Next() bool {
	for s.part.Next() {
		if key := s.Item().Key; bytes.Equal(key, s.key) || covers(s.beside, key) {
			return true
		}
	}
	return false
}
