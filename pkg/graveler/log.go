// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"cmp"
	"container/heap"
	"context"
	"iter"
)

// LogOptions says what Log shows.
type LogOptions struct {
	// FirstParent follows only the first parent of each commit.
	FirstParent bool
}

// Log yields the commits that ref reaches, itself included: every commit before its parents, newest first among those that do not depend on each other.
// It costs one read per commit.
func (g *Graveler) Log(ctx context.Context, repo RepositoryID, ref string, o LogOptions) iter.Seq2[Commit, error] {
	return sequence(func(emit func(Commit) bool) error {
		r, c, err := g.resolve(ctx, repo, ref)
		if err != nil {
			return err
		}
		seen := map[CommitID]bool{c.ID: true}
		queue := commitQueue{c}
		for len(queue) > 0 {
			c := heap.Pop(&queue).(*Commit)
			if !emit(*c.Clone()) {
				return nil
			}
			parents := c.Parents
			if o.FirstParent && len(parents) > 1 {
				parents = parents[:1]
			}
			for _, id := range parents {
				if seen[id] {
					continue
				}
				seen[id] = true
				p, err := g.referred(ctx, r, id)
				if err != nil {
					return err
				}
				heap.Push(&queue, p)
			}
		}
		return nil
	})
}

// commitQueue is a heap of commits. A parent's generation is smaller than its child's, so that it comes later.
type commitQueue []*Commit

func (q commitQueue) Len() int      { return len(q) }
func (q commitQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *commitQueue) Push(c any)   { *q = append(*q, c.(*Commit)) }

func (q commitQueue) Less(i, j int) bool {
	return cmp.Or(
		cmp.Compare(q[j].Generation, q[i].Generation),
		cmp.Compare(q[j].LogTime, q[i].LogTime),
		cmp.Compare(q[i].ID, q[j].ID),
	) < 0
}

func (q *commitQueue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}
