// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

// position is how far the lanes of a source have come in one shard.
type position struct {
	*shard
	stored cursor.Position // as it is in the records
	lanes  []*cursor.Lane  // as they are now, by delay
}

func (s *source) newPosition(sh *shard) *position {
	stored, ok := sh.positions[s.id]
	if !ok {
		stored = cursor.Position{Shard: sh.number, RepositoryUID: s.id.repository, BranchUID: s.id.branch}
	}
	p := &position{shard: sh, stored: stored}
	for _, l := range stored.Lanes {
		p.lanes = append(p.lanes, clone(&l))
	}
	return p
}

func clone(l *cursor.Lane) *cursor.Lane {
	c := *l
	if l.Step != nil {
		step := *l.Step
		c.Step = &step
	}
	return &c
}

// lane returns the lane of a delay, a new one where there is none.
func (p *position) lane(delay int) *cursor.Lane {
	i, found := slices.BinarySearchFunc(p.lanes, delay, func(l *cursor.Lane, delay int) int { return l.Delay - delay })
	if !found {
		p.lanes = slices.Insert(p.lanes, i, &cursor.Lane{Delay: delay})
	}
	return p.lanes[i]
}

// drop forgets the lanes that no rule needs any more.
func (p *position) drop(needed map[int][32]byte) {
	p.lanes = slices.DeleteFunc(p.lanes, func(l *cursor.Lane) bool {
		_, ok := needed[l.Delay]
		return !ok
	})
}

// present returns the position as it is to be stored. Lanes that have not begun are left out, since they would say nothing.
func (p *position) present() cursor.Position {
	now := p.stored
	now.Lanes = nil
	for _, l := range p.lanes {
		if l.Head != (cursor.Point{}) || l.Step != nil {
			now.Lanes = append(now.Lanes, *clone(l))
		}
	}
	return now
}

// save saves the positions that have changed. What they name is pinned before, and what they named is let go of afterwards.
func (s *source) save(ctx context.Context) (err error) {
	if s.DryRun != nil {
		return nil
	}
	defer func() { s.unsaved = s.unsaved || err != nil }()
	ctx, cancel := saver(ctx)
	defer cancel()
	var changed []*position
	var records []cursor.Position
	for _, p := range s.positions {
		if now := p.present(); p.ours() && !now.Equal(p.stored) {
			changed, records = append(changed, p), append(records, now)
		}
	}
	// On a store that is far away one after another would take too long.
	err = s.pinAll(ctx, changed, func(i int, p *position) (before, need pin) {
		before = s.pinOf(p.stored)
		return before, union(before, s.pinOf(records[i]))
	})
	if err == nil {
		err = s.records.SavePositions(ctx, records...)
	}
	if err != nil {
		return unsaved(err)
	}
	err = s.pinAll(ctx, changed, func(i int, p *position) (before, need pin) {
		need = s.pinOf(records[i])
		return union(s.pinOf(p.stored), need), need
	})
	for i, p := range changed {
		p.stored = records[i]
	}
	return unsaved(err)
}

// pinsAtOnce bounds how many pins are written at a time.
const pinsAtOnce = 8

func (s *source) pinAll(ctx context.Context, all []*position, pins func(i int, p *position) (before, need pin)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(pinsAtOnce)
	for i, p := range all {
		before, need := pins(i, p)
		g.Go(func() error { return s.pin(ctx, p.number, before, need) })
	}
	return g.Wait()
}

// pin is what a position needs of the past.
type pin struct {
	commits map[graveler.CommitID]bool
	from    int64 // of the log
	log     bool
}

// pinOf returns what a position needs: the trees of its horizons and heads, and the log from the first of these on.
func (s *source) pinOf(p cursor.Position) pin {
	need := pin{commits: map[graveler.CommitID]bool{}, from: math.MaxInt64}
	add := func(points ...cursor.Point) {
		for _, at := range points {
			if at.Commit != "" {
				need.commits[at.Commit] = true
			}
			need.from, need.log = min(need.from, at.Time), true
		}
	}
	for _, l := range p.Lanes {
		if l.Head != (cursor.Point{}) {
			add(l.Head)
			if l.Delay > 0 {
				add(l.Horizon)
			}
		}
		if l.Step != nil {
			add(l.Step.Head)
			if l.Delay > 0 {
				add(l.Step.Horizon)
			}
		}
	}
	return need
}

func union(a, b pin) pin {
	u := pin{commits: maps.Clone(a.commits), from: min(a.from, b.from), log: a.log || b.log}
	maps.Copy(u.commits, b.commits)
	return u
}

func (a pin) equal(b pin) bool {
	return a.from == b.from && a.log == b.log && maps.Equal(a.commits, b.commits)
}

// pin makes what is pinned for a shard of the source what is needed, where that was not so before.
func (s *source) pin(ctx context.Context, shard int, before, need pin) error {
	if before.equal(need) {
		return nil
	}
	owner := pinOwner(shard, s.id.branch)
	if !need.log {
		return s.Store.RemovePin(ctx, s.target.Repository, owner)
	}
	return s.Store.PutPin(ctx, s.target.Repository, owner, graveler.PinParams{
		Commits: slices.Sorted(maps.Keys(need.commits)), Logs: map[string]int64{s.id.branch: need.from},
	})
}

func pinOwner(shard int, branchUID string) string { return pinsOf(shard) + branchUID }

// pinsOf is what the owners of the pins of a shard begin with.
func pinsOf(shard int) string { return fmt.Sprintf("lifecycle/%02d/", shard) }
