// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// rounds: what was left unfinished, and then the next step.
const rounds = 2

// runLanes takes the steps of all lanes of the source, and saves how far they have come.
func (s *source) runLanes(ctx context.Context) {
	if s.report.Skipped != "" {
		return
	}
	err := s.unfrozen
	if err == nil {
		err = s.prepare(ctx)
	}
	for range rounds {
		if err == nil {
			err = s.step(ctx)
		}
	}
	for _, err := range []error{err, s.close(), s.save(ctx)} {
		if err != nil {
			s.behindAll()
			s.fail(ctx, err)
		}
	}
	for _, p := range s.positions {
		for _, l := range p.lanes {
			if l.Step != nil {
				p.behind = true
			}
			if l.Blocked != nil {
				s.report.Blocked++
			}
			if at := timeOf(l.WaitingUntil); s.report.WaitingUntil.IsZero() || !at.IsZero() && at.Before(s.report.WaitingUntil) {
				s.report.WaitingUntil = at
			}
		}
	}
}

func (s *source) behindAll() {
	for _, sh := range s.shards {
		sh.behind = true
	}
}

// prepare reads what all lanes start from.
func (s *source) prepare(ctx context.Context) error {
	for _, sh := range s.shards {
		if sh.ours() {
			s.positions = append(s.positions, s.newPosition(sh))
		}
	}
	replay, scan := s.snapshot.RulesForShard(0, s.retention) // the rules of all shards are the same
	s.scan = scan.Actions(s.target.Repository)
	for _, delay := range replay.Lanes(s.target.Repository) {
		actions := replay.Lane(s.target.Repository, delay)
		covered, err := s.covered(ctx, delay)
		if err != nil {
			return err
		}
		if covered {
			s.replay = append(s.replay, actions...)
		} else {
			s.scan = append(s.scan, actions...)
		}
	}
	s.prefixes = walker.PrefixesOf(s.replay, s.scan)
	s.ready = true
	return nil
}

// covered reports whether the log goes back as far as the lanes of a delay need it. What they stand at is pinned, so that before
// that nothing is needed, which happens where the clock was set back.
func (s *source) covered(ctx context.Context, delay int) (bool, error) {
	_, err := s.horizon(ctx, delay, s.head)
	if errors.Is(err, graveler.ErrLogTruncated) {
		return len(s.positions) > 0 && !slices.ContainsFunc(s.positions, func(p *position) bool {
			return !slices.ContainsFunc(p.lanes, func(l *cursor.Lane) bool { return l.Delay == delay })
		}), nil
	}
	return err == nil, err
}

// needed returns the lanes that the rules need, by delay, with the hashes of their rules.
func (s *source) needed() map[int][32]byte {
	lanes := map[int][32]byte{}
	for _, delay := range s.delays() {
		lanes[delay] = s.hash(s.lane(delay))
	}
	if len(s.scan) > 0 || slices.ContainsFunc(s.replay, func(a *engine.CompiledAction) bool {
		return a.Kind != lifecycle.AbortMPU // what depends on other versions
	}) {
		lanes[0] = s.hash(s.scan)
	}
	return lanes
}

// delays returns those of the lanes that replay, ascending.
func (s *source) delays() []int {
	var delays []int
	for _, a := range s.replay {
		delays = append(delays, a.Delay)
	}
	slices.Sort(delays)
	return slices.Compact(delays)
}

// lane returns the actions of a delay, the preferred first.
func (s *source) lane(delay int) []*engine.CompiledAction {
	actions := slices.DeleteFunc(slices.Clone(s.replay), func(a *engine.CompiledAction) bool { return a.Delay != delay })
	slices.SortStableFunc(actions, walker.Prefer)
	return actions
}

// hash covers what actions mean, whether their dates have come, and the calendar; not their order.
func (s *source) hash(actions []*engine.CompiledAction) [32]byte {
	var each [][]byte
	for _, a := range actions {
		passed := byte(0)
		if a.Kind == lifecycle.ExpirationDate && !a.Date.After(s.now) {
			passed = 1
		}
		each = append(each, append(bytes.Clone(a.RuleHash[:]), passed))
	}
	slices.SortFunc(each, bytes.Compare)
	h := sha256.New()
	fmt.Fprintf(h, "moraine lifecycle lane 1\n%s\n%d\n%s\n", s.versioning, s.Day, s.DayBoundary)
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(each))))
	for _, one := range each {
		h.Write(one)
	}
	return [32]byte(h.Sum(nil))
}

// step gives each lane its next step, unless it has one, and takes the steps. An error of one lane is taken note of and stops no other.
func (s *source) step(ctx context.Context) error {
	needed := s.needed()
	for _, p := range s.positions {
		p.drop(needed)
		for delay, hash := range needed {
			if err := s.plan(ctx, p.lane(delay), hash); err != nil {
				return err
			}
		}
	}
	c := &chunk{source: s, others: map[string]bool{}, since: time.Now()}
	// What was blocked is tried last: budget, rate and time of a pass are for those that get on.
	for _, blocked := range []bool{false, true} {
		for _, delay := range append(s.delays(), 0) {
			for _, g := range s.groups(delay, blocked) {
				if s.cut(ctx) {
					s.behindAll()
					break
				}
				if slices.ContainsFunc(g.windows(), func(w window) bool { return s.windows[w] == nil }) { // it may take long to read
					if err := c.flush(ctx); err != nil {
						return err
					}
				}
				if err := s.take(ctx, g, c); err != nil {
					s.fail(ctx, laneError(delay, err))
				}
			}
		}
	}
	return c.flush(ctx)
}

func laneError(delay int, err error) error { return fmt.Errorf("lane of %d days: %w", delay, err) }

// plan gives a lane its next step, where it has none and there is something to do. A pass finishes what another has begun only
// where it judges by no earlier horizon: a lane by which a clock that was ahead has judged starts cold.
func (s *source) plan(ctx context.Context, l *cursor.Lane, hash [32]byte) error {
	changed := l.Head != (cursor.Point{}) && l.RulesHash != hash
	if l.Step != nil {
		changed = l.Step.RulesHash != hash
	}
	switch {
	case changed && (l.Delay > 0 || len(s.scan) > 0):
		*l = cursor.Lane{Delay: l.Delay}
	case changed && l.Step != nil: // nothing is left that a cold start would find
		l.Step.RulesHash = hash
	case changed:
		l.RulesHash = hash
	}
	var horizon cursor.Point // of this pass
	if l.Delay > 0 {
		var err error
		horizon, err = s.horizon(ctx, l.Delay, s.head)
		switch {
		case errors.Is(err, graveler.ErrLogTruncated): // the clock was set back so far that nobody can say what is due
			l.Step, l.Blocked = nil, nil
			return nil
		case err != nil:
			return err
		case judged(l) > horizon.Time: // the clock was ahead: what is due by it is not what is due now
			*l = cursor.Lane{Delay: l.Delay}
		case l.Step != nil && horizon.Time > l.Step.Horizon.Time:
			l.Step.Judged = horizon.Time
		}
	}
	if l.Step != nil || s.stepped[l] || s.head.Time == 0 || s.head.Time < l.Head.Time {
		return nil
	}
	cold := l.Head == (cursor.Point{})
	if cold && l.Delay == 0 && len(s.scan) == 0 {
		l.Head, l.RulesHash = s.head, hash
		return nil
	}
	step, err := s.nextStep(ctx, l, horizon)
	if err != nil {
		return err
	}
	if cold || step.Head != l.Head || step.Horizon != l.Horizon {
		step.RulesHash = hash
		l.Step, s.stepped[l] = step, true
	}
	return nil
}

// nextStep returns the step that a lane takes in a pass with a horizon, or as much of it as the budget allows to read.
func (s *source) nextStep(ctx context.Context, l *cursor.Lane, horizon cursor.Point) (*cursor.Step, error) {
	step := &cursor.Step{Horizon: horizon, Head: s.head}
	if l.Head != (cursor.Point{}) {
		var err error
		if step.Head, err = s.affordable(ctx, l.Head, s.head); err != nil {
			return nil, err
		}
		if step.Horizon.Time > step.Head.Time {
			step.Horizon = step.Head
		}
		if l.Judged > 0 {
			if step.Horizon, err = s.affordable(ctx, l.Horizon, step.Horizon); err != nil {
				return nil, err
			}
		}
	}
	if step.Horizon.Time < horizon.Time {
		step.Judged = horizon.Time
	}
	return step, nil
}

// judged returns the latest horizon by which passes have judged for a lane.
func judged(l *cursor.Lane) int64 {
	latest := max(l.Horizon.Time, l.Judged)
	if l.Step != nil {
		latest = max(latest, l.Step.Horizon.Time, l.Step.Judged)
	}
	return latest
}

// group are lanes of one delay that have the same step to take, and so can share the reading.
type group struct {
	delay int
	lanes map[int]*cursor.Lane // by shard
	of    map[int]*position
	step  cursor.Step
	from  cursor.Lane // Horizon and Head
	after graveler.Key
}

func (g *group) behind() {
	for _, p := range g.of {
		p.behind = true
	}
}

func (g *group) cold() bool { return g.from.Head == (cursor.Point{}) }

// news is the part of the log that is new to the lanes.
func (g *group) news() window { return window{g.from.Head.Time, g.step.Head.Time} }

// windows are the parts of the log that are read for the step, move by move: what is new, and, where passes have judged by a
// later horizon than the last step's, what has fallen due since. What was hidden then was not due, and is on both sides of a step
// over that time, so that their difference does not show it.
func (g *group) windows() []window {
	if g.cold() {
		return nil
	}
	all := []window{g.news()}
	if g.from.Judged > 0 {
		all = append(all, window{g.from.Horizon.Time, g.step.Horizon.Time})
	}
	return slices.DeleteFunc(all, func(w window) bool { return w.from >= w.through })
}

// groups returns the lanes of a delay that have a step to take and were not stopped, those that were blocked or the others. A
// lane that stands before others is read for by itself, and after them.
func (s *source) groups(delay int, blocked bool) []*group {
	type same struct {
		h0, m0, h1, m1 cursor.Point
		judged         int64
		done           string
	}
	var groups []*group
	by := map[same]*group{}
	for _, p := range s.positions {
		i := slices.IndexFunc(p.lanes, func(l *cursor.Lane) bool { return l.Delay == delay })
		if i < 0 || p.lanes[i].Step == nil || !p.ours() || s.stopped[p.lanes[i]] || (p.lanes[i].Blocked != nil) != blocked {
			continue
		}
		l := p.lanes[i]
		key := same{l.Horizon, l.Head, l.Step.Horizon, l.Step.Head, l.Judged, string(l.Step.KeyDone)}
		g := by[key]
		if g == nil {
			g = &group{delay: delay, lanes: map[int]*cursor.Lane{}, of: map[int]*position{}, step: *l.Step, from: *l, after: l.Step.KeyDone}
			by[key] = g
			groups = append(groups, g)
		}
		g.lanes[p.number], g.of[p.number] = l, p
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return bytes.Compare(b.after, a.after) })
	return groups
}

// take reads what the step of a group is about. The step ends when what is due has been dispatched.
func (s *source) take(ctx context.Context, g *group, c *chunk) error {
	if err := s.lookAnew(); err != nil {
		g.behind()
		return err
	}
	r := c.begin(g)
	read := s.replayed
	if g.delay == 0 {
		read = s.touchedGroups
	}
	err := read(ctx, g, r)
	if err != nil {
		c.withdraw(r)
	}
	if errors.Is(err, graveler.ErrLogTruncated) {
		for _, l := range g.lanes { // the events are lost, so that everything is looked at
			*l = cursor.Lane{Delay: g.delay, Step: &cursor.Step{Horizon: g.step.Horizon, Head: g.step.Head, Judged: g.step.Judged, RulesHash: g.step.RulesHash}}
		}
		return nil
	}
	if r.whole = err == nil && !r.over; !r.whole {
		g.behind()
	}
	return err
}
