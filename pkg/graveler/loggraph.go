// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"container/heap"
	"context"
	"fmt"
	"iter"
	"slices"
)

// LogNode is a commit of a log with the commits that it follows there.
type LogNode struct {
	Commit Commit
	// Follows are the parents that the log shows too and, in the place of a parent that it leaves out, the nearest ancestors that it shows:
	// those that neither a parent in Follows nor another shown ancestor reaches.
	Follows []CommitID
}

// LogGraph is Log for drawing how the commits that it shows follow each other: what is left out between them is skipped, not cut,
// as git-log(1) does where it rewrites parents.
//
// Besides what Log costs it looks at commits ahead: for each shown commit with a parent that is left out, at those down to its
// nearest shown ancestors, and to the first commit where there are none. Each is asked once whether it is shown, but read again
// for each of these searches.
func (g *Graveler) LogGraph(ctx context.Context, repo RepositoryID, ref string, o LogOptions) iter.Seq2[LogNode, error] {
	return sequence(func(emit func(LogNode) bool) error {
		walk, err := g.logWalk(ctx, repo, ref, o)
		if err != nil {
			return err
		}
		w := graphWalk{logWalk: walk, known: map[CommitID]bool{}}
		for len(w.queue) > 0 {
			node, shown, err := w.nextNode(ctx)
			if err != nil {
				return fmt.Errorf("log of %s/%s: %w", repo, ref, err)
			}
			if shown && !emit(node) {
				return nil
			}
		}
		return nil
	})
}

type graphWalk struct {
	*logWalk
	known map[CommitID]bool // whether commits are shown that were looked at and not visited yet
}

func (w *graphWalk) nextNode(ctx context.Context) (n LogNode, shown bool, err error) {
	c, parents, err := w.next(ctx)
	if err != nil {
		return n, false, err
	}
	shown, err = w.shown(ctx, c)
	delete(w.known, c.ID)
	if !shown || err != nil {
		return n, false, err
	}
	n.Commit = *c.Clone()
	n.Follows, err = w.follows(ctx, parents)
	return n, true, err
}

func (w *graphWalk) shown(ctx context.Context, c *Commit) (bool, error) {
	if shown, ok := w.known[c.ID]; ok {
		return shown, nil
	}
	parents, err := w.parents(ctx, c)
	if err != nil {
		return false, err
	}
	shown, err := w.shows(ctx, c, parents)
	if err == nil {
		w.known[c.ID] = shown
	}
	return shown, err
}

// follows finds what a commit with these parents follows, in their order.
//
// It goes down from them by generation, so that a commit is visited after all that reach it. Each carries the number of the
// parent it is reached from, or behind, if it is reached from a commit that was found already.
func (w *graphWalk) follows(ctx context.Context, parents []*Commit) ([]CommitID, error) {
	const behind = -1
	type edge struct {
		parent int
		to     CommitID
	}
	var found []edge
	s := descent{from: map[CommitID]int{}}
	for i, p := range parents {
		shown, _, err := w.inGraph(ctx, p)
		if err != nil {
			return nil, err
		}
		from := i
		if shown { // a parent stays, whatever else reaches it
			found, from = append(found, edge{i, p.ID}), behind
		}
		s.reach(p, from)
	}
	for s.open > 0 {
		c, from := s.next()
		if from != behind {
			shown, out, err := w.inGraph(ctx, c)
			if err != nil {
				return nil, err
			}
			if out {
				continue
			}
			if shown {
				found, from = append(found, edge{from, c.ID}), behind
			}
		}
		parents, err := w.parents(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, p := range parents {
			s.reach(p, from)
		}
	}
	slices.SortStableFunc(found, func(a, b edge) int { return a.parent - b.parent })
	var ids []CommitID
	for _, e := range found {
		ids = append(ids, e.to)
	}
	return ids, nil
}

// inGraph reports whether the log shows a commit, and, if not, whether Not leaves it out, and so all its ancestors.
func (w *graphWalk) inGraph(ctx context.Context, c *Commit) (shown, out bool, err error) {
	if out, err = w.not.has(ctx, c); out || err != nil {
		return false, out, err
	}
	shown, err = w.shown(ctx, c)
	return shown, false, err
}

// descent is a way down through a history. Of several numbers that a commit is reached with the least one counts.
type descent struct {
	queue commitQueue
	from  map[CommitID]int
	open  int // commits in the queue whose number is not negative
}

func (d *descent) reach(c *Commit, from int) {
	before, reached := d.from[c.ID]
	if reached && before <= from {
		return
	}
	if !reached {
		heap.Push(&d.queue, c)
	}
	if reached && before >= 0 {
		d.open--
	}
	if from >= 0 {
		d.open++
	}
	d.from[c.ID] = from
}

func (d *descent) next() (*Commit, int) {
	c := heap.Pop(&d.queue).(*Commit)
	from := d.from[c.ID]
	if from >= 0 {
		d.open--
	}
	return c, from
}
