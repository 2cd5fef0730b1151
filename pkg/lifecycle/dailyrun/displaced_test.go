// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

const noncurrent30 = `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":30}`

// restore removes the current version of a key, so that the one that it displaced is current again.
func (f *fixture) restore(key string) {
	f.Helper()
	page, err := f.catalog.ListVersions(f.Context(), in(bucket), catalog.ListVersionsParams{Prefix: key})
	require.NoError(f, err)
	_, err = f.catalog.Delete(f.Context(), in(bucket), key, catalog.DeleteParams{VersionID: page.Versions[0].VersionID})
	require.NoError(f, err)
	f.commit(bucket)
}

func TestAVersionThatIsDisplacedOnceMoreIsAsYoungAsThat(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.rules(bucket, noncurrent30)
	f.put("a")
	f.put("a")
	f.run()
	f.days(29)
	f.run()
	f.restore("a")
	require.Equal(t, []string{"current"}, f.versions("a"))
	f.put("a")
	displaced := f.clock
	for range 29 {
		f.days(1)
		f.run()
		require.Equal(t, []string{"current", "noncurrent"}, f.versions("a"))
		all, err := dailyrun.Explain(t.Context(), f.config, bucket, "", "a")
		require.NoError(t, err)
		require.Equal(t, displaced, all[1].Since)
		require.Equal(t, displaced.AddDate(0, 0, 30), all[1].Actions[0].At)
	}
	f.days(1)
	f.run()
	require.Equal(t, []string{"current"}, f.versions("a"))
}

// Who has undone a deletion, and looks away for a day, must not lose the object to the next pass, which deletes it a second time.
func TestAnObjectThatIsUndeletedIsNotLostWhenItExpiresOnceMore(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.rules(bucket, expire(30), noncurrent30)
	f.put("a")
	for range 58 {
		f.run()
		f.days(1)
	}
	require.Equal(t, []string{"marker", "noncurrent"}, f.versions("a"))
	f.restore("a")
	require.Equal(t, []string{"current"}, f.versions("a"))
	for range 30 { // the branch has shown it 30 days ago, too, so that the next pass deletes it again
		f.run()
		require.Equal(t, []string{"marker", "noncurrent"}, f.versions("a"))
		f.days(1)
	}
	f.run()
	require.Equal(t, []string{"marker"}, f.versions("a"))
}

// A count beside the days asks the same of the past.
func TestACountedVersionThatIsDisplacedOnceMoreIsAsYoungAsThat(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.rules(bucket, `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":30,"NewerNoncurrentVersions":1}`)
	f.put("a")
	f.put("a")
	f.run()
	f.days(29)
	f.run()
	f.restore("a")
	f.put("a")
	f.put("a") // the version of long ago has a newer one beside it
	for range 29 {
		f.days(1)
		f.run()
		require.Len(t, f.versions("a"), 3)
	}
	f.days(1)
	f.run()
	require.Len(t, f.versions("a"), 2)
}

// The version is displaced once more after the pass has found it due.
func TestAVersionThatIsDisplacedOnceMoreMeanwhileStays(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.rules(bucket, noncurrent30)
	f.put("a")
	f.put("a")
	f.days(31)
	f.before = func() {
		f.restore("a")
		f.put("a")
	}
	f.run()
	require.Len(t, f.sent, 1)
	require.Equal(t, []string{"current", "noncurrent"}, f.versions("a"))
	for range 2 {
		f.days(10)
		f.run()
		require.Equal(t, []string{"current", "noncurrent"}, f.versions("a"))
	}
	f.days(10)
	f.run()
	require.Equal(t, []string{"current"}, f.versions("a"))
}
