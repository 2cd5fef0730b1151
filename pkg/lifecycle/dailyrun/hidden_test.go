// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// The tests of this file are about what was hidden by a reset for days 11 and 12, and brought back by another, under a rule of 30
// days: the passes of days 40 and 45 find it due, that of day 42 does not. It stands between the other two because a step of the
// lane does.

func (f *fixture) head() graveler.CommitID {
	f.Helper()
	b, err := f.GetBranch(f.Context(), bucket, "main")
	require.NoError(f, err)
	return b.Head
}

func (f *fixture) resetTo(c graveler.CommitID) {
	f.Helper()
	f.clock = f.clock.Add(time.Second)
	_, err := f.Reset(f.Context(), bucket, "main", string(c), graveler.ResetParams{})
	require.NoError(f, err)
}

// hide hides what came to the branch since a commit, 11 days later and for 2 days; it is day 40 then.
func (f *fixture) hide(since graveler.CommitID) {
	f.Helper()
	full := f.head()
	f.days(11)
	f.resetTo(since)
	f.days(2)
	f.resetTo(full)
	f.days(27)
}

// sameShard returns a key of the same shard as another one, behind it.
func sameShard(key string) string {
	for i := 0; ; i++ {
		if k := fmt.Sprintf("z%d", i); lifecycle.ShardOf(bucket, k) == lifecycle.ShardOf(bucket, key) {
			return k
		}
	}
}

// block blocks a key.
func (f *fixture) block(key string) {
	f.results = func(item dispatch.Item) dispatch.Result {
		if item.LogicalKey == key {
			return dispatch.Result{Outcome: lifecycle.Blocked}
		}
		return dispatch.Result{}
	}
}

func TestWhatWasHiddenWhileAStepStoodUnfinishedGoesAllTheSame(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(30))
	f.put("z")
	since := f.head()
	f.put("a", "b", "c")
	f.hide(since)
	f.config.EventBudget = 1
	f.run()
	require.Equal(t, []string{"b", "c", "z"}, f.keys(bucket))
	f.days(2)
	f.run()
	require.Equal(t, []string{"b", "c", "z"}, f.keys(bucket), "that day they were not due")
	f.days(3)
	f.config.EventBudget = 0
	f.run()
	require.Empty(t, f.keys(bucket))
}

func TestABudgetAlsoBoundsWhatIsReadOnceMore(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(30))
	f.put("z")
	since := f.head()
	f.put("a", "b", "c", "d", "e")
	f.hide(since)
	f.config.EventBudget = 1
	f.run()
	f.days(2)
	f.run()
	f.days(3)
	for range 20 {
		require.LessOrEqual(t, f.run().Sources[0].Events, 12, "a move is read as a whole, once as new and once as fallen due")
	}
	require.Empty(t, f.keys(bucket))
}

// The lock of the version ends on day 42.
func TestADeferredVersionThatWasHiddenGoesAllTheSame(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.rules(bucket, noncurrent30)
	blocked := sameShard("a")
	f.put(blocked, blocked)
	since := f.head()
	f.lockedVersion("a", 42)
	f.hide(since)
	f.block(blocked)
	f.run()
	f.days(2)
	f.clock = f.clock.Add(time.Hour)
	f.run()
	require.Equal(t, []string{"current", "noncurrent"}, f.versions("a"))
	f.days(3)
	f.run()
	require.Equal(t, []string{"current"}, f.versions("a"))
}

// It is alone from day 42 on, and so the lane of what depends on other versions looks at it then.
func TestADeleteMarkerThatWasHiddenGoesAllTheSame(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.rules(bucket, expire(30))
	blocked := sameShard("a")
	f.put(blocked)
	since := f.head()
	f.put("a")
	f.delete("a")
	f.hide(since)
	f.block(blocked)
	f.run()
	f.days(2)
	page, err := f.catalog.ListVersions(t.Context(), in(bucket), catalog.ListVersionsParams{Prefix: "a"})
	require.NoError(t, err)
	_, err = f.catalog.Delete(t.Context(), in(bucket), "a", catalog.DeleteParams{VersionID: page.Versions[1].VersionID})
	require.NoError(t, err)
	f.commit(bucket)
	f.run()
	require.Equal(t, []string{"marker"}, f.versions("a"))
	f.days(3)
	f.results = nil
	f.run()
	require.Empty(t, f.versions("a"))
}
