// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/rs/xid"
)

// CreateBranch makes a branch whose head is the commit that ref names. Uncommitted changes do not come along. It returns ErrExists where the name is taken, by a tag too, which a branch would hide.
func (g *Graveler) CreateBranch(ctx context.Context, repo RepositoryID, id BranchID, ref string) (Branch, error) {
	if err := ValidateBranchID(id); err != nil {
		return Branch{}, err
	}
	r, err := g.writable(ctx, repo)
	if err != nil {
		return Branch{}, err
	}
	c, err := g.ResolveRef(ctx, repo, ref)
	if err != nil {
		return Branch{}, err
	}
	if _, err := g.refs.GetTag(ctx, r, TagID(id)); err == nil {
		return Branch{}, fmt.Errorf("create branch %s/%s: %w: a tag has this name", repo, id, ErrExists)
	} else if !errors.Is(err, ErrTagNotFound) {
		return Branch{}, err
	}
	b, err := g.createBranch(ctx, r, id, c.ID)
	if err == nil {
		err = g.stillThere(ctx, r)
	}
	if err != nil {
		return Branch{}, fmt.Errorf("create branch %s/%s: %w", repo, id, err)
	}
	return *b.Clone(), nil
}

// createBranch writes the record of a new branch, after it has finished the deletion of an earlier one of that name, if one was left half-done.
func (g *Graveler) createBranch(ctx context.Context, repo *Repository, id BranchID, head CommitID) (*Branch, error) {
	old, err := g.readBranch(ctx, repo, id)
	switch {
	case err == nil && old.State == BranchLive:
		return nil, ErrExists
	case err == nil:
		if err := g.finishBranchDeletion(ctx, repo, old); err != nil {
			return nil, err
		}
	case !errors.Is(err, ErrBranchNotFound):
		return nil, err
	}
	now, err := g.moveTime(ctx, 0)
	if err != nil {
		return nil, err
	}
	b := &Branch{
		ID: id, UID: xid.New().String(), State: BranchLive, Head: head, Token: newToken(repo.ID, id),
		LastMove: Move{Time: now, Op: OpCreate, New: head}, Nonce: newNonce(),
	}
	if err := g.refs.PutLogName(ctx, repo, id, b.UID); err != nil {
		return nil, err
	}
	b.Stamp, err = g.refs.PutBranch(ctx, repo, b)
	if err != nil && !errors.Is(err, ErrChanged) {
		// Unknown outcome: the record tells, unless the write is still on its way, which the error then says.
		if stored, readErr := g.readBranch(ctx, repo, id); readErr == nil && stored.Nonce == b.Nonce {
			return stored, nil
		}
		return nil, err
	}
	if err != nil {
		return nil, ErrExists
	}
	g.branches.Set(g.branchKey(repo, id), b)
	return b, nil
}

// stillThere tells whether a repository was deleted while something was created in it.
func (g *Graveler) stillThere(ctx context.Context, repo *Repository) error {
	now, err := g.repository(ctx, repo.ID)
	if err == nil && now.UID != repo.UID {
		err = fmt.Errorf("repository %s: %w: it was deleted and created again", repo.ID, ErrRepositoryNotFound)
	}
	return err
}

// GetBranch returns ErrBranchNotFound where there is none.
func (g *Graveler) GetBranch(ctx context.Context, repo RepositoryID, id BranchID) (Branch, error) {
	_, b, err := g.readLiveBranch(ctx, repo, id)
	if err != nil {
		return Branch{}, err
	}
	return *b.Clone(), nil
}

func (g *Graveler) readLiveBranch(ctx context.Context, repo RepositoryID, id BranchID) (*Repository, *Branch, error) {
	if err := ValidateBranchID(id); err != nil {
		return nil, nil, err
	}
	r, err := g.repository(ctx, repo)
	if err != nil {
		return nil, nil, err
	}
	b, err := g.liveBranch(ctx, r, id)
	return r, b, err
}

// ListBranches yields the branches whose names are greater than after, by name, without those that are hidden.
func (g *Graveler) ListBranches(ctx context.Context, repo RepositoryID, after BranchID) iter.Seq2[Branch, error] {
	return sequence(func(emit func(Branch) bool) error {
		r, err := g.repository(ctx, repo)
		if err != nil {
			return err
		}
		for b, err := range g.refs.ScanBranches(ctx, r, after) {
			if err != nil {
				return fmt.Errorf("list branches of %s: %w", repo, err)
			}
			if b.ID != after && b.State == BranchLive && !b.Hidden && !emit(*b.Clone()) {
				return nil
			}
		}
		return nil
	})
}

// DeleteBranch deletes a branch; its commits and its log stay. Without force it returns ErrDirtyBranch where there are uncommitted changes, which would be lost; what is
// written while it looks goes with the branch. With force nothing is looked at, so that a branch whose data is damaged can go too.
func (g *Graveler) DeleteBranch(ctx context.Context, repo RepositoryID, id BranchID, force bool) error {
	if err := ValidateBranchID(id); err != nil {
		return err
	}
	r, err := g.writable(ctx, repo)
	if err != nil {
		return err
	}
	if _, err := g.liveBranch(ctx, r, id); err != nil {
		return err
	}
	if r.DefaultBranch == id {
		err = ErrDefaultBranch
	}
	if err == nil && !force {
		err = g.checkClean(ctx, repo, id)
	}
	if err == nil {
		err = g.deleteBranch(ctx, r, id)
	}
	if err != nil {
		return fmt.Errorf("delete branch %s/%s: %w", repo, id, err)
	}
	return nil
}

// checkClean returns ErrDirtyBranch where a branch has uncommitted changes.
func (g *Graveler) checkClean(ctx context.Context, repo RepositoryID, id BranchID) error {
	for _, err := range g.DiffUncommitted(ctx, repo, id, DiffOptions{}) {
		return cmp.Or(err, ErrDirtyBranch)
	}
	return nil
}

func (g *Graveler) deleteBranch(ctx context.Context, repo *Repository, id BranchID) error {
	b, err := g.moveBranch(ctx, repo, id, func(*Branch) (plan, error) {
		return func(next *Branch) (*Commit, error) {
			now, err := g.moveTime(ctx, next.LastMove.Time)
			if err != nil {
				return nil, err
			}
			moveHead(next, Move{Time: now, Op: OpDelete})
			next.State, next.Head = BranchDeleted, next.LastMove.Old
			next.Token, next.Items, next.Base = "", nil, ""
			return nil, nil
		}, nil
	})
	if err != nil {
		return err
	}
	return g.finishBranchDeletion(ctx, repo, b)
}

// finishBranchDeletion does what is left to do for a branch in state BranchDeleted. Any number of processes may do it at the same time.
func (g *Graveler) finishBranchDeletion(ctx context.Context, repo *Repository, b *Branch) error {
	if err := g.refs.PutMove(ctx, repo, b.UID, b.LastMove); err != nil {
		return err
	}
	g.branches.Invalidate(g.branchKey(repo, b.ID))
	if err := g.refs.RemoveBranch(ctx, repo, b); err != nil && !errors.Is(err, ErrChanged) {
		return err
	}
	return nil
}
