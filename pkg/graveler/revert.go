// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"fmt"
	"maps"
	"time"
)

// Metadata that a revert and a cherry-pick add to their commits: the ID of the commit that they come from.
const (
	MetadataReverts    = "moraine.reverts"
	MetadataPickedFrom = "moraine.cherry-picked-from"
)

// PickParams says how to revert or cherry-pick.
type PickParams struct {
	CommitParams // without a message, one is made from the commit's
	// Parent says against which parent of a merge the change is taken, from 1. It is required for merges, and 0 or 1 for other commits.
	Parent     int
	Strategy   Strategy // for entries that have changed since
	AllowDirty bool     // keeps uncommitted changes, on top of the result
}

// Revert undoes on a branch what the commit ref changed against its parent, as a new commit. What has changed since in another way is a conflict, as in Merge.
// It returns ErrNoChanges where there is nothing left to undo.
func (g *Graveler) Revert(ctx context.Context, repo RepositoryID, branch BranchID, ref string, p PickParams) (c Commit, err error) {
	defer g.observe("revert", time.Now(), &err)
	c, err = g.pick(ctx, repo, branch, ref, OpRevert, p)
	if err != nil {
		return Commit{}, fmt.Errorf("revert %s on %s/%s: %w", ref, repo, branch, err)
	}
	return c, nil
}

// CherryPick repeats on a branch what the commit ref changed against its parent, as a new commit. What the branch has changed in another way is a conflict, as in Merge.
// It returns ErrNoChanges where the branch has it all.
func (g *Graveler) CherryPick(ctx context.Context, repo RepositoryID, branch BranchID, ref string, p PickParams) (c Commit, err error) {
	defer g.observe("cherry-pick", time.Now(), &err)
	c, err = g.pick(ctx, repo, branch, ref, OpCherryPick, p)
	if err != nil {
		return Commit{}, fmt.Errorf("cherry-pick %s on %s/%s: %w", ref, repo, branch, err)
	}
	return c, nil
}

func (g *Graveler) pick(ctx context.Context, repo RepositoryID, branch BranchID, ref string, op Op, p PickParams) (Commit, error) {
	if err := (MergeParams{CommitParams: p.CommitParams, Strategy: p.Strategy}).validate(); err != nil {
		return Commit{}, err
	}
	if err := ValidateBranchID(branch); err != nil {
		return Commit{}, err
	}
	r, picked, err := g.resolve(ctx, repo, ref)
	if err == nil {
		err = checkWritable(r)
	}
	if err != nil {
		return Commit{}, err
	}
	before, err := g.treeBefore(ctx, r, picked, p.Parent)
	if err != nil {
		return Commit{}, err
	}
	params := pickedParams(op, picked, p.CommitParams)
	head, err := g.changeHead(ctx, r, branch, headMove{op: op, actor: p.Committer, allowDirty: p.AllowDirty, build: func(head *Commit) (*Commit, error) {
		m := &merging{g: g, repo: r, baseTree: before, leftTree: head.Tree, right: picked.Tree, params: MergeParams{Strategy: p.Strategy}}
		if op == OpRevert {
			m.baseTree, m.right = m.right, m.baseTree
		}
		tree, err := m.apply(ctx)
		if err == nil && tree == head.Tree && !p.AllowEmpty {
			err = ErrNoChanges
		}
		if err != nil {
			return nil, err
		}
		return child(params, tree, head), nil
	}})
	if err != nil {
		return Commit{}, err
	}
	return *head.Clone(), nil
}

// treeBefore returns the tree of the n-th parent of a commit; the empty tree for the first commit.
func (g *Graveler) treeBefore(ctx context.Context, repo *Repository, c *Commit, n int) (MetaRangeID, error) {
	switch {
	case len(c.Parents) == 0 && n <= 1 && n >= 0:
		return g.trees.EmptyTree(), nil
	case len(c.Parents) == 1 && n == 0:
		n = 1
	case n == 0:
		return "", fmt.Errorf("%w: commit %s is a merge of %d parents: say against which one", ErrInvalidValue, c.ID, len(c.Parents))
	case n < 1 || n > len(c.Parents):
		return "", fmt.Errorf("%w: commit %s has %d parents, and parent %d was asked for", ErrInvalidValue, c.ID, len(c.Parents), n)
	}
	parent, err := g.referred(ctx, repo, c.Parents[n-1])
	if err != nil {
		return "", err
	}
	return parent.Tree, nil
}

func pickedParams(op Op, picked *Commit, p CommitParams) CommitParams {
	p.Metadata = maps.Clone(p.Metadata)
	if p.Metadata == nil {
		p.Metadata = map[string]string{}
	}
	name := MetadataPickedFrom
	if op == OpRevert {
		name = MetadataReverts
	}
	p.Metadata[name] = string(picked.ID)
	switch {
	case p.Message != "":
	case op == OpRevert:
		p.Message = fmt.Sprintf("Revert %q", picked.Message)
	default:
		p.Message = picked.Message
	}
	return p
}
