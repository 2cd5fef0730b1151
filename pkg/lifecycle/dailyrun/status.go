// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// Status is how far lifecycle has come.
type Status struct {
	Now     time.Time
	Shards  []ShardReport // Events and Took are of no pass, and 0
	Sources []SourceStatus
}

// SourceStatus is about a branch that has rules.
type SourceStatus struct {
	dispatch.Source
	Skipped string // why passes leave it out; "" where they do not
	// WalkedTo is the last key that a walk under way has looked at; nil: none is under way.
	WalkedTo *string
	// LastWalked is when the last walk over the branch that has ended began; zero where there was none.
	LastWalked time.Time
	// WalkBlocked is the first key that a walk could not do; nil: there was none.
	WalkBlocked *cursor.Block
	// LockBlocked is what could not be carried out, for the longest time, of what a lock had deferred; nil: there is nothing of the kind.
	LockBlocked *cursor.Block
	Lanes       []LaneStatus // by shard and delay
}

// LaneStatus is about a lane in one shard.
type LaneStatus struct {
	Shard int
	Delay int // in days; 0 is the lane of what has no delay
	// Cold: no step has been finished, so that the next one looks at everything.
	Cold bool
	// Unfinished: a step has been begun.
	Unfinished bool
	// Head is the time of the last move that was read, and Horizon that of the last move that had fallen due.
	Head, Horizon time.Time
	// Lag is how much later the last move is that could have been read or had fallen due; 0 where there is nothing to do.
	Lag time.Duration
	// WaitingUntil is when the next move falls due; zero: nothing is waiting.
	WaitingUntil time.Time
	// Blocked is what the lane stands before; nil where it does not.
	Blocked *cursor.Block
}

// ReadStatus reads how far passes with these settings have come, of the shards in c.Shards, whoever holds them. What cannot be
// read is in the error, beside the rest.
func ReadStatus(ctx context.Context, c Config) (*Status, error) {
	c.Holder = nil
	p, err := newPass(c)
	if err != nil {
		return nil, err
	}
	p.begin(ctx)
	status := &Status{Now: p.now}
	for _, sh := range p.shards {
		status.Shards = append(status.Shards, ShardReport{Shard: sh.number, Time: timeOf(sh.cursor.Time), LastWalked: timeOf(sh.cursor.LastWalked)})
	}
	stuck := p.stuck(ctx)
	for _, s := range p.sources {
		one, err := s.status(ctx)
		p.fail(ctx, err)
		one.LockBlocked = stuck[s.id]
		status.Sources = append(status.Sources, one)
	}
	return status, errors.Join(p.errs...)
}

// stuck returns by source what has been in the way of deferred objects for the longest time.
func (p *pass) stuck(ctx context.Context) map[sourceID]*cursor.Block {
	stuck := map[sourceID]*cursor.Block{}
	for _, sh := range p.shards {
		for d, err := range p.records.Due(ctx, sh.number, p.now.UnixNano()) {
			if err != nil {
				p.fail(ctx, fmt.Errorf("shard %d: deferred objects: %w", sh.number, err))
				continue
			}
			id := sourceID{d.RepositoryUID, d.BranchUID}
			if first := stuck[id]; d.Blocked != nil && (first == nil || d.Blocked.Since < first.Since) {
				stuck[id] = d.Blocked
			}
		}
	}
	return stuck
}

func (s *source) status(ctx context.Context) (SourceStatus, error) {
	status := SourceStatus{Source: s.target, Skipped: s.report.Skipped}
	if status.Skipped != "" {
		return status, nil
	}
	err := s.unfrozen
	if err == nil {
		err = s.prepare(ctx)
	}
	w, _, walkErr := s.records.Walk(ctx, s.id.repository, s.id.branch, s.walkedShards())
	status.LastWalked = timeOf(w.Last)
	if s.needsWalks() {
		status.WalkBlocked = w.Blocked
		if w.Began != 0 {
			status.WalkedTo = &w.After
		}
	}
	needed := s.needed()
	for _, p := range s.positions {
		p.drop(needed)
		for delay := range needed {
			p.lane(delay)
		}
		for _, l := range p.lanes {
			one, laneErr := s.laneStatus(ctx, p.number, l)
			err = errors.Join(err, laneErr)
			status.Lanes = append(status.Lanes, one)
		}
	}
	if err = errors.Join(err, walkErr, s.close()); err != nil {
		err = fmt.Errorf("lifecycle of %s/%s: %w", s.target.Repository, s.target.Branch, err)
	}
	return status, err
}

func (s *source) laneStatus(ctx context.Context, shard int, l *cursor.Lane) (LaneStatus, error) {
	status := LaneStatus{
		Shard: shard, Delay: l.Delay, Cold: l.Head == (cursor.Point{}), Unfinished: l.Step != nil,
		Head: timeOf(l.Head.Time), Horizon: timeOf(l.Horizon.Time), WaitingUntil: timeOf(l.WaitingUntil), Blocked: l.Blocked,
	}
	if status.Cold {
		return status, nil
	}
	lag := s.head.Time - l.Head.Time
	switch {
	case l.Delay > 0 && l.Horizon.Time == 0: // nothing has fallen due yet, or what was to be the first is late
		if l.WaitingUntil != 0 {
			lag = max(lag, lifecycle.Nanoseconds(s.now)-l.WaitingUntil)
		}
	case l.Delay > 0:
		horizon, err := s.horizon(ctx, l.Delay, s.head)
		if err != nil {
			return status, laneError(l.Delay, err)
		}
		lag = max(lag, horizon.Time-l.Horizon.Time)
	}
	status.Lag = time.Duration(max(0, lag))
	return status, nil
}
