// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"fmt"
	"iter"
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

// Revert undoes on a branch what the commit ref changed against its parent, as a new commit. What has changed since in another
// way is a conflict, as in Merge. It returns ErrNoChanges where there is nothing left to undo.
func (g *Graveler) Revert(ctx context.Context, repo RepositoryID, branch BranchID, ref string, p PickParams) (c Commit, err error) {
	defer g.observe("revert", time.Now(), &err)
	c, err = g.pick(ctx, repo, branch, ref, OpRevert, p)
	return c, pickError("revert", repo, branch, ref, err)
}

// CherryPick repeats on a branch what the commit ref changed against its parent, as a new commit. What the branch has changed in
// another way is a conflict, as in Merge. It returns ErrNoChanges where the branch has it all.
func (g *Graveler) CherryPick(ctx context.Context, repo RepositoryID, branch BranchID, ref string, p PickParams) (c Commit, err error) {
	defer g.observe("cherry-pick", time.Now(), &err)
	c, err = g.pick(ctx, repo, branch, ref, OpCherryPick, p)
	return c, pickError("cherry-pick", repo, branch, ref, err)
}

func (g *Graveler) pick(ctx context.Context, repo RepositoryID, branch BranchID, ref string, op Op, p PickParams) (Commit, error) {
	k, err := g.picking(ctx, repo, branch, ref, op, p)
	if err == nil {
		err = checkWritable(k.repo)
	}
	if err != nil {
		return Commit{}, err
	}
	params := pickedParams(op, k.picked, p.CommitParams)
	head, err := g.changeHead(ctx, k.repo, branch, headMove{op: op, actor: p.Committer, allowDirty: p.AllowDirty, build: func(head *Commit) (*Commit, error) {
		tree, err := k.onto(head).apply(ctx)
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

// RevertConflicts yields the conflicts that Revert would have with these parameters, by key. Nothing is written.
func (g *Graveler) RevertConflicts(ctx context.Context, repo RepositoryID, branch BranchID, ref string, p PickParams) iter.Seq2[Conflict, error] {
	return sequence(func(emit func(Conflict) bool) error {
		return pickError("revert", repo, branch, ref, g.pickConflicts(ctx, repo, branch, ref, OpRevert, p, emit))
	})
}

// CherryPickConflicts yields the conflicts that CherryPick would have with these parameters, by key. Nothing is written.
func (g *Graveler) CherryPickConflicts(ctx context.Context, repo RepositoryID, branch BranchID, ref string, p PickParams) iter.Seq2[Conflict, error] {
	return sequence(func(emit func(Conflict) bool) error {
		return pickError("cherry-pick", repo, branch, ref, g.pickConflicts(ctx, repo, branch, ref, OpCherryPick, p, emit))
	})
}

func (g *Graveler) pickConflicts(ctx context.Context, repo RepositoryID, branch BranchID, ref string, op Op, p PickParams, emit func(Conflict) bool) error {
	k, err := g.picking(ctx, repo, branch, ref, op, p)
	if err != nil {
		return err
	}
	head, err := g.headOf(ctx, k.repo, branch)
	if err != nil {
		return err
	}
	return k.onto(head).conflicts(ctx, emit)
}

func pickError(what string, repo RepositoryID, branch BranchID, ref string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s on %s/%s: %w", what, ref, repo, branch, err)
}

// picking is what one commit changes, or undoes, on its way to a branch.
type picking struct {
	g        *Graveler
	repo     *Repository
	picked   *Commit
	from, to MetaRangeID // the change
	strategy Strategy
}

func (g *Graveler) picking(ctx context.Context, repo RepositoryID, branch BranchID, ref string, op Op, p PickParams) (*picking, error) {
	if err := (MergeParams{CommitParams: p.CommitParams, Strategy: p.Strategy}).validate(); err != nil {
		return nil, err
	}
	if err := ValidateBranchID(branch); err != nil {
		return nil, err
	}
	r, picked, err := g.resolve(ctx, repo, ref)
	if err != nil {
		return nil, err
	}
	before, err := g.treeBefore(ctx, r, picked, p.Parent)
	if err != nil {
		return nil, err
	}
	tree, err := g.readableTree(ctx, r, picked)
	if err != nil {
		return nil, err
	}
	k := &picking{g: g, repo: r, picked: picked, from: before, to: tree, strategy: p.Strategy}
	if op == OpRevert {
		k.from, k.to = k.to, k.from
	}
	return k, nil
}

func (k *picking) onto(head *Commit) *merging {
	return &merging{g: k.g, repo: k.repo, baseTree: k.from, leftTree: head.Tree, right: k.to, params: MergeParams{Strategy: k.strategy}}
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
	return g.readableTree(ctx, repo, parent)
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
