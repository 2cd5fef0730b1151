// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
)

type repositories = map[graveler.RepositoryID]engine.Repository

func ptr[T any](v T) *T { return &v }

func compile(t require.TestingT, r repositories) *engine.Snapshot {
	s, err := engine.Compile(r, lifecycle.Calendar{})
	require.NoError(t, err)
	return s
}

// anyRule draws rules with few different fields, so that two of them are often the same.
var anyRule = rapid.Custom(func(t *rapid.T) lifecycle.Rule {
	r := lifecycle.Rule{Enabled: rapid.IntRange(0, 3).Draw(t, "disabled") > 0}
	few := rapid.IntRange(1, 3)
	r.Filter.Prefix = rapid.SampledFrom([]*string{nil, ptr(""), ptr("a"), ptr("ab"), ptr("b")}).Draw(t, "prefix")
	prefixOnly := false
	switch rapid.IntRange(0, 5).Draw(t, "action") {
	case 0:
		r.Expiration = &lifecycle.Expiration{Days: ptr(few.Draw(t, "days"))}
	case 1:
		r.Expiration = &lifecycle.Expiration{Date: ptr(time.Unix(86_400*int64(few.Draw(t, "date")), 0).UTC())}
	case 2:
		r.Expiration, prefixOnly = &lifecycle.Expiration{ExpiredObjectDeleteMarker: ptr(rapid.Bool().Draw(t, "marker"))}, true
	case 3:
		r.AbortIncompleteMultipartUpload, prefixOnly = &lifecycle.AbortIncompleteMultipartUpload{DaysAfterInitiation: few.Draw(t, "abort")}, true
	case 4:
		r.NoncurrentVersionExpiration = &lifecycle.NoncurrentVersionExpiration{NoncurrentDays: ptr(few.Draw(t, "days"))}
		if rapid.Bool().Draw(t, "counted") {
			r.NoncurrentVersionExpiration.NewerNoncurrentVersions = ptr(few.Draw(t, "newer"))
		}
	case 5:
		r.NoncurrentVersionExpiration = &lifecycle.NoncurrentVersionExpiration{NewerNoncurrentVersions: ptr(few.Draw(t, "newer"))}
		r.Expiration = &lifecycle.Expiration{Days: ptr(few.Draw(t, "days"))}
	}
	if !prefixOnly {
		for _, key := range []string{"x", "xy"} {
			if rapid.IntRange(0, 3).Draw(t, key) == 0 {
				r.Filter.Tags = append(r.Filter.Tags, lifecycle.Tag{Key: key, Value: rapid.SampledFrom([]string{"", "y", "yx"}).Draw(t, "value")})
			}
		}
		r.Filter.SizeGreaterThan = rapid.SampledFrom([]*int64{nil, nil, nil, ptr(int64(0))}).Draw(t, "greater")
		r.Filter.SizeLessThan = rapid.SampledFrom([]*int64{nil, nil, nil, ptr(int64(1 << 20))}).Draw(t, "less")
	}
	return r
})

var anyRepositories = rapid.Custom(func(t *rapid.T) repositories {
	all := repositories{}
	for _, id := range []graveler.RepositoryID{"lake", "lake2"} {
		rules := rapid.SliceOfN(anyRule, 0, 3).Draw(t, string(id))
		for i := range rules {
			rules[i].ID = fmt.Sprint(i)
		}
		if len(rules) > 0 {
			versioning := rapid.SampledFrom([]catalog.Versioning{catalog.VersioningOff, catalog.VersioningEnabled, catalog.VersioningSuspended}).Draw(t, "versioning")
			all[id] = engine.Repository{Configuration: lifecycle.Configuration{Rules: rules}, Versioning: versioning}
		}
	}
	return all
})

func all(s *engine.Snapshot) (actions []*engine.CompiledAction) {
	for _, id := range s.Repositories() {
		actions = append(actions, s.Actions(id)...)
	}
	return actions
}

// named tells an action from the others of a snapshot.
func named(a *engine.CompiledAction) string {
	return fmt.Sprintf("%s/%s/%s", a.Repository, a.Rule.ID, a.Kind)
}

func names(s *engine.Snapshot) (list []string) {
	for _, a := range all(s) {
		list = append(list, named(a))
	}
	return list
}

var anyRetention = rapid.Map(rapid.Int64Range(-1, 6*12), func(halfHours int64) time.Duration { return time.Duration(halfHours) * 2 * time.Hour })

func TestEveryEnabledActionIsInOneOfTwoViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		configured, retention := anyRepositories.Draw(t, "repositories"), anyRetention.Draw(t, "retention")
		s := compile(t, configured)
		replay, walk := s.RulesForShard(rapid.IntRange(0, lifecycle.Shards-1).Draw(t, "shard"), retention)
		recovery := s.RecoveryView()

		want := map[*engine.Snapshot][]string{}
		for _, a := range all(s) {
			if !a.Rule.Enabled {
				require.False(t, a.Active)
				continue
			}
			view := walk
			if a.Kind.Replay() && time.Duration(a.Delay+1)*24*time.Hour <= retention {
				view = replay
			}
			want[view] = append(want[view], named(a))
			want[recovery] = append(want[recovery], named(a))
		}
		for _, v := range []*engine.Snapshot{replay, walk, recovery} {
			require.Equal(t, len(names(v)) == 0, v == nil, "an empty view is nil")
			for _, a := range all(v) {
				require.True(t, a.Active)
				require.True(t, v != replay || a.Mode == engine.EventDriven)
				require.True(t, v == replay || (a.Mode == engine.EventDriven) == a.Kind.Replay())
			}
		}
		if replay != nil {
			require.Equal(t, want[replay], names(replay))
		}
		if walk != nil {
			require.Equal(t, want[walk], names(walk))
		}
		if recovery != nil {
			require.Equal(t, want[recovery], names(recovery))
		}
		require.Len(t, want[recovery], len(names(replay))+len(names(walk)))
	})
}

func TestViewsShareRulesAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := compile(t, anyRepositories.Draw(t, "repositories"))
		retention := anyRetention.Draw(t, "retention")
		rule := map[string]*lifecycle.Rule{}
		for _, a := range all(s) {
			rule[named(a)] = a.Rule
		}
		var views []*engine.Snapshot
		for shard := range 2 {
			replay, walk := s.RulesForShard(shard, retention)
			views = append(views, replay, walk, s.RecoveryView())
		}
		before := make([][]engine.CompiledAction, len(views))
		for i, v := range views {
			for _, a := range all(v) {
				require.Same(t, rule[named(a)], a.Rule)
				before[i] = append(before[i], *a)
			}
		}
		content, promoted := s.ReplayContentHash(), s.PromotedHash(retention)
		for i, v := range views {
			for _, a := range all(v) {
				*a = engine.CompiledAction{Repository: a.Repository, Action: lifecycle.Action{Rule: a.Rule}}
			}
			for j, other := range views[i+1:] {
				var now []engine.CompiledAction
				for _, a := range all(other) {
					now = append(now, *a)
				}
				require.Equal(t, before[i+1+j], now)
			}
		}
		require.Equal(t, content, s.ReplayContentHash())
		require.Equal(t, promoted, s.PromotedHash(retention))
	})
}

func TestASnapshotDoesNotFollowItsConfiguration(t *testing.T) {
	c := lifecycle.Configuration{Rules: []lifecycle.Rule{{
		ID: "a", Enabled: true, Filter: lifecycle.Filter{Prefix: ptr("a"), Tags: []lifecycle.Tag{{Key: "k", Value: "v"}}}, Expiration: &lifecycle.Expiration{Days: ptr(1)},
	}}}
	s := compile(t, repositories{"lake": {Configuration: c}})
	want := *s.Actions("lake")[0].Rule
	want = lifecycle.Configuration{Rules: []lifecycle.Rule{want}}.Clone().Rules[0]

	*c.Rules[0].Filter.Prefix, c.Rules[0].Filter.Tags[0].Value, *c.Rules[0].Expiration.Days, c.Rules[0].Enabled = "", "w", 9, false
	require.Equal(t, want, *s.Actions("lake")[0].Rule)
	require.Equal(t, 1, s.Actions("lake")[0].Delay)
}

func TestNothingConfiguredIsNil(t *testing.T) {
	idle := lifecycle.Configuration{Rules: []lifecycle.Rule{{Enabled: true, Expiration: &lifecycle.Expiration{ExpiredObjectDeleteMarker: ptr(false)}}}}
	for _, r := range []repositories{nil, {"lake": {Configuration: idle}}} {
		s := compile(t, r)
		require.Nil(t, s)
		replay, walk := s.RulesForShard(0, time.Hour)
		require.Nil(t, replay)
		require.Nil(t, walk)
		require.Nil(t, s.RecoveryView())
		require.Nil(t, s.Of("lake"))
		require.Empty(t, s.Repositories())
		require.Empty(t, s.Actions("lake"))
		require.Empty(t, s.Lanes("lake"))
		require.Empty(t, s.Lane("lake", 1))
		require.Zero(t, s.MaxEffectiveTTL())
		require.True(t, s.ReplayContentHash().IsZero())
		require.True(t, s.PromotedHash(0).IsZero())
	}
	disabled := compile(t, repositories{"lake": {Configuration: lifecycle.Configuration{Rules: []lifecycle.Rule{{Expiration: &lifecycle.Expiration{Days: ptr(1)}}}}}})
	require.NotNil(t, disabled)
	require.Nil(t, disabled.RecoveryView())
	require.True(t, disabled.ReplayContentHash().IsZero())
	require.Zero(t, disabled.MaxEffectiveTTL())
}

func TestWhatIsInvalidIsNotCompiled(t *testing.T) {
	_, err := engine.Compile(repositories{"lake": {Configuration: lifecycle.Configuration{Rules: []lifecycle.Rule{{ID: "a", Expiration: &lifecycle.Expiration{Days: ptr(-1)}}}}}}, lifecycle.Calendar{})
	require.ErrorIs(t, err, catalog.InvalidArgument)
	require.ErrorContains(t, err, "lake")
	_, err = engine.Compile(nil, lifecycle.Calendar{Day: -1})
	require.ErrorContains(t, err, "day")
	require.Panics(t, func() { (*engine.Snapshot)(nil).RulesForShard(lifecycle.Shards, 0) })
	require.Panics(t, func() { (*engine.Snapshot)(nil).RulesForShard(-1, 0) })
}

func TestLanesAreTheDistinctDelays(t *testing.T) {
	rules := []lifecycle.Rule{
		{ID: "a", Enabled: true, Expiration: &lifecycle.Expiration{Days: ptr(30)}, NoncurrentVersionExpiration: &lifecycle.NoncurrentVersionExpiration{NoncurrentDays: ptr(7)}},
		{ID: "b", Enabled: true, AbortIncompleteMultipartUpload: &lifecycle.AbortIncompleteMultipartUpload{DaysAfterInitiation: 7}},
		{ID: "c", Enabled: true, NoncurrentVersionExpiration: &lifecycle.NoncurrentVersionExpiration{NewerNoncurrentVersions: ptr(3)}},
		{ID: "d", Enabled: true, Expiration: &lifecycle.Expiration{Days: ptr(365)}},
		{ID: "e", Expiration: &lifecycle.Expiration{Days: ptr(math.MaxInt32)}},
	}
	s := compile(t, repositories{"lake": {Configuration: lifecycle.Configuration{Rules: rules}}})
	replay, walk := s.RulesForShard(3, 31*24*time.Hour)
	require.Equal(t, []int{7, 30}, replay.Lanes("lake"))
	require.Empty(t, replay.Lanes("other"))
	require.Equal(t, []string{"lake/a/NoncurrentDays", "lake/b/AbortMPU"}, []string{named(replay.Lane("lake", 7)[0]), named(replay.Lane("lake", 7)[1])})
	require.Equal(t, []string{"lake/c/NewerNoncurrent", "lake/d/ExpirationDays"}, names(walk))
	require.Equal(t, 365, s.MaxEffectiveTTL())
	require.Equal(t, 30, replay.MaxEffectiveTTL())
	require.Equal(t, []graveler.RepositoryID{"lake"}, s.Repositories())

	replay, _ = s.RulesForShard(3, 31*24*time.Hour-1)
	require.Equal(t, []int{7}, replay.Lanes("lake"), "a day more than the delay must be kept")

	scaled, err := engine.Compile(repositories{"lake": {Configuration: lifecycle.Configuration{Rules: rules}}}, lifecycle.Calendar{Day: time.Second})
	require.NoError(t, err)
	replay, _ = scaled.RulesForShard(3, 31*time.Second)
	require.Equal(t, []int{7, 30}, replay.Lanes("lake"))
}

// meaning writes down what the enabled actions that have a delay mean, in a way that has nothing to do with hashes.
func meaning(r repositories, wanted func(*lifecycle.Action) bool) string {
	var lines []string
	for id, repository := range r {
		for i := range repository.Configuration.Rules {
			rule := &repository.Configuration.Rules[i]
			for _, a := range rule.Actions() {
				if !rule.Enabled || !a.Kind.Replay() || !wanted(&a) {
					continue
				}
				f, prefix := rule.Filter, ""
				if f.Prefix != nil {
					prefix = *f.Prefix
				}
				tags := map[string]string{}
				for _, tag := range f.Tags {
					tags[tag.Key] = tag.Value
				}
				greater, less := int64(-1), int64(-1)
				if f.SizeGreaterThan != nil {
					greater = *f.SizeGreaterThan
				}
				if f.SizeLessThan != nil {
					less = *f.SizeLessThan
				}
				lines = append(lines, fmt.Sprintf("%q %q %q %q %d %d %s %d %d", id, repository.Versioning, prefix, tags, greater, less, a.Kind, a.Delay, a.NewerNoncurrent))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestHashesAreEqualExactlyWhereTheMeaningIs(t *testing.T) {
	always := func(*lifecycle.Action) bool { return true }
	same, differ := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		retention := anyRetention.Draw(t, "retention")
		promoted := func(a *lifecycle.Action) bool { return time.Duration(a.Delay+1)*24*time.Hour > retention }
		a, b := anyRepositories.Draw(t, "a"), anyRepositories.Draw(t, "b")
		if rapid.Bool().Draw(t, "one change") {
			b = changed(t, a)
		}
		s, other := compile(t, a), compile(t, b)
		require.Equal(t, meaning(a, always) == meaning(b, always), s.ReplayContentHash() == other.ReplayContentHash())
		require.Equal(t, meaning(a, always) == "", s.ReplayContentHash().IsZero())
		require.Equal(t, meaning(a, promoted) == meaning(b, promoted), s.PromotedHash(retention) == other.PromotedHash(retention))
		require.Equal(t, meaning(a, promoted) == "", s.PromotedHash(retention).IsZero())
		for _, id := range []graveler.RepositoryID{"lake", "lake2"} {
			one, another := only(a, id), only(b, id)
			require.Equal(t, meaning(one, always) == meaning(another, always), s.Of(id).ReplayContentHash() == other.Of(id).ReplayContentHash())
			require.Equal(t, meaning(one, promoted) == meaning(another, promoted), s.Of(id).PromotedHash(retention) == other.Of(id).PromotedHash(retention))
		}
		if meaning(a, always) == meaning(b, always) {
			same++
		} else {
			differ++
		}
	})
	require.Greater(t, same, 5)
	require.Greater(t, differ, 5)
}

func only(r repositories, id graveler.RepositoryID) repositories {
	if one, ok := r[id]; ok {
		return repositories{id: one}
	}
	return nil
}

// changed returns a copy of r in which one rule is another, or none means anything else.
func changed(t *rapid.T, r repositories) repositories {
	c := repositories{}
	for id, repository := range r {
		repository.Configuration = repository.Configuration.Clone()
		c[id] = repository
	}
	ids := slices.Sorted(maps.Keys(c))
	if len(ids) == 0 {
		return c
	}
	rules := c[rapid.SampledFrom(ids).Draw(t, "repository")].Configuration.Rules
	i := rapid.IntRange(0, len(rules)-1).Draw(t, "rule")
	switch rapid.IntRange(0, 5).Draw(t, "change") {
	case 0:
		rules[i].Enabled = !rules[i].Enabled
	case 1:
		id := rules[i].ID
		rules[i] = anyRule.Draw(t, "other rule")
		rules[i].ID = id
	case 2:
		rules[i].ID = "renamed"
	case 3:
		slices.Reverse(rules[i].Filter.Tags)
	case 4:
		slices.Reverse(rules)
	case 5:
		if p := rules[i].Filter.Prefix; p != nil && *p == "" {
			rules[i].Filter.Prefix = nil
		}
	}
	return c
}

func TestEachEditChangesTheHashesThatItShould(t *testing.T) {
	const retention = 10 * 24 * time.Hour
	base := lifecycle.Rule{
		ID: "a", Enabled: true, Filter: lifecycle.Filter{Prefix: ptr("a"), Tags: []lifecycle.Tag{{Key: "k", Value: "v"}, {Key: "l", Value: "w"}}},
		Expiration: &lifecycle.Expiration{Days: ptr(5)}, NoncurrentVersionExpiration: &lifecycle.NoncurrentVersionExpiration{NoncurrentDays: ptr(30)},
	}
	with := func(change func(*lifecycle.Rule), versioning catalog.Versioning) *engine.Snapshot {
		c := lifecycle.Configuration{Rules: []lifecycle.Rule{base}}.Clone()
		change(&c.Rules[0])
		return compile(t, repositories{"lake": {Configuration: c, Versioning: versioning}, "other": {Configuration: lifecycle.Configuration{Rules: []lifecycle.Rule{base}}}})
	}
	before := with(func(*lifecycle.Rule) {}, "")
	for name, c := range map[string]struct {
		change            func(*lifecycle.Rule)
		content, promoted bool
	}{
		"nothing":           {func(*lifecycle.Rule) {}, false, false},
		"the ID":            {func(r *lifecycle.Rule) { r.ID = "b" }, false, false},
		"the order of tags": {func(r *lifecycle.Rule) { slices.Reverse(r.Filter.Tags) }, false, false},
		"disabled":          {func(r *lifecycle.Rule) { r.Enabled = false }, true, true},
		"prefix":            {func(r *lifecycle.Rule) { r.Filter.Prefix = ptr("b") }, true, true},
		"a tag":             {func(r *lifecycle.Rule) { r.Filter.Tags[0].Value = "x" }, true, true},
		"tags that run on": {func(r *lifecycle.Rule) {
			r.Filter.Tags = []lifecycle.Tag{{Key: "kv", Value: ""}, {Key: "l", Value: "w"}}
		}, true, true},
		"size greater than 0":   {func(r *lifecycle.Rule) { r.Filter.SizeGreaterThan = ptr(int64(0)) }, true, true},
		"size less than 1":      {func(r *lifecycle.Rule) { r.Filter.SizeLessThan = ptr(int64(1)) }, true, true},
		"days within retention": {func(r *lifecycle.Rule) { r.Expiration.Days = ptr(6) }, true, false},
		"days beyond retention": {func(r *lifecycle.Rule) { r.Expiration.Days = ptr(10) }, true, true},
		"days that come within": {func(r *lifecycle.Rule) { r.NoncurrentVersionExpiration.NoncurrentDays = ptr(9) }, true, true},
		"a count":               {func(r *lifecycle.Rule) { r.NoncurrentVersionExpiration.NewerNoncurrentVersions = ptr(1) }, true, true},
		"no more days":          {func(r *lifecycle.Rule) { r.Expiration = nil }, true, false},
		"a date for the days":   {func(r *lifecycle.Rule) { r.Expiration = &lifecycle.Expiration{Date: ptr(time.Unix(0, 0))} }, true, false},
	} {
		after := with(c.change, "")
		require.Equal(t, c.content, before.ReplayContentHash() != after.ReplayContentHash(), name)
		require.Equal(t, c.promoted, before.PromotedHash(retention) != after.PromotedHash(retention), name)
		require.Equal(t, c.content, before.Of("lake").ReplayContentHash() != after.Of("lake").ReplayContentHash(), name)
		require.Equal(t, c.promoted, before.Of("lake").PromotedHash(retention) != after.Of("lake").PromotedHash(retention), name)
		require.Equal(t, before.Of("other").ReplayContentHash(), after.Of("other").ReplayContentHash(), name)
	}
	suspended := with(func(*lifecycle.Rule) {}, catalog.VersioningSuspended)
	require.NotEqual(t, before.Of("lake").ReplayContentHash(), suspended.Of("lake").ReplayContentHash())
	require.Equal(t, before.Of("other").ReplayContentHash(), suspended.Of("other").ReplayContentHash())

	// A log that is kept for longer moves actions from one view to the other, and changes nothing else.
	require.NotEqual(t, before.PromotedHash(retention), before.PromotedHash(31*24*time.Hour))
	require.True(t, before.PromotedHash(31*24*time.Hour).IsZero())
	require.NotEqual(t, before.Of("lake").ReplayContentHash(), before.Of("other").ReplayContentHash(), "equal rules of two repositories")
}

// The hashes are in cursors and positions: where they change, every repository is walked again.
func TestHashesNeverChange(t *testing.T) {
	s := compile(t, repositories{"lake": {
		Versioning: catalog.VersioningEnabled,
		Configuration: lifecycle.Configuration{Rules: []lifecycle.Rule{{
			ID: "a", Enabled: true, Filter: lifecycle.Filter{Prefix: ptr("a"), Tags: []lifecycle.Tag{{Key: "k", Value: "v"}}, SizeGreaterThan: ptr(int64(0)), SizeLessThan: ptr(int64(9))},
			Expiration: &lifecycle.Expiration{Days: ptr(5)}, NoncurrentVersionExpiration: &lifecycle.NoncurrentVersionExpiration{NoncurrentDays: ptr(30), NewerNoncurrentVersions: ptr(2)},
		}}},
	}})
	require.Equal(t, "863e981cdd19ad8b295e40e0fa3c945d12e745bdecdaf9b64b310d9a8380bd8f", s.ReplayContentHash().String())
	require.Equal(t, "6c5cf8e97ab9b893e0f6eb38791ce95077c1a68b105d0cb4f6981d4070f8eb35", s.PromotedHash(10*24*time.Hour).String())
}
