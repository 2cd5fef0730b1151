// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// runDeferred looks again at what was deferred to a time that has come.
func (p *pass) runDeferred(ctx context.Context) {
	sources := map[sourceID]*source{}
	for _, s := range p.sources {
		sources[s.id] = s
	}
	for _, sh := range p.shards {
		p.letGo()
		if p.cut(ctx) {
			return
		}
		if sh.ours() {
			p.runDue(ctx, sh, sources)
		}
	}
}

func (p *pass) runDue(ctx context.Context, sh *shard, sources map[sourceID]*source) {
	due := map[*source][]cursor.Deferred{}
	blocked := map[*source]bool{}
	n := 0
	look := func() {
		for s, all := range due {
			stuck, err := s.again(ctx, sh, all)
			for _, err := range []error{err, s.close()} {
				if err != nil {
					sh.behind = true
					s.fail(ctx, fmt.Errorf("deferred objects: %w", err))
				}
			}
			if stuck && !blocked[s] {
				blocked[s] = true
				s.report.Blocked++
			}
		}
		clear(due)
		n = 0
		p.letGo()
	}
	for d, err := range p.records.Due(ctx, sh.number, p.now.UnixNano()) {
		if err != nil {
			sh.behind = true
			p.fail(ctx, fmt.Errorf("shard %d: deferred objects: %w", sh.number, err))
			continue
		}
		id := sourceID{d.RepositoryUID, d.BranchUID}
		switch s := sources[id]; {
		case s == nil:
			p.stale = p.stale || !p.isLive(id)
		case !s.ready:
			sh.behind = sh.behind || s.report.Skipped == ""
		default:
			due[s] = append(due[s], d)
			n++
		}
		if n >= p.most() {
			look()
		}
		if !sh.ours() {
			return
		}
	}
	look()
}

// again looks at deferred objects, and forgets those that are done with. It reports whether one could not be carried out, which is for the next pass.
func (s *source) again(ctx context.Context, sh *shard, all []cursor.Deferred) (stuck bool, err error) {
	if err := s.lookAnew(); err != nil {
		return false, err
	}
	slices.SortFunc(all, func(a, b cursor.Deferred) int {
		return cmp.Or(cmp.Compare(a.LogicalKey, b.LogicalKey), bytes.Compare(a.Key, b.Key))
	})
	var done, later []cursor.Deferred
	var items []pending
	var of []cursor.Deferred // the items
	for _, d := range all {
		due, found, young, err := s.lookAgain(ctx, d)
		if undecodable(err) {
			err = nil // it is not the object that was deferred
		}
		if err != nil {
			return false, err
		}
		until, locked := time.Time{}, false
		if found {
			until, locked = s.lockOf(due)
		}
		switch {
		case young: // it stays deferred
			if d.Blocked != nil {
				d.Blocked = nil
				later = append(later, d)
			}
		case !found:
			done = append(done, d)
		case locked:
			s.count(due.Action.Kind, lifecycle.SkippedObjectLock)
			done = append(done, d)
			later = s.appendLater(later, sh, d, until)
		default:
			items, of = append(items, pending{shard: sh, unit: d.Key, item: itemOf(due)}), append(of, d)
		}
	}
	results, err := s.send(ctx, items)
	if err != nil {
		return false, err
	}
	for i, r := range results {
		switch {
		case !r.Outcome.Settled() || r.Outcome == lifecycle.SkippedObjectLock && !r.Until.IsZero() && !r.Until.After(s.now):
			sh.behind, stuck = true, true
			d := of[i]
			d.Blocked = s.blockAt(d.Blocked, d.Key, r)
			later = append(later, d)
			continue
		case r.Outcome == lifecycle.SkippedObjectLock:
			later = s.appendLater(later, sh, of[i], r.Until)
		}
		done = append(done, of[i])
	}
	if s.DryRun != nil || !sh.ours() {
		return stuck, nil
	}
	ctx, cancel := saver(ctx)
	defer cancel()
	if err := s.records.Defer(ctx, later...); err != nil {
		return stuck, unsaved(err)
	}
	return stuck, unsaved(s.records.RemoveDeferred(ctx, done...))
}

// appendLater defers an object once more. The end of a legal hold is not known, but when it comes it is a move.
func (s *source) appendLater(later []cursor.Deferred, sh *shard, d cursor.Deferred, until time.Time) []cursor.Deferred {
	if until.IsZero() {
		return later
	}
	d.Shard, d.Due, d.Blocked = sh.number, max(0, lifecycle.Nanoseconds(until)), nil
	return append(later, d)
}

// lookAgain judges a deferred object as it is now, by all rules. It is young where one of these is meant for it and the branch
// did not show it then: it was hidden, or displaced once more, or the clock has been set back.
func (s *source) lookAgain(ctx context.Context, d cursor.Deferred) (due walker.Due, found, young bool, err error) {
	head, err := s.present(ctx)
	if err != nil {
		return walker.Due{}, false, false, err
	}
	o, err := head.Object(ctx, d.Key, max(walker.Counts(s.replay), walker.Counts(s.scan)))
	if err != nil || o == nil || !bytes.Equal(o.ContentIdentity, d.Identity) {
		return walker.Due{}, false, false, err
	}
	if gone, err := s.gone(ctx, o); gone || err != nil {
		return walker.Due{}, false, false, err
	}
	due, found, err = s.evaluator().Judge(ctx, o)
	young = err == nil && !found && slices.ContainsFunc(s.replay, func(a *engine.CompiledAction) bool { return a.Applies(&o.Object) })
	return due, found, young, err
}
