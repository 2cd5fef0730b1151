// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/extsort"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

// window is a part of a branch log: the moves after from, up to through.
type window struct{ from, through int64 }

// touched is what the moves of a window have touched, sorted, on disk where it is much. Move by move: what was removed and
// brought back in between is in it.
type touched struct {
	window
	puts *extsort.Sorter // entries that were put
	keys *extsort.Sorter // logical keys of all that were put or removed
}

func (t *touched) close() error { return errors.Join(t.puts.Close(), t.keys.Close()) }

// window returns what the moves of a window have touched; it is read once.
func (s *source) window(ctx context.Context, w window) (*touched, error) {
	if t := s.windows[w]; t != nil {
		return t, nil
	}
	t, err := s.gather(ctx, w, 0)
	if err != nil {
		return nil, err
	}
	s.windows[w] = t
	return t, nil
}

// affordable returns the head up to which the log from one to another is read in this pass. A budget ends with the move that goes beyond it.
func (s *source) affordable(ctx context.Context, from, through cursor.Point) (cursor.Point, error) {
	w := window{from.Time, through.Time}
	if s.EventBudget == 0 || w.from >= w.through {
		return through, nil
	}
	t, ok := s.budgeted[w]
	if !ok {
		var err error
		t, err = s.gather(ctx, w, s.EventBudget)
		if errors.Is(err, graveler.ErrLogTruncated) {
			return through, nil
		}
		if err != nil {
			return cursor.Point{}, err
		}
		if known := s.windows[t.window]; known != nil {
			if err := t.close(); err != nil {
				return cursor.Point{}, err
			}
			t = known
		}
		s.budgeted[w], s.windows[t.window] = t, t
	}
	if t.window == w {
		return through, nil
	}
	s.report.OverBudget = true
	return s.point(ctx, t.through)
}

// gather reads the moves of a window, or the first of them that have at least limit changes.
func (s *source) gather(ctx context.Context, w window, limit int) (*touched, error) {
	config := extsort.Config{Memory: sortMemory / (1 + len(s.windows))} // where lanes stand at many heads, each has a window
	t := &touched{w, extsort.New(config), extsort.New(config)}
	n, at := 0, w.from
	for e, err := range s.feed.Events(ctx, []metalog.Source{s.log}, w.from, w.through) {
		if err == nil && limit > 0 && n >= limit && e.Timestamp > at {
			t.through = at
			break
		}
		if err == nil {
			n++
			at = e.Timestamp
			err = s.gatherOne(t, e)
		}
		if err != nil {
			return nil, errors.Join(err, t.close())
		}
	}
	s.report.Events += n
	return t, nil
}

func (s *source) gatherOne(t *touched, e metalog.Event) error {
	if e.Kind == metalog.Head || !s.prefixes.Cover(e.Key) {
		return nil
	}
	place, err := catalog.ParseKey(e.Key)
	if err != nil {
		return nil // it is no entry that a bucket has
	}
	if e.Kind == metalog.Put {
		err = t.puts.Add(e.Key, nil)
	}
	return errors.Join(err, t.keys.Add([]byte(place.Key), nil))
}

// sortedAfter yields the keys of a sorter that are greater than after.
func sortedAfter(ctx context.Context, sorter *extsort.Sorter, after []byte) iter.Seq2[graveler.Key, error] {
	return func(yield func(graveler.Key, error) bool) {
		it, err := sorter.Sort(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for it.Next() {
			if bytes.Compare(it.Key(), after) > 0 && !yield(bytes.Clone(it.Key()), nil) {
				return
			}
		}
		if err := it.Err(); err != nil {
			yield(nil, err)
		}
	}
}
