// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// headMove is an operation that gives a branch another head than a commit of its own changes does.
type headMove struct {
	op    Op
	uid   string // of the branch that is meant; "": of whichever has the name
	actor string
	// allowDirty lets uncommitted changes stay, on top of the new head. Without it they are ErrDirtyBranch.
	allowDirty bool
	// exact has build called again where the branch record was rewritten in any way.
	exact bool
	// build returns the new head for the present one: a commit that exists, or, without an ID, one that is to be made. It is
	// called again where the branch has moved meanwhile.
	build func(head *Commit) (*Commit, error)
}

// changeHead moves the head of a branch. The token is sealed first, always: a look at it and the move are not one step. What is
// written afterwards stays uncommitted; where it would hide what a guard relies on, all is done again.
func (g *Graveler) changeHead(ctx context.Context, repo *Repository, id BranchID, m headMove) (*Commit, error) {
	for {
		if head, err := g.tryChangeHead(ctx, repo, id, m); !errors.Is(err, errHidden) {
			return head, err
		}
	}
}

func (g *Graveler) tryChangeHead(ctx context.Context, repo *Repository, id BranchID, m headMove) (*Commit, error) {
	sealed, err := g.seal(ctx, repo, id, true)
	if err == nil && m.uid != "" && sealed.UID != m.uid {
		err = fmt.Errorf("%w: it was deleted and created again", ErrBranchNotFound)
	}
	if err != nil {
		return nil, err
	}
	var result *Commit
	var made bool
	_, err = g.moveBranch(ctx, repo, id, ActionMove, func(cur *Branch) (plan, error) {
		if cur.UID != sealed.UID {
			return nil, fmt.Errorf("%w: it was deleted and created again", ErrBranchNotFound)
		}
		cur = upTo(cur, sealed.ItemCounter)
		head, shown, err := g.fold(ctx, repo, cur, g.share)
		if err != nil {
			return nil, err
		}
		if shown != head.Tree && !m.allowDirty {
			return nil, ErrDirtyBranch
		}
		if result, err = m.build(head); err != nil {
			return nil, err
		}
		if result.ID != "" {
			if err := g.referable(ctx, repo, result.ID); err != nil {
				return nil, err
			}
		}
		if err := g.judge(ctx, repo, id, m.op, head, result); err != nil {
			return nil, err
		}
		base, err := g.rebase(ctx, repo, head.Tree, shown, result.Tree)
		if err != nil {
			return nil, err
		}
		relied, err := g.guard(ctx, repo, id, Revision{Before: shown, After: cmp.Or(base, result.Tree), OldHead: head.Tree, NewHead: result.Tree})
		if err != nil {
			return nil, err
		}
		made = result.ID == ""
		return g.unhidden(ctx, sealed.ItemCounter, relied, g.headPlan(ctx, m, cur, base, result)), nil
	})
	if err != nil {
		return nil, err
	}
	if made && g.hooks.PostCommit != nil {
		g.hooks.PostCommit(ctx, repo.ID, id, *result.Clone())
	}
	return result, nil
}

// judge asks the hook about a new head.
func (g *Graveler) judge(ctx context.Context, repo *Repository, id BranchID, op Op, head, next *Commit) error {
	if g.hooks.PreCommit == nil {
		return nil
	}
	c := next.Clone()
	return g.preCommit(ctx, PreCommitEvent{
		Repository: repo.ID, Branch: id, Op: op,
		Params: CommitParams{Message: c.Message, Committer: c.Committer, Metadata: c.Metadata, CreatedAt: c.CreatedAt},
		Changes: sequence(func(emit func(Diff) bool) error {
			return g.diffTrees(ctx, repo, head.Tree, next.Tree, DiffOptions{}, emit)
		}),
	})
}

func (g *Graveler) headPlan(ctx context.Context, m headMove, cur *Branch, base MetaRangeID, head *Commit) plan {
	made := head.ID == ""
	return func(next *Branch) (*Commit, error) {
		if m.exact && next.Nonce != cur.Nonce {
			return nil, errStale
		}
		now, err := g.moveTime(ctx, next.LastMove.Time)
		if err != nil {
			return nil, err
		}
		if made && head.ID == "" {
			head.complete(now)
		}
		next.Base = base
		takeItems(next, cur)
		moveHead(next, Move{Time: now, Op: m.op, New: head.ID, Actor: m.actor})
		if made {
			return head, nil
		}
		return nil, nil
	}
}

// upTo returns the record without the items that are newer than a number.
func upTo(b *Branch, number uint64) *Branch {
	b = b.Clone()
	b.Items = slices.DeleteFunc(b.Items, func(i Item) bool { return i.Number > number })
	return b
}

// rebase returns the base that shows the changes from the tree from to the tree shown on top of the tree onto; "" where that is onto itself.
func (g *Graveler) rebase(ctx context.Context, repo *Repository, from, shown, onto MetaRangeID) (MetaRangeID, error) {
	if shown == from {
		return "", nil
	}
	changes := rightSides{g.trees.Diff(ctx, repo.Namespace, from, shown)}
	base, err := g.trees.Apply(ctx, repo.Namespace, onto, changes)
	if err = g.unlessGone(ctx, repo, closing(err, changes)); err != nil {
		return "", fmt.Errorf("keep uncommitted changes of %s: %w", repo.ID, err)
	}
	if base == onto {
		base = ""
	}
	return base, nil
}

// complete gives a new commit its times and its ID. Its parents' generation and log time must be in it already.
func (c *Commit) complete(now int64) {
	c.Version, c.Nonce = CommitVersion, newNonce()
	c.LogTime = max(now, c.LogTime)
	if c.CreatedAt.IsZero() {
		c.CreatedAt = time.Unix(0, now)
	}
	c.CreatedAt = c.CreatedAt.UTC()
	c.ID = c.ComputeID()
}

// child returns a commit of a tree that follows the given parents, to be completed when its time is known.
func child(p CommitParams, tree MetaRangeID, parents ...*Commit) *Commit {
	c := &Commit{Committer: p.Committer, Message: p.Message, Metadata: maps.Clone(p.Metadata), CreatedAt: p.CreatedAt, Tree: tree}
	for _, parent := range parents {
		c.Parents = append(c.Parents, parent.ID)
		c.Generation = max(c.Generation, parent.Generation+1)
		c.LogTime = max(c.LogTime, parent.LogTime+1)
	}
	return c
}
