// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"iter"
	"time"
)

// LogOptions says what Log shows. The zero value shows everything.
type LogOptions struct {
	// FirstParent follows only the first parent of each commit.
	FirstParent bool
	// Since and Until leave out commits whose creation date is earlier or later; zero: no bound.
	Since, Until time.Time
	// Committer leaves out the commits of others, if it is not empty.
	Committer string
	// Prefixes leaves out, if there are any, the commits whose trees agree below all of them with the tree of one of their parents; a first commit's with the empty tree.
	Prefixes []Key
}

// Log yields the commits that ref reaches, itself included: every commit before its parents, newest first among those that do not depend on each other.
// It costs one read per commit that it visits. With prefixes it compares each tree with its parents' and opens no range on which they agree.
func (g *Graveler) Log(ctx context.Context, repo RepositoryID, ref string, o LogOptions) iter.Seq2[Commit, error] {
	return sequence(func(emit func(Commit) bool) error {
		r, c, err := g.resolve(ctx, repo, ref)
		if err != nil {
			return err
		}
		w := logWalk{g: g, repo: r, options: o, seen: map[CommitID]bool{c.ID: true}, queue: commitQueue{c}}
		for len(w.queue) > 0 {
			c, shown, err := w.next(ctx)
			if err != nil {
				return fmt.Errorf("log of %s/%s: %w", repo, ref, err)
			}
			if shown && !emit(*c.Clone()) {
				return nil
			}
		}
		return nil
	})
}

// logWalk is a walk through a history.
type logWalk struct {
	g       *Graveler
	repo    *Repository
	options LogOptions
	seen    map[CommitID]bool
	queue   commitQueue
}

// next visits a commit, queues its parents, and tells whether it is shown.
func (w *logWalk) next(ctx context.Context) (c *Commit, shown bool, err error) {
	c = heap.Pop(&w.queue).(*Commit)
	ids := c.Parents
	if w.options.FirstParent && len(ids) > 1 {
		ids = ids[:1]
	}
	var parents []*Commit
	for _, id := range ids {
		p, err := w.g.referred(ctx, w.repo, id)
		if err != nil {
			return nil, false, err
		}
		parents = append(parents, p)
		if !w.seen[id] {
			w.seen[id] = true
			heap.Push(&w.queue, p)
		}
	}
	shown, err = w.shows(ctx, c, parents)
	return c, shown, err
}

func (w *logWalk) shows(ctx context.Context, c *Commit, parents []*Commit) (bool, error) {
	o := w.options
	if !o.Since.IsZero() && c.CreatedAt.Before(o.Since) || !o.Until.IsZero() && c.CreatedAt.After(o.Until) || o.Committer != "" && c.Committer != o.Committer {
		return false, nil
	}
	if len(o.Prefixes) == 0 {
		return true, nil
	}
	before := []MetaRangeID{w.g.trees.EmptyTree()}
	if len(parents) > 0 {
		before = nil
		for _, p := range parents {
			before = append(before, p.Tree)
		}
	}
	for _, tree := range before {
		differs, err := w.differs(ctx, tree, c.Tree)
		if !differs || err != nil {
			return false, err
		}
	}
	return true, nil
}

// differs reports whether two trees differ below one of the prefixes.
func (w *logWalk) differs(ctx context.Context, left, right MetaRangeID) (bool, error) {
	if left == right {
		return false, nil
	}
	changes := newPart(w.g.trees.Diff(ctx, w.repo.Namespace, left, right), w.options.Prefixes...)
	differs := changes.Next()
	return differs, w.g.unlessGone(ctx, w.repo, closing(changes.Err(), changes))
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
