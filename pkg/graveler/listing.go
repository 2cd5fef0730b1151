// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// BranchesAt yields the branches, hidden ones too, that stand on the commit that ref names: those whose names are greater than
// after, by name. It reads the records of all branches behind after.
func (g *Graveler) BranchesAt(ctx context.Context, repo RepositoryID, ref string, after BranchID) iter.Seq2[Branch, error] {
	return sequence(func(emit func(Branch) bool) error {
		r, c, err := g.resolve(ctx, repo, ref)
		if err != nil {
			return err
		}
		return g.listBranches(ctx, r, after, emit, func(b *Branch) (bool, error) { return b.Head == c.ID, nil })
	})
}

// listBranches emits the live branches behind after that keep wants.
func (g *Graveler) listBranches(ctx context.Context, repo *Repository, after BranchID, emit func(Branch) bool, keep func(*Branch) (bool, error)) error {
	for b, err := range g.refs.ScanBranches(ctx, repo, after) {
		kept := false
		if err == nil && b.ID != after && b.State == BranchLive {
			kept, err = keep(b)
		}
		if err != nil {
			return fmt.Errorf("list branches of %s: %w", repo.ID, err)
		}
		if kept && !emit(*b.Clone()) {
			return nil
		}
	}
	return nil
}

// listTags emits the tags behind after that keep wants.
func (g *Graveler) listTags(ctx context.Context, repo *Repository, after TagID, emit func(Tag) bool, keep func(*Tag) (bool, error)) error {
	for t, err := range g.refs.ScanTags(ctx, repo, after) {
		kept := false
		if err == nil && t.ID != after {
			kept, err = keep(t)
		}
		if err != nil {
			return fmt.Errorf("list tags of %s: %w", repo.ID, err)
		}
		if kept && !emit(*t) {
			return nil
		}
	}
	return nil
}

// ListCommits yields the commits of a repository by ID, whether any branch or tag reaches them or not. after leaves out the
// commits whose IDs are not greater, and those whose IDs begin with it: it may be the beginning of an ID.
func (g *Graveler) ListCommits(ctx context.Context, repo RepositoryID, after CommitID) iter.Seq2[Commit, error] {
	return sequence(func(emit func(Commit) bool) error {
		return g.listCommits(ctx, repo, after, false, emit)
	})
}

// ListTips is ListCommits without the commits that are the first parent of another: what stays are the ends of the lines that
// branches have had, merged ones and those that no branch reaches any more included. It reads all commits before it yields the
// first, whatever after is, and keeps the IDs of all first parents in memory. A commit that becomes a first parent meanwhile may
// still be listed.
func (g *Graveler) ListTips(ctx context.Context, repo RepositoryID, after CommitID) iter.Seq2[Commit, error] {
	return sequence(func(emit func(Commit) bool) error {
		return g.listCommits(ctx, repo, after, true, emit)
	})
}

func (g *Graveler) listCommits(ctx context.Context, repo RepositoryID, after CommitID, tips bool, emit func(Commit) bool) error {
	if len(after) > commitDigits || strings.Trim(string(after), hexDigits) != "" {
		return fmt.Errorf("list commits of %s: %w: after %q: expected a commit ID, or the beginning of one", repo, ErrInvalidName, after)
	}
	r, err := g.repository(ctx, repo)
	if err != nil {
		return err
	}
	var hidden map[CommitID]bool
	if tips {
		if hidden, err = g.firstParents(ctx, r); err != nil {
			return fmt.Errorf("list commits of %s: %w", repo, err)
		}
	}
	for c, err := range g.refs.ScanCommits(ctx, r, after) {
		if err != nil {
			return fmt.Errorf("list commits of %s: %w", repo, err)
		}
		passed := after != "" && strings.HasPrefix(string(c.ID), string(after))
		if !passed && !hidden[c.ID] && !emit(*c) {
			return nil
		}
	}
	return nil
}

func (g *Graveler) firstParents(ctx context.Context, repo *Repository) (map[CommitID]bool, error) {
	parents := map[CommitID]bool{}
	for c, err := range g.refs.ScanCommits(ctx, repo, "") {
		if err != nil {
			return nil, err
		}
		if len(c.Parents) > 0 {
			parents[c.Parents[0]] = true
		}
	}
	return parents, nil
}

// ListStaged yields what is staged under one of the tokens of a branch, the newest (Branch.Token) or a sealed one (Branch.Items),
// by key; tombstones have a nil Value. It shows what is stored, whatever newer tokens say: what all of it together changes is
// told by DiffUncommitted. It returns ErrNotFound where the branch does not list the token, also at the end, if it no longer does
// so: something may have been missing then.
func (g *Graveler) ListStaged(ctx context.Context, repo RepositoryID, branch BranchID, token StagingToken, o DiffOptions) iter.Seq2[Entry, error] {
	return sequence(func(emit func(Entry) bool) error {
		more, err := g.listStaged(ctx, repo, branch, token, o, emit)
		if err == nil && more {
			err = g.checkToken(ctx, repo, branch, token)
		}
		if err != nil {
			return fmt.Errorf("staged entries of %s/%s under %s: %w", repo, branch, token, err)
		}
		return nil
	})
}

// listStaged reports whether emit wants more.
func (g *Graveler) listStaged(ctx context.Context, repo RepositoryID, branch BranchID, token StagingToken, o DiffOptions, emit func(Entry) bool) (more bool, err error) {
	if err := g.checkToken(ctx, repo, branch, token); err != nil {
		return false, err
	}
	it, err := g.staging.Scan(ctx, token, o.start(), o.Prefix)
	if err != nil {
		return false, err
	}
	for it.Next() {
		if !emit(it.Item().Clone()) {
			return false, it.Close()
		}
	}
	return true, it.Close()
}

// checkToken makes sure that a branch lists a token.
func (g *Graveler) checkToken(ctx context.Context, repo RepositoryID, branch BranchID, token StagingToken) error {
	_, b, err := g.readLiveBranch(ctx, repo, branch)
	if err == nil && !slices.Contains(tokens(b), token) {
		err = fmt.Errorf("%w: the branch lists no such token", ErrNotFound)
	}
	return err
}
