// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// What one rule removes no other counts.
func TestADryRunNamesNoVersionThatStaysSinceAnotherGoes(t *testing.T) {
	for _, days := range []int{1, 2} { // of one lane, and of two
		for _, chunk := range []int{1, 0} {
			f := newFixture(t, catalog.VersioningEnabled)
			f.config = dailyrun.Chunked(f.config, chunk)
			f.rules(bucket, `"Filter":{"ObjectSizeGreaterThan":5},"NoncurrentVersionExpiration":{"NoncurrentDays":1}`,
				fmt.Sprintf(`"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":%d,"NewerNoncurrentVersions":1}`, days))
			for i, size := range []int64{1, 1, 10, 1, 1} { // the last is current; of the others all but the newest are counted, or large
				f.clock = f.clock.Add(time.Second)
				_, err := f.catalog.Put(t.Context(), in(bucket), "a", catalog.Object{PhysicalAddress: fmt.Sprint(i), Size: size}, catalog.Conditions{})
				require.NoError(t, err)
			}
			_, err := f.catalog.Put(t.Context(), in(bucket), "b", catalog.Object{PhysicalAddress: "1", Size: 1}, catalog.Conditions{})
			require.NoError(t, err)
			for _, size := range []int64{10, 1} {
				f.clock = f.clock.Add(time.Second)
				_, err := f.catalog.Put(t.Context(), in(bucket), "b", catalog.Object{PhysicalAddress: "2", Size: size}, catalog.Conditions{})
				require.NoError(t, err)
			}
			f.commit(bucket)
			f.days(4)
			var named []string
			f.config.DryRun = func(_ dispatch.Source, item dispatch.Item) { named = append(named, string(item.Key)) }
			f.run()
			f.config.DryRun = nil
			var gone []string
			before := f.entries()
			f.run()
			for key := range before {
				if _, stays := f.entries()[key]; !stays {
					gone = append(gone, key)
				}
			}
			require.Len(t, gone, 4, "three of a, and the large one of b")
			require.ElementsMatch(t, gone, named)
		}
	}
}

// entries returns what the head has.
func (f *fixture) entries() map[string]bool {
	f.Helper()
	all := map[string]bool{}
	for l, err := range f.List(f.Context(), bucket, "main", graveler.ListOptions{}) {
		require.NoError(f, err)
		all[string(l.Key)] = true
	}
	return all
}
