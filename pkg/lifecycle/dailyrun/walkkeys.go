// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// walk is one under way.
type walk struct {
	*source
	record cursor.Walk   // as it is to be stored
	items  []pending     // what is due of the keys after record.After
	first  *cursor.Block // the first of these that could not be done
	last   string        // the last key that was looked at
}

// run walks on to the end, or as far as the pass may.
func (w *walk) run(ctx context.Context) error {
	w.begin()
	whole, err := true, error(nil)
	if w.walked { // a lane that started cold has looked at everything
		w.record.Blocked = nil
	} else {
		whole, err = w.keys(ctx)
	}
	if whole && err == nil {
		w.end()
	}
	return errors.Join(err, w.save(ctx))
}

// keys looks at the keys behind where the walk has come, and reports whether these were all. What cannot be done is for the next
// walk; only where it is not known what was done the walk stops.
func (w *walk) keys(ctx context.Context) (whole bool, err error) {
	if err := w.lookAnew(); err != nil {
		return false, err
	}
	e := w.evaluator()
	e.Siblings = true
	since, read := time.Now(), 0
	for g, err := range w.Walker.Walk(ctx, w.target.Repository, w.head.Tree, w.versioning, w.record.After) {
		w.letGo() // a walk has nothing under way of any shard
		if w.cut(ctx) {
			return false, ctx.Err()
		}
		if err == nil {
			err = w.look(ctx, e, g)
		}
		if err != nil {
			w.failed(ctx, w.flush(ctx))
			return false, err
		}
		if read++; read == w.EventBudget {
			w.report.OverBudget = true
			return false, w.flush(ctx)
		}
		if len(w.items) < w.most() && !w.sliceOver(ctx, since) {
			continue
		}
		if err := errors.Join(w.flush(ctx), w.save(ctx)); err != nil {
			return false, err
		}
		since = time.Now()
	}
	return true, w.flush(ctx)
}

// look gathers what is due of a key. A key that has nothing is done with, unless others before it are not.
func (w *walk) look(ctx context.Context, e *walker.Evaluator, g *walker.Group) error {
	if n := lifecycle.ShardOf(w.target.Repository, g.Key); w.serves(n) && w.prefixes.CoverKey(g.Key) {
		if err := w.gatherKey(ctx, e, g, &shard{number: n}); err != nil {
			return err
		}
	}
	w.last = g.Key
	if len(w.items) == 0 {
		w.settle()
	}
	return nil
}

// serves reports whether the walk acts on the keys of a shard, which others may hold. One with malformed records rests.
func (w *walk) serves(n int) bool {
	sh := w.byNumber[n]
	return slices.Contains(w.Shards, n) && (sh == nil || !sh.failed)
}

// gatherKey adds what is due of a key. What holds no object is blocked.
func (w *walk) gatherKey(ctx context.Context, e *walker.Evaluator, g *walker.Group, sh *shard) error {
	unit := graveler.Key(g.Key)
	for due, err := range e.Evaluate(ctx, g) {
		if undecodable(err) {
			w.items = append(w.items, pending{shard: sh, unit: unit, refusal: err.Error()})
			return nil
		}
		if err != nil {
			return err
		}
		gone, err := w.gone(ctx, due.Object)
		if err != nil {
			return err
		}
		if gone {
			continue
		}
		if _, locked := w.lockOf(due); locked { // the next walk will see
			w.count(due.Action.Kind, lifecycle.SkippedObjectLock)
			continue
		}
		if len(w.items) >= w.most() { // a key may have more versions than are dispatched together
			if err := w.dispatch(ctx); err != nil {
				return err
			}
		}
		w.items = append(w.items, pending{shard: sh, unit: unit, item: itemOf(due)})
	}
	return nil
}

// flush has what was gathered dispatched, and so is done with the keys up to the last one.
func (w *walk) flush(ctx context.Context) error {
	if len(w.items) == 0 {
		return nil
	}
	if err := w.dispatch(ctx); err != nil {
		return err
	}
	w.settle()
	return nil
}

// dispatch has what was gathered dispatched. After an error nobody knows what was done, and the walk is where it was.
func (w *walk) dispatch(ctx context.Context) error {
	results, err := w.send(ctx, w.items)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(results, func(r dispatch.Result) bool { return !r.Outcome.Settled() })
	if i >= 0 && w.first == nil {
		w.first = w.blockAt(w.record.Blocked, w.items[i].unit, results[i])
	}
	w.items = w.items[:0]
	return nil
}

// settle takes note that everything up to the last key has been dispatched.
func (w *walk) settle() {
	w.advance(w.last, w.first)
	w.first = nil
}

// blockAt returns what is in the way at a unit, since before if that was so then.
func (p *pass) blockAt(before *cursor.Block, unit graveler.Key, r dispatch.Result) *cursor.Block {
	b := &cursor.Block{Key: unit, Since: max(0, p.now.UnixNano()), Reason: r.Reason}
	if before != nil && bytes.Equal(before.Key, unit) {
		b.Since = before.Since
	}
	if b.Reason == "" {
		b.Reason = r.Outcome.String()
	}
	return b
}
