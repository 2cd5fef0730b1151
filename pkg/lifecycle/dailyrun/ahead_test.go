// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// ahead makes a pass whose clock is ahead by some days, and sets it right afterwards.
func (f *fixture) ahead(ctx context.Context, days int) (*dailyrun.Report, error) {
	f.Helper()
	real := f.config.Now
	defer func() { f.config.Now, f.mover.Now = real, real }()
	ahead := func() time.Time { return f.clock.AddDate(0, 0, days) }
	f.config.Now, f.mover.Now = ahead, ahead
	return dailyrun.Run(ctx, f.config)
}

// unfinished returns how many lanes have begun a step, and not ended it.
func (f *fixture) unfinished() (n int) {
	f.Helper()
	for shard := range lifecycle.Shards {
		for p, err := range cursor.New(f.records).Positions(f.Context(), shard) {
			require.NoError(f, err)
			for _, l := range p.Lanes {
				if l.Step != nil {
					n++
				}
			}
		}
	}
	return n
}

// Somebody tries a clock that is 40 days ahead, sees what that does, and stops it.
func TestAStepOfAClockThatWasAheadIsNotFinishedByTheRealOne(t *testing.T) {
	for name, stop := range map[string]func(cancel func()) dispatch.Result{
		"a pass that was stopped": func(cancel func()) dispatch.Result { cancel(); return dispatch.Result{} },
		"lanes that are blocked":  func(func()) dispatch.Result { return dispatch.Result{Outcome: lifecycle.RetryLater} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, catalog.VersioningOff)
			f.config = dailyrun.Chunked(f.config, 2)
			f.rules(bucket, expire(30))
			f.put(numbered(40)...)
			f.run()
			f.days(1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 0
			f.results = func(dispatch.Item) dispatch.Result {
				if n++; n < 4 {
					return dispatch.Result{}
				}
				return stop(cancel)
			}
			_, _ = f.ahead(ctx, 40)
			left := f.keys(bucket)
			require.Greater(t, len(left), 30)
			require.Positive(t, f.unfinished())

			f.results = nil
			f.run()
			require.Equal(t, left, f.keys(bucket), "nothing is due by the real clock for 29 days")
			require.Zero(t, f.unfinished())
			f.days(29)
			f.run()
			require.Empty(t, f.keys(bucket))
		})
	}
}

// As above, where the step that was left is not ahead of the real clock itself, but what has been judged since.
func TestWhatAClockThatWasAheadHasPassedOverIsDueByTheRealOne(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(30))
	f.put("z")
	empty := f.head()
	f.put("a", "b", "c")
	full := f.head()
	f.days(11)
	f.resetTo(empty)
	f.days(2)
	f.resetTo(full)
	f.days(27) // 40: all are due
	f.config.EventBudget = 1
	f.run()
	f.clock = f.clock.Add(time.Hour)
	_, err := f.ahead(t.Context(), 2) // they were hidden 30 days before that
	require.NoError(t, err)
	f.config.EventBudget = 0
	f.run()
	require.Empty(t, f.keys(bucket))
}

func TestACursorOfAClockThatWasAheadDoesNotHideALag(t *testing.T) {
	f, w, _ := newWalkFixture(t)
	_, err := f.ahead(t.Context(), 90)
	require.NoError(t, err)
	w.before = failIn(bucket)
	f.put("c")
	_, err = f.tryRun()
	require.ErrorIs(t, err, errWalk)
	f.days(20)
	r, err := f.tryRun()
	require.ErrorIs(t, err, errWalk)
	for _, s := range r.Shards {
		require.GreaterOrEqual(t, r.Now.Sub(s.Time), 20*24*time.Hour)
	}
}

// Another host's clock is behind by three minutes, at midnight. What happened meanwhile to the other version of the key must be
// seen all the same by a pass that finds the marker due.
func TestAPassThatIsBehindAnotherUsesUpNoEvent(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.config.DayBoundary = lifecycle.MidnightUTC
	f.rules(bucket, expire(5))
	f.clock = time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)
	f.put("a")
	f.delete("a")
	f.clock = time.Date(2030, 1, 7, 0, 1, 0, 0, time.UTC) // all of 1 January is due
	f.run()
	page, err := f.catalog.ListVersions(t.Context(), in(bucket), catalog.ListVersionsParams{Prefix: "a"})
	require.NoError(t, err)
	_, err = f.catalog.Delete(t.Context(), in(bucket), "a", catalog.DeleteParams{VersionID: page.Versions[1].VersionID})
	require.NoError(t, err)
	f.commit(bucket)
	require.Equal(t, []string{"marker"}, f.versions("a"))
	f.clock = time.Date(2030, 1, 6, 23, 58, 0, 0, time.UTC)
	f.run()
	require.Equal(t, []string{"marker"}, f.versions("a"))
	f.clock = time.Date(2030, 1, 7, 0, 2, 0, 0, time.UTC)
	f.run()
	require.Empty(t, f.versions("a"))
}
