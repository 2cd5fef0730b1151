// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"fmt"
	"iter"
)

// MergePreview says how Merge would move a branch, and whether it would.
type MergePreview struct {
	Base   CommitID // the merge base, "" where there is none
	Head   CommitID // of the destination
	Source CommitID
	// FastForward: Source would become the head as it is.
	FastForward bool
	// Refusal is the error that Merge would return even if there are no conflicts: ErrReadOnly, ErrProtected, ErrDirtyBranch or
	// ErrNoChanges. nil: it would go on.
	Refusal error
}

// PreviewMerge tells how Merge would move the branch as it stands. It writes nothing. It costs the search for the merge base, and
// a look at what is uncommitted. Which entries would change is told by MergeChanges, where the conflicts are by MergeConflicts.
func (g *Graveler) PreviewMerge(ctx context.Context, repo RepositoryID, source string, dest BranchID, p MergeParams) (MergePreview, error) {
	m, head, from, err := g.mergeAsItStands(ctx, repo, source, dest, p)
	if err != nil {
		return MergePreview{}, mergeError(repo, source, dest, err)
	}
	dirty := false
	if !p.AllowDirty {
		dirty, err = g.isDirty(ctx, repo, dest)
	}
	if err != nil {
		return MergePreview{}, mergeError(repo, source, dest, err)
	}
	b, err := g.liveBranch(ctx, m.repo, dest)
	if err != nil {
		return MergePreview{}, mergeError(repo, source, dest, err)
	}
	refusal := b.allow(ActionMove)
	switch {
	case refusal != nil:
	case dirty:
		refusal = ErrDirtyBranch
	case m.upToDate(from):
		refusal = ErrNoChanges
	}
	return MergePreview{Base: m.base, Head: head.ID, Source: from.ID, FastForward: m.fastForward(head, from), Refusal: mergeError(repo, source, dest, refusal)}, nil
}

// MergeChanges yields what Merge would change in the entries of the destination's head, by key: Left is what is there now, Right
// what it becomes. Where Merge would have conflicts it yields nothing but the ConflictError. Uncommitted changes of the
// destination are not looked at. Nothing is written. It costs twice what differs from the merge base on either side.
func (g *Graveler) MergeChanges(ctx context.Context, repo RepositoryID, source string, dest BranchID, p MergeParams) iter.Seq2[Diff, error] {
	return sequence(func(emit func(Diff) bool) error {
		m, _, _, err := g.mergeAsItStands(ctx, repo, source, dest, p)
		if err == nil {
			err = m.changes(ctx, emit)
		}
		return mergeError(repo, source, dest, err)
	})
}

// MergeConflicts yields the conflicts that Merge would have with these parameters, by key. Nothing is written.
func (g *Graveler) MergeConflicts(ctx context.Context, repo RepositoryID, source string, dest BranchID, p MergeParams) iter.Seq2[Conflict, error] {
	return sequence(func(emit func(Conflict) bool) error {
		m, _, _, err := g.mergeAsItStands(ctx, repo, source, dest, p)
		if err == nil {
			err = m.conflicts(ctx, emit)
		}
		return mergeError(repo, source, dest, err)
	})
}

// mergeAsItStands begins a merge into the present head of a branch.
func (g *Graveler) mergeAsItStands(ctx context.Context, repo RepositoryID, source string, dest BranchID, p MergeParams) (m *merging, head, from *Commit, err error) {
	r, from, err := g.mergeSource(ctx, repo, source, dest, p)
	if err == nil {
		head, err = g.headOf(ctx, r, dest)
	}
	if err == nil {
		m, err = g.merging(ctx, r, head, from, p)
	}
	return m, head, from, err
}

// headOf reads the head of a branch.
func (g *Graveler) headOf(ctx context.Context, repo *Repository, branch BranchID) (*Commit, error) {
	b, err := g.liveBranch(ctx, repo, branch)
	if err != nil {
		return nil, err
	}
	head, err := g.referred(ctx, repo, b.Head)
	if err != nil {
		return nil, fmt.Errorf("head of branch %s/%s: %w", repo.ID, branch, err)
	}
	return head, nil
}

// isDirty reports whether a branch shows anything that is not committed.
func (g *Graveler) isDirty(ctx context.Context, repo RepositoryID, branch BranchID) (dirty bool, err error) {
	err = g.reading(ctx, repo, branch, func(v *view) (bool, error) {
		dirty = false
		return false, v.uncommitted(ctx, nil, nil, func(Diff) bool { dirty = true; return false })
	})
	return dirty, err
}
