// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
)

// DeletedBranch is a branch that was deleted, and whose log is still there.
type DeletedBranch struct {
	ID  BranchID
	UID string
	// Head is the commit that the branch stood on, LastMove the deletion.
	Head     CommitID
	LastMove Move
}

// ListDeletedBranches yields the branches that were deleted and can be restored, by name, those of one name in the order in which
// they were deleted. It reads their logs.
func (g *Graveler) ListDeletedBranches(ctx context.Context, repo RepositoryID) iter.Seq2[DeletedBranch, error] {
	return sequence(func(emit func(DeletedBranch) bool) error {
		r, err := g.repository(ctx, repo)
		if err == nil {
			err = g.deletedBranches(ctx, r, "", emit)
		}
		if err != nil {
			return fmt.Errorf("list deleted branches of %s: %w", repo, err)
		}
		return nil
	})
}

// RestoreBranch makes a branch that was deleted again, with the head that it had: as a new branch, with a log of its own.
// Uncommitted changes do not come back. uid chooses one of several that had the name; "" is the one that was deleted last. It
// returns ErrExists where the name is taken, by a tag too, and ErrBranchNotFound where no log says what the head was.
func (g *Graveler) RestoreBranch(ctx context.Context, repo RepositoryID, id BranchID, uid string) (Branch, error) {
	if err := ValidateBranchID(id); err != nil {
		return Branch{}, err
	}
	r, err := g.writable(ctx, repo)
	if err != nil {
		return Branch{}, err
	}
	b, err := g.restoreBranch(ctx, r, id, uid)
	if err != nil {
		return Branch{}, fmt.Errorf("restore branch %s/%s: %w", repo, id, err)
	}
	return *b.Clone(), nil
}

func (g *Graveler) restoreBranch(ctx context.Context, repo *Repository, id BranchID, uid string) (*Branch, error) {
	if _, err := g.liveBranch(ctx, repo, id); !errors.Is(err, ErrBranchNotFound) {
		if err == nil {
			err = ErrExists
		}
		return nil, err
	}
	deleted, err := g.deletedBranch(ctx, repo, id, uid)
	if err != nil {
		return nil, err
	}
	head, err := g.referred(ctx, repo, deleted.Head)
	if err != nil {
		return nil, err
	}
	return g.addBranch(ctx, repo, id, head.ID, false)
}

// deletedBranch returns the deleted branch with a UID, or the one that was deleted last.
func (g *Graveler) deletedBranch(ctx context.Context, repo *Repository, id BranchID, uid string) (DeletedBranch, error) {
	var last DeletedBranch
	err := g.deletedBranches(ctx, repo, id, func(d DeletedBranch) bool {
		if uid == "" || d.UID == uid {
			last = d
		}
		return true
	})
	switch {
	case err != nil:
		return DeletedBranch{}, err
	case last.UID == "" && uid != "":
		return DeletedBranch{}, fmt.Errorf("deleted %w: none of this name has the UID %s", ErrBranchNotFound, uid)
	case last.UID == "":
		return DeletedBranch{}, fmt.Errorf("deleted %w: there is no log of one", ErrBranchNotFound)
	}
	return last, nil
}

// deletedBranches emits the deleted branches that had a name, or all. UIDs do not tell in which order those of one name came, so they are sorted.
func (g *Graveler) deletedBranches(ctx context.Context, repo *Repository, id BranchID, emit func(DeletedBranch) bool) error {
	var same []DeletedBranch // of one name
	flush := func() bool {
		slices.SortFunc(same, func(a, b DeletedBranch) int { return cmp.Compare(a.LastMove.Time, b.LastMove.Time) })
		for _, d := range same {
			if !emit(d) {
				return false
			}
		}
		same = same[:0]
		return true
	}
	for log, err := range g.refs.ScanLogNames(ctx, repo, id) {
		if err != nil {
			return err
		}
		if len(same) > 0 && same[0].ID != log.Branch && !flush() {
			return nil
		}
		d := DeletedBranch{ID: log.Branch, UID: log.UID}
		for m, err := range g.deletedMoves(ctx, repo, log, 0) {
			if err != nil {
				return err
			}
			d.LastMove = m
		}
		if d.LastMove.Op == OpDelete { // else it lives, or was never made
			d.Head = d.LastMove.Old
			same = append(same, d)
		}
	}
	flush()
	return nil
}

// DeletedBranchLog is BranchLog for a branch that was deleted: the one with a UID, or, if that is "", the one of this name that was deleted last.
func (g *Graveler) DeletedBranchLog(ctx context.Context, repo RepositoryID, branch BranchID, uid string, from int64) iter.Seq2[Move, error] {
	return sequence(func(emit func(Move) bool) error {
		if err := ValidateBranchID(branch); err != nil {
			return err
		}
		r, err := g.repository(ctx, repo)
		if err != nil {
			return err
		}
		d, err := g.deletedBranch(ctx, r, branch, uid)
		if err != nil {
			return fmt.Errorf("log of branch %s/%s: %w", repo, branch, err)
		}
		for m, err := range g.deletedMoves(ctx, r, LogName{Branch: d.ID, UID: d.UID}, from) {
			if err != nil || !emit(m) {
				return err
			}
		}
		return nil
	})
}

// deletedMoves yields the moves of a branch that is no more; nothing if it lives, or if nothing is left of it.
func (g *Graveler) deletedMoves(ctx context.Context, repo *Repository, log LogName, from int64) iter.Seq2[Move, error] {
	return sequence(func(emit func(Move) bool) error {
		b, err := g.readBranch(ctx, repo, log.Branch)
		switch {
		case errors.Is(err, ErrBranchNotFound):
		case err != nil:
			return err
		case b.UID != log.UID: // the name has another branch now
		case b.State == BranchLive:
			return nil
		default: // the last move may still be in the record alone
			for m, err := range g.moves(ctx, repo, b, from) {
				if err != nil || !emit(m) {
					return err
				}
			}
			return nil
		}
		chain := chain{repo: repo.ID, branch: log.Branch}
		for m, err := range g.refs.ScanMoves(ctx, repo, log.UID, from, math.MaxInt64) {
			if err == nil {
				err = g.link(ctx, repo, log.UID, &chain, m)
			}
			if err != nil || !emit(m) {
				return err
			}
		}
		return nil
	})
}
