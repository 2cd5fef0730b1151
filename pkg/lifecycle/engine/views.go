// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// RulesForShard returns what a shard works from where the branch log is kept for retention: the replay view, of the kinds that
// have a delay which the log covers with a day to spare, all of them event-driven; and the walk view, of the kinds without a
// delay and of those whose delay the log does not cover. Disabled rules are in neither. The rules are the same in all shards,
// since a prefix has keys in each, but every call makes views of its own. A shard that does not exist is a panic.
func (s *Snapshot) RulesForShard(shard int, retention time.Duration) (replay, walk *Snapshot) {
	if shard < 0 || shard >= lifecycle.Shards {
		panic(fmt.Sprintf("lifecycle shard %d: there are %d", shard, lifecycle.Shards))
	}
	replay = s.view(func(a *CompiledAction) bool {
		a.Mode = EventDriven
		return a.Kind.Replay() && a.Delay > 0 && s.covered(a, retention)
	})
	walk = s.view(func(a *CompiledAction) bool {
		return !a.Kind.Replay() || s.promoted(a, retention)
	})
	return replay, walk
}

// RecoveryView returns everything that is enabled.
func (s *Snapshot) RecoveryView() *Snapshot {
	return s.view(func(*CompiledAction) bool { return true })
}

// view returns the copies of the enabled actions that keep wants, which may change them.
func (s *Snapshot) view(keep func(*CompiledAction) bool) *Snapshot {
	if s == nil {
		return nil
	}
	v := &Snapshot{calendar: s.calendar, actions: map[graveler.RepositoryID][]*CompiledAction{}}
	for id, actions := range s.actions {
		for _, a := range actions {
			if c := *a; a.Active && keep(&c) {
				v.actions[id] = append(v.actions[id], &c)
			}
		}
	}
	return v.unlessEmpty()
}

// covered reports whether a log that is kept for retention goes back far enough for the delay of a, and a day more.
func (s *Snapshot) covered(a *CompiledAction, retention time.Duration) bool {
	return int64(a.Delay) < s.calendar.Days(retention)
}

// promoted reports whether a has a delay for which the log is too short, so that its objects are found by walking.
func (s *Snapshot) promoted(a *CompiledAction, retention time.Duration) bool {
	return a.Kind.Replay() && !s.covered(a, retention)
}

// Lanes returns the distinct delays of the actions of one repository that have one, ascending, in days. In a replay view these are its lanes.
func (s *Snapshot) Lanes(id graveler.RepositoryID) []int {
	var delays []int
	for _, a := range s.Actions(id) {
		if a.Kind.Replay() {
			delays = append(delays, a.Delay)
		}
	}
	slices.Sort(delays)
	return slices.Compact(delays)
}

// Lane returns the actions of one repository that have this delay, in the order of its rules.
func (s *Snapshot) Lane(id graveler.RepositoryID, delay int) []*CompiledAction {
	var lane []*CompiledAction
	for _, a := range s.Actions(id) {
		if a.Kind.Replay() && a.Delay == delay {
			lane = append(lane, a)
		}
	}
	return lane
}

// MaxEffectiveTTL returns the longest delay of any enabled action, in days; 0 where none has one.
func (s *Snapshot) MaxEffectiveTTL() int {
	longest := 0
	for _, id := range s.Repositories() {
		for _, a := range s.actions[id] {
			if a.Active {
				longest = max(longest, a.Delay)
			}
		}
	}
	return longest
}
