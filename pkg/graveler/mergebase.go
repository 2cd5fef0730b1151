// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"container/heap"
	"context"
	"fmt"
)

// MergeBase returns the commit from which a merge of two refs starts. It returns ErrCommitNotFound where their histories have nothing in common.
func (g *Graveler) MergeBase(ctx context.Context, repo RepositoryID, left, right string) (Commit, error) {
	r, l, o, err := g.resolveTwo(ctx, repo, left, right)
	if err != nil {
		return Commit{}, err
	}
	base, err := g.mergeBase(ctx, r, l, o)
	if err == nil && base == nil {
		err = ErrCommitNotFound
	}
	if err != nil {
		return Commit{}, fmt.Errorf("merge base of %s/%s and %s/%s: %w", repo, left, repo, right, err)
	}
	return *base.Clone(), nil
}

// mergeBase returns the best common ancestor of two commits, as git merge-base(1) means it: one that no other common ancestor
// reaches. Where there are several, in criss-cross histories, it is the one with the largest generation, then the newest, then
// the one whose ID is least. It is nil where there is none.
//
// Commits are visited in the order of their generations, largest first. Each is thus visited after all its descendants, and the
// first that both sides reach is a best one: a common ancestor that reaches it would have been visited before. The search reads
// the commits since the histories parted, and none besides.
func (g *Graveler) mergeBase(ctx context.Context, repo *Repository, left, right *Commit) (*Commit, error) {
	const fromLeft, fromRight = 1, 2
	reached := map[CommitID]int{}
	var queue commitQueue
	reach := func(c *Commit, from int) {
		if reached[c.ID] == 0 {
			heap.Push(&queue, c)
		}
		reached[c.ID] |= from
	}
	reach(left, fromLeft)
	reach(right, fromRight)
	for len(queue) > 0 {
		c := heap.Pop(&queue).(*Commit)
		from := reached[c.ID]
		if from == fromLeft|fromRight {
			return c, nil
		}
		for _, id := range c.Parents {
			p, err := g.referred(ctx, repo, id)
			if err != nil {
				return nil, err
			}
			reach(p, from)
		}
	}
	return nil, nil
}
