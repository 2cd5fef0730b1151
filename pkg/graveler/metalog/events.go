// SPDX-License-Identifier: Apache-2.0

package metalog

import (
	"container/heap"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Events yields the changes of every move of the sources in a window, by time, source (repository, branch, UID) and key; an event
// of kind Head comes before those of entries. The order in which sources are given does not matter; one that is given twice is
// graveler.ErrInvalidValue.
//
// Each move is the difference of two trees: what they share is not read, and what they do not is streamed, so that memory grows
// with the number of sources alone. A move that changed no entry has no event. The creation and the deletion of a branch are one
// event each, of kind Head, which those of its entries follow where the source asks for contents. A reset, a revert or a merge
// shows as the changes that it made to the branch.
func (r *Reader) Events(ctx context.Context, sources []Source, after, until int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var feeds merge
		defer func() { feeds.stop() }()
		err := r.open(ctx, &feeds, sources, after, until)
		for err == nil && len(feeds) > 0 {
			if !r.move(ctx, feeds[0], yield) {
				return
			}
			err = feeds.advance()
		}
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// open starts to read every source.
func (r *Reader) open(ctx context.Context, feeds *merge, sources []Source, after, until int64) error {
	sources = slices.SortedFunc(slices.Values(sources), Source.compare)
	for i, s := range sources {
		if err := s.validate(); err != nil {
			return err
		}
		if i > 0 && s.compare(sources[i-1]) == 0 {
			return fmt.Errorf("%w: source %s/%s is given twice", graveler.ErrInvalidValue, s.Repository, s.Branch)
		}
	}
	for i, s := range sources {
		f := &feed{source: s, number: i, after: max(after, s.After)}
		f.next, f.stop = iter.Pull2(r.store.MoveLog(ctx, s.Repository, s.log(), f.after, until))
		if err := feeds.add(f); err != nil {
			return err
		}
	}
	return nil
}

// move yields the events of the move that a feed has come to, and tells whether to go on.
func (r *Reader) move(ctx context.Context, f *feed, yield func(Event, error) bool) bool {
	m := f.move
	e := f.source.event(m.Time, m.New)
	e.Op = m.Op
	if m.Old == "" || m.New == "" {
		e.Kind = Head
		if !yield(e, nil) {
			return false
		}
		if !f.source.Contents {
			return true
		}
	}
	return r.changes(ctx, f.source, f.after, m.OldTree, m.NewTree, e, yield)
}

// feed is the moves of a source that are still to come.
type feed struct {
	source Source
	number int // in the order of sources
	after  int64
	move   graveler.LoggedMove
	next   func() (graveler.LoggedMove, error, bool)
	stop   func()
}

// merge is a heap of feeds by the moves that they have come to.
type merge []*feed

// add takes a feed in when it has come to its next move; there it ends if there is none.
func (m *merge) add(f *feed) error {
	move, err, more := f.next()
	if err != nil || !more {
		f.stop()
		return err
	}
	f.move = move
	heap.Push(m, f)
	return nil
}

// advance goes past the first move.
func (m *merge) advance() error { return m.add(heap.Pop(m).(*feed)) }

func (m merge) stop() {
	for _, f := range m {
		f.stop()
	}
}

func (m merge) Len() int      { return len(m) }
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(f any)   { *m = append(*m, f.(*feed)) }

func (m merge) Less(i, j int) bool {
	if m[i].move.Time != m[j].move.Time {
		return m[i].move.Time < m[j].move.Time
	}
	return m[i].number < m[j].number
}

func (m *merge) Pop() any {
	last := len(*m) - 1
	f := (*m)[last]
	*m = (*m)[:last]
	return f
}
