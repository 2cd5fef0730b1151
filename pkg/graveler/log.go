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
	// Prefixes leaves out, if there are any, the commits whose trees agree below all of them with the tree of one of their
	// parents; a first commit's with the empty tree.
	Prefixes []Key
	// Not leaves out the commits that these refs reach, themselves included, by whatever parents.
	Not []string
	// After leaves out a commit and all that come before it in the log: with the last commit of a page the log goes on behind
	// that page. It visits what it leaves out once more.
	After CommitID
}

// Log yields the commits that ref reaches, itself included: every commit before its parents, newest first among those that do not
// depend on each other. The order is the same each time. It costs one read per commit that it visits, and the memory of those
// that it has yet to visit; visiting ends where all that is left is left out by Not. That one costs a read per commit that its
// refs reach, down to the generations visited, whose IDs it keeps. With prefixes each tree is compared with its parents', and no
// range on which they agree is opened.
func (g *Graveler) Log(ctx context.Context, repo RepositoryID, ref string, o LogOptions) iter.Seq2[Commit, error] {
	return sequence(func(emit func(Commit) bool) error {
		w, err := g.logWalk(ctx, repo, ref, o)
		if err != nil {
			return err
		}
		for len(w.queue) > 0 {
			c, parents, err := w.next(ctx)
			shown := false
			if err == nil {
				shown, err = w.shows(ctx, c, parents)
			}
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

// logWalk is a walk through a history, in the order of commitQueue. Whatever follows a commit has been visited before it.
type logWalk struct {
	g       *Graveler
	repo    *Repository
	options LogOptions
	not     *reach
	after   *Commit // nil: show from the start
	queue   commitQueue
	queued  map[CommitID]bool
}

func (g *Graveler) logWalk(ctx context.Context, repo RepositoryID, ref string, o LogOptions) (*logWalk, error) {
	r, c, err := g.resolve(ctx, repo, ref)
	if err != nil {
		return nil, err
	}
	w := &logWalk{g: g, repo: r, options: o, not: g.reach(r), queued: map[CommitID]bool{}}
	for _, ref := range o.Not {
		c, err := g.resolveIn(ctx, r, ref)
		if err != nil {
			return nil, err
		}
		w.not.add(c)
	}
	if o.After != "" {
		if w.after, err = g.commit(ctx, r, o.After); err != nil {
			return nil, fmt.Errorf("log of %s/%s after a commit: %w", repo, ref, err)
		}
	}
	return w, w.push(ctx, c)
}

// next visits a commit: it queues the parents that the log follows, and returns them too.
func (w *logWalk) next(ctx context.Context) (c *Commit, parents []*Commit, err error) {
	c = heap.Pop(&w.queue).(*Commit)
	delete(w.queued, c.ID)
	parents, err = w.parents(ctx, c)
	for _, p := range parents {
		if err == nil {
			err = w.push(ctx, p)
		}
	}
	return c, parents, err
}

// push queues a commit that Not does not leave out.
func (w *logWalk) push(ctx context.Context, c *Commit) error {
	if w.queued[c.ID] {
		return nil
	}
	out, err := w.not.has(ctx, c)
	if err == nil && !out {
		w.queued[c.ID] = true
		heap.Push(&w.queue, c)
	}
	return err
}

// parents reads the parents of a commit that the log follows.
func (w *logWalk) parents(ctx context.Context, c *Commit) (parents []*Commit, err error) {
	ids := c.Parents
	if w.options.FirstParent && len(ids) > 1 {
		ids = ids[:1]
	}
	for _, id := range ids {
		p, err := w.g.referred(ctx, w.repo, id)
		if err != nil {
			return nil, err
		}
		parents = append(parents, p)
	}
	return parents, nil
}

// shows reports whether the log shows a commit that Not does not leave out.
func (w *logWalk) shows(ctx context.Context, c *Commit, parents []*Commit) (bool, error) {
	o := w.options
	if !o.Since.IsZero() && c.CreatedAt.Before(o.Since) || !o.Until.IsZero() && c.CreatedAt.After(o.Until) || o.Committer != "" && c.Committer != o.Committer {
		return false, nil
	}
	if w.after != nil && compareAge(c, w.after) <= 0 {
		return false, nil
	}
	if len(o.Prefixes) == 0 {
		return true, nil
	}
	tree, err := w.g.readableTree(ctx, w.repo, c)
	if err != nil {
		return false, err
	}
	before := []MetaRangeID{w.g.trees.EmptyTree()}
	if len(parents) > 0 {
		before = nil
		for _, p := range parents {
			t, err := w.g.readableTree(ctx, w.repo, p)
			if err != nil {
				return false, err
			}
			before = append(before, t)
		}
	}
	for _, b := range before {
		differs, err := w.differs(ctx, b, tree)
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

func (q commitQueue) Less(i, j int) bool { return compareAge(q[i], q[j]) < 0 }

// compareAge orders commits from the newest to the oldest.
func compareAge(a, b *Commit) int {
	return cmp.Or(cmp.Compare(b.Generation, a.Generation), cmp.Compare(b.LogTime, a.LogTime), cmp.Compare(a.ID, b.ID))
}

func (q *commitQueue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}
