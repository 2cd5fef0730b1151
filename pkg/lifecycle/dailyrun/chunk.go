// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// chunk gathers what is due of the lanes of a group, and has it dispatched together: of all shards one move.
type chunk struct {
	*source
	g        *group
	items    []pending
	bytes    int
	deferred []cursor.Deferred
	refused  map[*shard]bool
	last     graveler.Key // the last unit that was read
	read     int
	over     bool // the budget is used up, or the pass has to end
}

// pending is something to dispatch. What is due of one unit (an entry, or in the lane of delay 0 a key) is settled as a whole.
type pending struct {
	shard   *shard
	unit    graveler.Key
	item    dispatch.Item
	refusal string // it cannot be dispatched
}

func newChunk(s *source, g *group) *chunk {
	return &chunk{source: s, g: g, refused: map[*shard]bool{}}
}

// wants returns the shard of a key, nil where its lane is none of the group, has been stopped, or is past the unit.
func (c *chunk) wants(key string, unit graveler.Key) *shard {
	sh := c.shardOf(c.target.Repository, key)
	if sh == nil || c.refused[sh] {
		return nil
	}
	l := c.g.lanes[sh.number]
	if l == nil || c.stopped[l] || l.Step.KeyDone != nil && bytes.Compare(unit, l.Step.KeyDone) <= 0 {
		return nil
	}
	sh.events++
	return sh
}

// add takes what is due. What a lock keeps is looked at again when the lock ends.
func (c *chunk) add(ctx context.Context, sh *shard, unit graveler.Key, due walker.Due) error {
	if gone, err := c.gone(ctx, due.Object); gone || err != nil {
		return err
	}
	if until, locked := c.lockOf(due); locked {
		c.count(due.Action.Kind, lifecycle.SkippedObjectLock)
		c.deferUntil(sh, due.Object, due.Action.Kind, until)
		return nil
	}
	c.push(pending{shard: sh, unit: unit, item: itemOf(due)})
	return nil
}

// refuse stops the lane of a shard before a unit that cannot be judged.
func (c *chunk) refuse(sh *shard, unit graveler.Key, reason string) {
	c.refused[sh] = true
	c.push(pending{shard: sh, unit: unit, refusal: reason})
}

func (c *chunk) push(p pending) {
	c.items = append(c.items, p)
	c.bytes += len(p.unit) + 2*len(p.item.Key) + len(p.item.ContentIdentity)
}

// passed takes note that everything of a unit has been added.
func (c *chunk) passed(ctx context.Context, unit graveler.Key) error {
	c.last = unit
	c.read++
	c.over = c.EventBudget > 0 && c.read >= c.EventBudget || c.cut(ctx)
	if len(c.items)+len(c.deferred) < chunkItems && c.bytes < chunkBytes {
		return nil
	}
	return c.flush(ctx)
}

// flush has everything dispatched that was gathered, moves the lanes on, and saves how far they have come.
func (c *chunk) flush(ctx context.Context) error {
	changed := len(c.items)+len(c.deferred) > 0
	results, err := c.send(ctx, c.items)
	if err != nil {
		if c.cut(ctx) {
			return err
		}
		c.fail(ctx, laneError(c.g.delay, err))
		results = make([]dispatch.Result, len(c.items))
		for i := range results {
			results[i].Reason = err.Error()
		}
	}
	if err := c.saveDeferred(ctx, results); err != nil {
		return err
	}
	c.settle(results)
	for n, l := range c.g.lanes {
		if !c.stopped[l] && c.last != nil && c.g.of[n].ours() {
			l.Step.KeyDone, l.Step.Started = c.last, true
		}
	}
	c.items, c.deferred, c.bytes = c.items[:0], c.deferred[:0], 0
	if !changed {
		return nil
	}
	return c.save(ctx)
}

// settle stops the lanes that have a unit of which not everything is settled, before that unit.
func (c *chunk) settle(results []dispatch.Result) {
	done := map[*shard]graveler.Key{} // the unit before the one that was come to
	at := map[*shard]graveler.Key{}
	for i, p := range c.items {
		l := c.g.lanes[p.shard.number]
		if c.stopped[l] {
			continue
		}
		if !bytes.Equal(at[p.shard], p.unit) {
			done[p.shard], at[p.shard] = at[p.shard], p.unit
		}
		if results[i].Outcome.Settled() {
			continue
		}
		c.stop(l, p.unit, results[i])
		c.g.of[p.shard.number].behind = true
		if before := done[p.shard]; before != nil {
			l.Step.KeyDone, l.Step.Started = before, true
		}
	}
}

func (c *chunk) stop(l *cursor.Lane, unit graveler.Key, r dispatch.Result) {
	c.stopped[l] = true
	since := c.now.UnixNano()
	if b := l.Blocked; b != nil && bytes.Equal(b.Key, unit) {
		since = b.Since
	}
	reason := r.Reason
	if reason == "" {
		reason = r.Outcome.String()
	}
	l.Blocked = &cursor.Block{Key: unit, Since: max(0, since), Reason: reason}
}

// finish ends the step of the lanes that were not stopped.
func (c *chunk) finish(ctx context.Context) error {
	waiting, err := c.waitingUntil(ctx)
	if err != nil {
		return err
	}
	cold := c.g.delay == 0 && c.g.cold()
	c.walked = c.walked || cold && len(c.g.lanes) == lifecycle.Shards && c.g.after == nil
	for n, l := range c.g.lanes {
		if c.stopped[l] || !c.g.of[n].ours() {
			c.g.of[n].behind, c.walked = true, c.walked && !cold
			continue
		}
		*l = cursor.Lane{Delay: l.Delay, Horizon: l.Step.Horizon, Head: l.Step.Head, RulesHash: l.Step.RulesHash, WaitingUntil: waiting}
	}
	return nil
}

// waitingUntil returns when the first move after the horizon falls due.
func (c *chunk) waitingUntil(ctx context.Context) (int64, error) {
	horizon, head := c.g.step.Horizon.Time, c.g.step.Head.Time
	if c.g.delay == 0 || horizon >= head {
		return 0, nil
	}
	log := graveler.LogName{Branch: c.log.Branch, UID: c.log.UID}
	for m, err := range c.Store.MoveLog(ctx, c.target.Repository, log, horizon, head) {
		if err != nil {
			return 0, err
		}
		return max(0, lifecycle.Nanoseconds(c.calendar().Due(c.g.delay, time.Unix(0, m.Time)))), nil
	}
	return 0, nil
}

// itemOf returns what is dispatched.
func itemOf(d walker.Due) dispatch.Item {
	return dispatch.Item{
		Action: &d.Action.Action, Key: d.Object.Entry, LogicalKey: d.Object.Key, VersionID: d.Object.VersionID, Due: d.At, ContentIdentity: d.Object.ContentIdentity,
	}
}

// lockOf tells whether a lock bars what is due, and until when.
func (s *source) lockOf(d walker.Due) (until time.Time, locked bool) {
	until, locked = d.Object.Locked(s.now)
	return until, locked && d.Action.Permanent(&d.Object.Object)
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
	return c.records.Defer(ctx, c.deferred...)
}

// send has items dispatched, one batch for each shard, and returns their results. Nothing is known of what was done where it returns an error.
func (s *source) send(ctx context.Context, items []pending) ([]dispatch.Result, error) {
	results := make([]dispatch.Result, len(items))
	by := map[int][]int{}
	n := 0
	for i, p := range items {
		if p.refusal != "" {
			results[i] = dispatch.Result{Outcome: lifecycle.Blocked, Reason: p.refusal}
			continue
		}
		by[p.shard.number] = append(by[p.shard.number], i)
		n++
	}
	if n == 0 {
		return results, nil
	}
	if s.DryRun != nil {
		s.plannedOnly(items, results)
		return results, nil
	}
	if s.Limiter != nil {
		waited, err := s.Limiter.Wait(ctx, n)
		s.pass.report.Waited += waited
		if err != nil {
			return nil, err
		}
	}
	var batches []dispatch.Batch
	var shards []int
	for n := range by {
		shards = append(shards, n)
	}
	slices.Sort(shards)
	for _, n := range shards {
		slices.SortStableFunc(by[n], func(i, j int) int { return bytes.Compare(items[i].item.Key, items[j].item.Key) })
		b := dispatch.Batch{Shard: n, Items: make([]dispatch.Item, 0, len(by[n]))}
		for _, i := range by[n] {
			b.Items = append(b.Items, items[i].item)
		}
		batches = append(batches, b)
	}
	answers, err := s.dispatcher.Dispatch(ctx, s.target, batches)
	if err != nil {
		return nil, err
	}
	for b, n := range shards {
		for k, i := range by[n] {
			results[i] = answers[b][k]
			s.count(items[i].item.Action.Kind, results[i].Outcome)
		}
	}
	return results, s.hasMoved()
}

// plannedOnly tells what would be dispatched, each entry once, though several lanes may come to it.
func (s *source) plannedOnly(items []pending, results []dispatch.Result) {
	for i, p := range items {
		if p.refusal != "" {
			continue
		}
		results[i].Outcome = lifecycle.Done
		if h := xxhash.Sum64(p.item.Key); !s.planned[h] {
			s.planned[h] = true
			s.DryRun(s.target, p.item)
			s.count(p.item.Action.Kind, lifecycle.Done)
		}
	}
}

func (s *source) count(kind lifecycle.ActionKind, o lifecycle.Outcome) {
	s.pass.report.Outcomes[Dispatched{s.target.Repository, kind, o}]++
}
