// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

// Turn is what a pass is to work on: it is the Holder of that pass. It is not safe for concurrent use.
type Turn struct {
	worker *Worker
	shards []int
	work   map[int]context.Context // nil where the shard was not to be had any more
}

// Shards returns the shards whose turn it is.
func (t *Turn) Shards() []int { return slices.Clone(t.shards) }

// Hold is that of the worker, for the shards of the turn.
func (t *Turn) Hold(ctx context.Context, shard int) (work context.Context, done func(), ok bool) {
	if !slices.Contains(t.shards, shard) {
		return nil, nil, false
	}
	work, done, ok = t.worker.Hold(ctx, shard)
	t.work[shard] = work
	return work, done, ok
}

// lost reports whether a shard was taken from the pass.
func (t *Turn) lost(shard int) bool {
	work, came := t.work[shard]
	if !came || work == nil {
		return came
	}
	cause := context.Cause(work)
	return errors.Is(cause, ErrLost) || errors.Is(cause, ErrGivenBack)
}

// Turns yields what one pass after another is to work on, until ctx ends: at once all shards that the worker holds, and then each
// of them whenever its last pass began so long ago. For a shard that the worker gains later that is the pass that its cursor
// tells of, whoever made it; so one whose last holder has died, before or in the middle of a pass, has its turn soon if it has
// waited for too long: about a renewal later, and not before the turn under way has ended. A pass from which the shard was taken
// does not count. Shards that would have their turn within a tenth of the time go along with one. A worker that holds no shards
// has an empty turn so often, and one in the beginning, so that somebody hears of it.
//
// A turn ends with the body of the loop. There is one loop at a time.
func (w *Worker) Turns(ctx context.Context, every time.Duration) iter.Seq[*Turn] {
	return func(yield func(*Turn) bool) {
		s := schedule{Worker: w, every: every, records: cursor.New(w.c.Store), began: map[int]time.Time{}}
		for ctx.Err() == nil {
			now := w.c.Now()
			shards, next := s.due(ctx, now)
			if len(shards) == 0 && now.Before(next) {
				w.awaitGain(ctx, next.Sub(now))
				continue
			}
			s.last = now
			for _, shard := range shards {
				s.began[shard] = now
			}
			t := &Turn{w, shards, map[int]context.Context{}}
			if ctx.Err() != nil || !yield(t) {
				return
			}
			maps.DeleteFunc(s.began, func(shard int, _ time.Time) bool { return t.lost(shard) })
		}
	}
}

// awaitGain returns after a time, or when the worker has gained shards and nothing has come for more than a round, or when ctx
// ends. Another worker gives its shards back one by one, and they are to go with one pass.
func (w *Worker) awaitGain(ctx context.Context, d time.Duration) {
	timer, end := time.NewTimer(d), time.Now().Add(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-w.gain:
			timer.Reset(min(w.c.RenewEvery+w.c.RenewEvery/4, time.Until(end)))
		}
	}
}

// schedule says when shards have their turns.
type schedule struct {
	*Worker
	every   time.Duration
	records *cursor.Store
	last    time.Time         // the last turn
	began   map[int]time.Time // of shards that the worker holds, the turns that count
}

// due returns the shards whose turn it is, and otherwise when the next turn is.
func (s *schedule) due(ctx context.Context, now time.Time) (shards []int, next time.Time) {
	held := s.Shards()
	maps.DeleteFunc(s.began, func(shard int, _ time.Time) bool { return !slices.Contains(held, shard) })
	switch {
	case s.last.IsZero():
		return held, now
	case len(held) == 0:
		return nil, s.last.Add(s.every)
	}
	at := make([]time.Time, len(held))
	for i, shard := range held {
		at[i] = s.lastPass(ctx, shard, now).Add(s.every)
	}
	if next = slices.MinFunc(at, time.Time.Compare); next.After(now) {
		return nil, next
	}
	for i, shard := range held {
		if !at[i].After(now.Add(s.every / 10)) {
			shards = append(shards, shard)
		}
	}
	return shards, next
}

// lastPass returns when the last pass over a shard began that is known of. A record that cannot be read is for the next pass to
// tell of, and one of a clock that was ahead says nothing.
func (s *schedule) lastPass(ctx context.Context, shard int, now time.Time) time.Time {
	if began, ok := s.began[shard]; ok {
		return began
	}
	c, _, err := s.records.Cursor(ctx, shard)
	if err != nil || c.Time > now.UnixNano() {
		return time.Time{}
	}
	return time.Unix(0, c.Time)
}
