// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// walk takes the walks that are due or under way. Each repository is walked by whoever holds the shard of its name, for all shards.
func (p *pass) walk(ctx context.Context) {
	if p.Walker == nil || p.cut(ctx) {
		return
	}
	underWay := map[sourceID]cursor.Walk{}
	for w, err := range p.records.Walks(ctx) {
		if err != nil {
			p.fail(ctx, fmt.Errorf("walks: %w", err))
			return
		}
		underWay[sourceID{w.RepositoryUID, w.BranchUID}] = w
	}
	for _, sh := range p.shards {
		r := p.round(sh, underWay)
		if r == nil || !sh.ours() {
			continue
		}
		r.run(ctx)
		if r.ended() {
			sh.cursor.LastWalked = r.began
		}
	}
}

// round is the walks over all sources of a shard. It has ended when each of them has; until then those that have not are in the records, with how far they have come.
type round struct {
	*pass
	began   int64
	sources []*source
	walks   map[*source]*cursor.Walk // those that have not ended
	saved   map[*source]bool         // those that are in the records
}

// round returns the round of a shard that is under way or due, nil where neither is so.
func (p *pass) round(sh *shard, underWay map[sourceID]cursor.Walk) *round {
	r := &round{pass: p, began: max(0, p.now.UnixNano()), walks: map[*source]*cursor.Walk{}, saved: map[*source]bool{}}
	var all []*source
	for _, s := range p.sources {
		if lifecycle.ShardOf(s.target.Repository, "") != sh.number || s.report.Skipped != "" {
			continue
		}
		all = append(all, s)
		if w, ok := underWay[s.id]; ok {
			r.sources, r.walks[s], r.saved[s] = append(r.sources, s), &w, true
			r.began = min(r.began, w.Began)
		}
	}
	if len(r.sources) > 0 {
		return r
	}
	last := time.Time{}
	if sh.cursor.LastWalked > 0 {
		last = time.Unix(0, sh.cursor.LastWalked)
	}
	if !walkerDue(last, p.now, p.WalkerInterval) {
		return nil
	}
	r.sources = all
	for _, s := range all {
		r.walks[s] = &cursor.Walk{RepositoryUID: s.id.repository, BranchUID: s.id.branch, Began: r.began, Head: s.head}
	}
	return r
}

func (r *round) ended() bool { return len(r.walks) == 0 }

// run walks. What goes wrong with one source is for the next pass, from where it went wrong on.
func (r *round) run(ctx context.Context) {
	for _, s := range r.sources {
		if r.cut(ctx) {
			break
		}
		if !s.ready {
			continue
		}
		err := s.walkFrom(ctx, r.walks[s], func() error { return r.save(ctx) })
		if err = errors.Join(err, s.close()); err != nil {
			s.fail(ctx, fmt.Errorf("walk: %w", err))
			continue
		}
		s.report.Walked = true
		delete(r.walks, s)
		if err := r.forget(ctx, s); err != nil {
			s.fail(ctx, fmt.Errorf("walk: %w", err))
		}
	}
	if err := r.save(ctx); err != nil {
		r.fail(ctx, fmt.Errorf("walks: %w", err))
	}
}

// save saves the walks that have not ended, also those that have not begun, or else the round would be taken for ended without them. A pass over some repositories begins no round that others would end.
func (r *round) save(ctx context.Context) error {
	if r.DryRun != nil {
		return nil
	}
	ctx, cancel := saver(ctx)
	defer cancel()
	for _, s := range r.sources {
		if w := r.walks[s]; w != nil && (r.saved[s] || !r.partial()) {
			if err := r.records.SaveWalk(ctx, *w); err != nil {
				return err
			}
			r.saved[s] = true
		}
	}
	return nil
}

func (r *round) forget(ctx context.Context, s *source) error {
	if r.DryRun != nil || !r.saved[s] {
		return nil
	}
	ctx, cancel := saver(ctx)
	defer cancel()
	return r.records.RemoveWalk(ctx, s.id.repository, s.id.branch)
}

// walkFrom looks at every key behind where the walk has come, and calls save when it has come further. What it cannot do this time is for the next walk; only where it is not known what was done it stops.
func (s *source) walkFrom(ctx context.Context, w *cursor.Walk, save func() error) error {
	if s.walked {
		return nil // a lane that started cold has looked at everything
	}
	if err := s.lookAnew(); err != nil {
		return err
	}
	e := s.evaluator()
	e.Siblings = true
	var items []pending
	last := w.After
	flush := func() error {
		if _, err := s.send(ctx, items); err != nil {
			return err
		}
		items = items[:0]
		w.After = last
		return nil
	}
	for g, err := range s.Walker.Walk(ctx, s.target.Repository, s.head.Tree, s.versioning, w.After) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && s.prefixes.CoverKey(g.Key) {
			items, err = s.walkGroup(ctx, e, g, items)
		}
		if err != nil {
			return errors.Join(err, flush())
		}
		last = g.Key
		if len(items) < s.chunk {
			continue
		}
		if err := errors.Join(flush(), save()); err != nil {
			return err
		}
	}
	return flush()
}

// walkGroup adds what is due of a key. What holds no object is an error for the report, and the walk goes on.
func (s *source) walkGroup(ctx context.Context, e *walker.Evaluator, g *walker.Group, items []pending) ([]pending, error) {
	for due, err := range e.Evaluate(ctx, g) {
		if undecodable(err) {
			s.fail(ctx, fmt.Errorf("walk: %w", err))
			break
		}
		if err != nil {
			return items, err
		}
		gone, err := s.gone(ctx, due.Object)
		if err != nil {
			return items, err
		}
		if gone {
			continue
		}
		if _, locked := s.lockOf(due); locked { // the next walk will see
			s.count(due.Action.Kind, lifecycle.SkippedObjectLock)
			continue
		}
		n := lifecycle.ShardOf(s.target.Repository, g.Key)
		items = append(items, pending{shard: &shard{number: n}, unit: graveler.Key(g.Key), item: itemOf(due)})
	}
	return items, nil
}
