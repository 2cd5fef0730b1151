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

// CreateBranch makes a branch whose head is the commit that ref names. Uncommitted changes do not come along. It returns
// ErrExists where the name is taken, by a tag too, which a branch would hide.
func (g *Graveler) CreateBranch(ctx context.Context, repo RepositoryID, id BranchID, ref string) (Branch, error) {
	return g.newBranch(ctx, repo, id, ref, false)
}

// CreateHiddenBranch is CreateBranch for a branch that listings leave out.
func (g *Graveler) CreateHiddenBranch(ctx context.Context, repo RepositoryID, id BranchID, ref string) (Branch, error) {
	return g.newBranch(ctx, repo, id, ref, true)
}

func (g *Graveler) newBranch(ctx context.Context, repo RepositoryID, id BranchID, ref string, hidden bool) (Branch, error) {
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
	b, err := g.addBranch(ctx, r, id, c.ID, hidden)
	if err != nil {
		return Branch{}, fmt.Errorf("create branch %s/%s: %w", repo, id, err)
	}
	return *b.Clone(), nil
}

// addBranch makes a branch in a repository that others use.
func (g *Graveler) addBranch(ctx context.Context, repo *Repository, id BranchID, head CommitID, hidden bool) (*Branch, error) {
	if _, err := g.refs.GetTag(ctx, repo, TagID(id)); err == nil {
		return nil, fmt.Errorf("%w: a tag has this name", ErrExists)
	} else if !errors.Is(err, ErrTagNotFound) {
		return nil, err
	}
	if err := g.referable(ctx, repo, head); err != nil {
		return nil, err
	}
	b, err := g.createBranch(ctx, repo, id, head, hidden)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(g.stillThere(ctx, repo), g.referable(ctx, repo, head)); err != nil {
		// It may have come after the repository's other records had gone, or, if this process was stopped for long, after the tree of its head.
		g.branches.Invalidate(g.branchKey(repo, id))
		return nil, errors.Join(err, g.refs.RemoveBranch(ctx, repo, b))
	}
	return g.protectNew(ctx, repo, b)
}

// createBranch writes the record of a new branch, after it has finished the deletion of an earlier one of that name, if one was left half-done.
func (g *Graveler) createBranch(ctx context.Context, repo *Repository, id BranchID, head CommitID, hidden bool) (*Branch, error) {
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
	began := g.now()
	now, err := g.moveTime(ctx, 0)
	if err != nil {
		return nil, err
	}
	b := &Branch{
		ID: id, UID: xid.New().String(), State: BranchLive, Head: head, Token: newToken(repo.ID, id),
		Hidden: hidden, LastMove: Move{Time: now, Op: OpCreate, New: head}, Nonce: newNonce(),
	}
	if err := g.setProtection(ctx, repo, b); err != nil {
		return nil, err
	}
	if err := g.refs.PutLogName(ctx, repo, id, b.UID); err != nil {
		return nil, err
	}
	b.Stamp, err = g.refs.PutBranch(ctx, repo, b)
	if err == nil && g.elapsed(began) > FileGrace/2 {
		// This process was stopped for so long that the name of a log without moves may have been removed.
		err = g.refs.PutLogName(ctx, repo, id, b.UID)
	}
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

// SetBranchHidden says whether listings leave a branch out.
func (g *Graveler) SetBranchHidden(ctx context.Context, repo RepositoryID, id BranchID, hidden bool) error {
	if err := ValidateBranchID(id); err != nil {
		return err
	}
	r, err := g.writable(ctx, repo)
	if err != nil {
		return err
	}
	_, err = g.moveBranch(ctx, r, id, 0, func(cur *Branch) (plan, error) {
		if cur.Hidden == hidden {
			return nil, nil
		}
		return func(next *Branch) (*Commit, error) {
			next.Hidden = hidden
			return nil, nil
		}, nil
	})
	return err
}

// ListBranches yields the branches whose names are greater than after, by name, without those that are hidden.
func (g *Graveler) ListBranches(ctx context.Context, repo RepositoryID, after BranchID) iter.Seq2[Branch, error] {
	return g.branchesWhere(ctx, repo, after, func(b *Branch) bool { return !b.Hidden })
}

// ListAllBranches is ListBranches with those that are hidden.
func (g *Graveler) ListAllBranches(ctx context.Context, repo RepositoryID, after BranchID) iter.Seq2[Branch, error] {
	return g.branchesWhere(ctx, repo, after, func(*Branch) bool { return true })
}

func (g *Graveler) branchesWhere(ctx context.Context, repo RepositoryID, after BranchID, keep func(*Branch) bool) iter.Seq2[Branch, error] {
	return sequence(func(emit func(Branch) bool) error {
		r, err := g.repository(ctx, repo)
		if err != nil {
			return err
		}
		return g.listBranches(ctx, r, after, emit, func(b *Branch) (bool, error) { return keep(b), nil })
	})
}

// DeleteBranch deletes a branch; its commits and its log stay. Without force it returns ErrDirtyBranch where there are
// uncommitted changes, which would be lost; only a write that is acknowledged between its last look, which is one read before the
// deletion, and the deletion goes with the branch. With force nothing is looked at, so that a branch whose data is damaged can go
// too.
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
	if err == nil {
		err = g.deleteBranch(ctx, r, id, ActionDelete, force)
	}
	if err != nil {
		return fmt.Errorf("delete branch %s/%s: %w", repo, id, err)
	}
	return nil
}

// deleteBranch marks a branch deleted and removes its record, where its protection allows the action. Without force it does so
// only with a record that shows nothing uncommitted. It asks no clock: a wrong one, or one that was wrong once, must not keep
// anything from being deleted.
func (g *Graveler) deleteBranch(ctx context.Context, repo *Repository, id BranchID, action Actions, force bool) error {
	b, err := g.moveBranch(ctx, repo, id, action, func(cur *Branch) (plan, error) {
		if !force {
			if err := g.checkClean(ctx, repo, cur); err != nil {
				return nil, err
			}
		}
		return func(next *Branch) (*Commit, error) {
			if !force {
				if len(next.Items) > len(cur.Items) {
					return nil, errStale
				}
				if empty, err := g.isEmpty(ctx, next.Token); err != nil || !empty {
					return nil, cmp.Or(err, errStale)
				}
			}
			now := max(g.now().UnixNano(), next.LastMove.Time+1)
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

// checkClean returns ErrDirtyBranch where the record b shows uncommitted changes. What holds no change is sealed, so that the token is empty.
func (g *Graveler) checkClean(ctx context.Context, repo *Repository, b *Branch) error {
	v, err := g.viewOf(ctx, repo, b)
	if err != nil {
		return err
	}
	dirty := false
	if err := v.uncommitted(ctx, nil, nil, func(Diff) bool { dirty = true; return false }); err != nil {
		return err
	}
	if dirty {
		return ErrDirtyBranch
	}
	sealed, err := g.seal(ctx, repo, b.ID, false)
	if err == nil && sealed.Token != b.Token {
		err = errStale
	}
	return err
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
