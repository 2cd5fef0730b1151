// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
)

// repository reads the record of an active repository.
func (g *Graveler) repository(ctx context.Context, id RepositoryID) (*Repository, error) {
	if err := ValidateRepositoryID(id); err != nil {
		return nil, err
	}
	reading := g.repositories.begin()
	r, err := g.refs.GetRepository(ctx, id)
	if err != nil {
		g.repositories.forget(id)
		return nil, err
	}
	if r.State != RepositoryActive {
		g.repositories.forget(id)
		return nil, fmt.Errorf("repository %s: %w", id, stateError(r.State))
	}
	g.repositories.remember(r, reading)
	return r, nil
}

func stateError(s RepositoryState) error {
	if s == RepositoryCreating {
		return fmt.Errorf("%w: its creation has not finished", ErrRepositoryNotFound)
	}
	return ErrRepositoryInDeletion
}

// cachedRepository is repository without a read where the record is known. Whoever relies on it must go on to read or fence a branch record with
// liveBranch, which notices that the repository has gone.
func (g *Graveler) cachedRepository(ctx context.Context, id RepositoryID) (*Repository, error) {
	if r, ok := g.repositories.last(id); ok {
		return r, nil
	}
	return g.repository(ctx, id)
}

// writable reads the record of a repository that may be written to.
func (g *Graveler) writable(ctx context.Context, id RepositoryID) (*Repository, error) {
	r, err := g.repository(ctx, id)
	if err != nil {
		return nil, err
	}
	return r, checkWritable(r)
}

func checkWritable(r *Repository) error {
	if r.ReadOnly {
		return fmt.Errorf("repository %s: %w", r.ID, ErrReadOnly)
	}
	return nil
}

func (g *Graveler) branchKey(repo *Repository, id BranchID) branchKey {
	return branchKey{repo.Partition(), id}
}

// readBranch reads the record of a branch in any state. The read starts after the call; callers that wait share one. The result
// is shared: it must not be modified.
func (g *Graveler) readBranch(ctx context.Context, repo *Repository, id BranchID) (*Branch, error) {
	k := g.branchKey(repo, id)
	b, err := g.reads.do(ctx, k, func(ctx context.Context) (*Branch, error) { return g.refs.GetBranch(ctx, repo, id) })
	if err != nil {
		g.branches.Invalidate(k)
		return nil, err
	}
	g.branches.Set(k, b)
	return b, nil
}

// liveBranch is readBranch for a branch that is not deleted.
func (g *Graveler) liveBranch(ctx context.Context, repo *Repository, id BranchID) (*Branch, error) {
	b, err := g.readBranch(ctx, repo, id)
	if err == nil && b.State != BranchLive {
		g.branches.Invalidate(g.branchKey(repo, id))
		err = fmt.Errorf("branch %s/%s: %w", repo.ID, id, ErrBranchNotFound)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// onBranch calls do with the records of a repository and a live branch: with the ones known to this process first, where there
// are any, then with fresh ones. do returns errStale when what it was given turned out not to be current.
func (g *Graveler) onBranch(ctx context.Context, id RepositoryID, branch BranchID, do func(repo *Repository, b *Branch, fresh bool) error) error {
	repo, b := g.knownBranch(id, branch)
	if b == nil {
		if err := ValidateBranchID(branch); err != nil {
			return err
		}
	}
	for fresh := false; ; {
		if b == nil {
			var err error
			if repo, b, err = g.freshBranch(ctx, id, branch); err != nil {
				return err
			}
			fresh = true
		}
		if err := do(repo, b, fresh); !errors.Is(err, errStale) {
			return err
		}
		b = nil
	}
}

// onStageable is onBranch for those who change what is uncommitted. That it is forbidden counts only if a fresh record says so.
func (g *Graveler) onStageable(ctx context.Context, id RepositoryID, branch BranchID, do func(repo *Repository, b *Branch) error) error {
	return g.onBranch(ctx, id, branch, func(repo *Repository, b *Branch, fresh bool) error {
		switch err := b.allow(ActionStage); {
		case err == nil:
			return do(repo, b)
		case fresh:
			return err
		}
		return errStale
	})
}

// knownBranch returns the records that this process remembers, nil where it does not have both. They are a hint.
func (g *Graveler) knownBranch(id RepositoryID, branch BranchID) (*Repository, *Branch) {
	repo, ok := g.repositories.last(id)
	if !ok {
		return nil, nil
	}
	if b, ok := g.branches.GetIfPresent(g.branchKey(repo, branch)); ok && b.State == BranchLive {
		return repo, b
	}
	return nil, nil
}

// freshBranch reads the record of a live branch, and after it that of its repository: a branch that a late writer left in the partition of a
// repository that is gone must not be taken for one. The repository's record is asked for first only where this process has none.
func (g *Graveler) freshBranch(ctx context.Context, id RepositoryID, branch BranchID) (*Repository, *Branch, error) {
	guess, err := g.cachedRepository(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	for {
		b, branchErr := g.liveBranch(ctx, guess, branch)
		if branchErr != nil && !errors.Is(branchErr, ErrBranchNotFound) {
			return nil, nil, branchErr
		}
		repo, err := g.repository(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		if repo.UID == guess.UID {
			return repo, b, branchErr
		}
		guess = repo
	}
}

// errStale: a branch record turned out not to be the current one.
var errStale = errors.New("branch record is stale")

// commit reads a commit that something refers to.
func (g *Graveler) commit(ctx context.Context, repo *Repository, id CommitID) (*Commit, error) {
	k := commitKey{repo.Partition(), id}
	if c, ok := g.commits.GetIfPresent(k); ok {
		return c, nil
	}
	c, err := g.refs.GetCommit(ctx, repo, id)
	if err != nil {
		return nil, err
	}
	g.commits.Set(k, c)
	return c, nil
}
