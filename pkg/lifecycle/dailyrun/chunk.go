// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// chunk gathers what is due of the lanes of a source, whatever their delays, and has it dispatched together: of all lanes and shards one move.
type chunk struct {
	*source
	readings []*reading // those whose steps have not ended; the last one may be under way
	items    []pending
	bytes    int
	deferred []cursor.Deferred
	others   map[string]bool // entries of items of readings that have ended
	indexed  int             // how many items others is of
	since    time.Time       // when gathering began
}

// reading is how far the reading for a group of lanes has come.
type reading struct {
	*chunk
	g       *group
	refused map[*shard]bool
	last    graveler.Key // the last unit that was read, in this pass or an earlier one
	read    int
	over    bool // the budget is used up, or the pass has to end
	whole   bool // everything was read
}

// pending is something to dispatch. What is due of one unit (an entry, or in the lane of delay 0 a key) is settled as a whole.
type pending struct {
	of      *reading // nil: a walk, or what was deferred
	shard   *shard
	unit    graveler.Key
	before  graveler.Key // the last unit that was read before it; nil: none
	item    dispatch.Item
	refusal string // it cannot be dispatched
}

// begin adds the reading for a group.
func (c *chunk) begin(g *group) *reading {
	for _, p := range c.items[c.indexed:] {
		c.others[string(p.item.Key)] = true
	}
	c.indexed = len(c.items)
	r := &reading{chunk: c, g: g, refused: map[*shard]bool{}, last: g.after}
	c.readings = append(c.readings, r)
	return r
}

// withdraw leaves out a reading, and what it has added, since it has failed.
func (c *chunk) withdraw(r *reading) {
	c.readings = slices.DeleteFunc(c.readings, func(other *reading) bool { return other == r })
	c.items = slices.DeleteFunc(c.items, func(p pending) bool { return p.of == r }) // all of them are behind what is indexed
	r.g.behind()
	r.rest()
}

// rest stops the lanes where no more is to be read: what is left is for the next pass.
func (r *reading) rest() {
	for _, l := range r.g.lanes {
		r.stopped[l] = r.stopped[l] || r.over
	}
}

// wants returns the shard of a key, nil where its lane is none of the group, or has been stopped.
func (r *reading) wants(key string) *shard {
	sh := r.shardOf(r.target.Repository, key)
	if sh == nil || r.refused[sh] {
		return nil
	}
	if l := r.g.lanes[sh.number]; l == nil || r.stopped[l] {
		return nil
	}
	sh.events++
	return sh
}

// add takes what is due. What a lock keeps is looked at again when the lock ends.
func (r *reading) add(ctx context.Context, sh *shard, unit graveler.Key, due walker.Due) error {
	// Another lane may have come to it. What that one has done is seen afterwards, so that nothing is dispatched twice. And a key
	// may have more versions than are dispatched together.
	if r.others[string(due.Object.Entry)] || len(r.items) >= r.most() {
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	if r.stopped[r.g.lanes[sh.number]] || sh.released {
		return nil // an earlier part of the unit was not settled, or it is another's now
	}
	if gone, err := r.gone(ctx, due.Object); gone || err != nil {
		return err
	}
	if until, locked := r.lockOf(due); locked {
		r.count(due.Action.Kind, lifecycle.SkippedObjectLock)
		r.deferUntil(sh, due.Object, due.Action.Kind, until)
		return nil
	}
	r.push(pending{of: r, shard: sh, unit: unit, before: r.last, item: itemOf(due)})
	return nil
}

// refuse stops the lane of a shard before a unit that cannot be judged.
func (r *reading) refuse(sh *shard, unit graveler.Key, reason string) {
	r.refused[sh] = true
	r.push(pending{of: r, shard: sh, unit: unit, before: r.last, refusal: reason})
}

func (c *chunk) push(p pending) {
	c.items = append(c.items, p)
	c.bytes += len(p.unit) + 2*len(p.item.Key) + len(p.item.ContentIdentity)
}

// passed takes note that everything of a unit has been added.
func (r *reading) passed(ctx context.Context, unit graveler.Key) error {
	r.last = unit
	r.read++
	r.over = r.cut(ctx)
	if r.EventBudget > 0 && r.read >= r.EventBudget {
		r.over, r.report.OverBudget = true, true
	}
	if len(r.items) < r.most() && len(r.deferred) < r.Config.chunk && r.bytes < chunkBytes && !r.sliceOver(ctx, r.since) && !r.lost {
		return nil
	}
	return r.flush(ctx)
}

// flush has everything dispatched that was gathered, moves the lanes on, ends the steps of those that were read to the end, and
// saves how far all have come.
func (c *chunk) flush(ctx context.Context) error {
	err := c.dispatch(ctx)
	var underWay []*reading
	for _, r := range c.readings {
		switch {
		case err != nil:
			r.g.behind()
		case r.whole:
			err = r.finish(ctx)
		case !r.over:
			underWay = append(underWay, r)
		}
		r.rest()
	}
	c.readings, c.items, c.deferred, c.bytes = underWay, c.items[:0], c.deferred[:0], 0
	clear(c.others)
	c.indexed = 0
	if err == nil {
		err = c.save(ctx)
	}
	c.since = time.Now()
	c.letGo()
	return err
}

// dispatch has everything dispatched and moves the lanes on: to the last unit that was read, or where something is not settled to
// the one before. Where the pass has to end, nothing of the chunk is.
func (c *chunk) dispatch(ctx context.Context) error {
	results, err := c.send(ctx, c.items)
	if err != nil {
		results = make([]dispatch.Result, len(c.items))
		if err = c.laneError(err); !c.cut(ctx) {
			c.fail(ctx, err)
			for i := range results {
				results[i].Reason = err.Error()
			}
			err = nil
		}
	}
	if err := c.saveDeferred(ctx, results); err != nil {
		return err
	}
	cut := map[*reading]bool{}
	for i, p := range c.items { // the first of a lane, and where the pass has to end of the reading, says how far it goes
		switch l := p.of.g.lanes[p.shard.number]; {
		case err != nil && !cut[p.of]:
			cut[p.of], p.of.last = true, p.before
		case err == nil && !c.stopped[l] && !results[i].Outcome.Settled():
			c.stop(l, p, results[i])
		}
	}
	for _, r := range c.readings {
		for n, l := range r.g.lanes {
			if !c.stopped[l] && r.g.of[n].ours() {
				c.advance(l, r.last)
			}
		}
	}
	if err == nil && len(c.readings) > 1 {
		err = c.lookAnew()
	}
	return err
}

// laneError names the lanes that an error is about.
func (c *chunk) laneError(err error) error {
	var delays []int
	for _, r := range c.readings {
		if !slices.Contains(delays, r.g.delay) {
			delays = append(delays, r.g.delay)
		}
	}
	if len(delays) == 1 {
		return laneError(delays[0], err)
	}
	return fmt.Errorf("lanes of %v days: %w", delays, err)
}

// advance takes note that a lane is done with a unit, and so with what was in its way up to there.
func (c *chunk) advance(l *cursor.Lane, unit graveler.Key) {
	if unit == nil {
		return
	}
	l.Step.KeyDone, l.Step.Started = unit, true
	if b := l.Blocked; b != nil && bytes.Compare(b.Key, unit) <= 0 {
		l.Blocked = nil
	}
}

// stop stops a lane before a unit that is not settled.
func (c *chunk) stop(l *cursor.Lane, p pending, r dispatch.Result) {
	c.stopped[l] = true
	p.of.g.of[p.shard.number].behind = true
	c.advance(l, p.before)
	l.Blocked = c.blockAt(l.Blocked, p.unit, r)
}

// finish ends the step of the lanes that were not stopped.
func (r *reading) finish(ctx context.Context) error {
	waiting, err := r.waitingUntil(ctx)
	if err != nil {
		r.g.behind()
		return laneError(r.g.delay, err)
	}
	cold := r.g.delay == 0 && r.g.cold()
	r.walked = r.walked || cold && len(r.g.lanes) == lifecycle.Shards && r.g.after == nil
	for n, l := range r.g.lanes {
		if r.stopped[l] || !r.g.of[n].ours() {
			r.g.of[n].behind, r.walked = true, r.walked && !cold
			continue
		}
		*l = cursor.Lane{Delay: l.Delay, Horizon: l.Step.Horizon, Head: l.Step.Head, Judged: l.Step.Judged, RulesHash: l.Step.RulesHash, WaitingUntil: waiting}
	}
	return nil
}

// waitingUntil returns when the first move after the horizon falls due.
func (r *reading) waitingUntil(ctx context.Context) (int64, error) {
	horizon, head := r.g.step.Horizon.Time, r.g.step.Head.Time
	if r.g.delay == 0 || horizon >= head {
		return 0, nil
	}
	log := graveler.LogName{Branch: r.log.Branch, UID: r.log.UID}
	for m, err := range r.Store.MoveLog(ctx, r.target.Repository, log, horizon, head) {
		if err != nil {
			return 0, err
		}
		return max(0, lifecycle.Nanoseconds(r.calendar().Due(r.g.delay, time.Unix(0, m.Time)))), nil
	}
	return 0, nil
}

// deferUntil takes note of an object to be looked at again. The end of a legal hold is not known, but when it comes it is a move.
func (c *chunk) deferUntil(sh *shard, o *walker.Object, kind lifecycle.ActionKind, until time.Time) {
	if !until.IsZero() {
		c.deferred = append(c.deferred, c.deferral(sh, o.Entry, o.Key, kind, o.ContentIdentity, until))
	}
}

func (s *source) deferral(sh *shard, entry graveler.Key, key string, kind lifecycle.ActionKind, identity []byte, until time.Time) cursor.Deferred {
	return cursor.Deferred{
		Shard: sh.number, Due: max(0, lifecycle.Nanoseconds(until)), RepositoryUID: s.id.repository, BranchUID: s.id.branch,
		Key: entry, LogicalKey: key, Kind: kind.String(), Identity: identity,
	}
}

// saveDeferred saves what is to be looked at again, also what the dispatcher has found locked, before any lane moves past it.
func (c *chunk) saveDeferred(ctx context.Context, results []dispatch.Result) error {
	for i, r := range results {
		if r.Outcome == lifecycle.SkippedObjectLock && !r.Until.IsZero() {
			p := c.items[i]
			c.deferred = append(c.deferred, c.deferral(p.shard, p.item.Key, p.item.LogicalKey, p.item.Action.Kind, p.item.ContentIdentity, r.Until))
		}
	}
	if c.DryRun != nil {
		return nil
	}
	ctx, cancel := saver(ctx)
	defer cancel()
	return unsaved(c.records.Defer(ctx, c.deferred...))
}
