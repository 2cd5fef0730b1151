// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// What items tell of their objects saves work and decides nothing: whatever users did meanwhile, the outcomes and the tree are the same without it.
func TestWhatAnItemTellsOfItsObjectDecidesNothing(t *testing.T) {
	tagged := action(lifecycle.Rule{Filter: lifecycle.Filter{Tags: []lifecycle.Tag{{Key: "t", Value: "1"}}}, Expiration: &lifecycle.Expiration{Days: ptr(1)}})
	for seed := range uint64(60) {
		var outcomesOf [2][]lifecycle.Outcome
		var left [2]string
		for i, bare := range []bool{false, true} {
			r := rand.New(rand.NewPCG(seed, 0))
			state := []catalog.Versioning{off, off, enabled, suspended}[seed%4]
			f := newFixture(t, off)
			f.bare = bare
			f.version(state)
			const keys = 40
			key := func(n int) string { return fmt.Sprintf("k%02d", n) }
			change := func(n int) {
				f.tick()
				var err error
				switch in, k := f.in(), key(n); r.IntN(5) {
				case 0:
					_, err = f.catalog.Put(f.Context(), in, k, catalog.Object{PhysicalAddress: fmt.Sprint(k, r.IntN(1000)), Tags: map[string]string{"t": "1"}}, catalog.Conditions{})
				case 1:
					_, err = f.catalog.Delete(f.Context(), in, k, catalog.DeleteParams{})
				case 2:
					err = f.catalog.PutTagging(f.Context(), in, k, "", map[string]string{"t": fmt.Sprint(r.IntN(2))})
				case 3:
					if state == enabled {
						if err = f.catalog.SetObjectLock(f.Context(), bucket, catalog.ObjectLockConfig{Enabled: true}); err == nil {
							err = f.catalog.PutRetention(f.Context(), in, k, "", catalog.Retention{Mode: catalog.LockGovernance, Until: f.clock.Add(time.Hour)}, false)
						}
					}
				}
				var refused catalog.Code
				if err != nil {
					require.ErrorAs(t, err, &refused)
				}
			}
			for n := range keys {
				_, err := f.catalog.Put(f.Context(), f.in(), key(n), catalog.Object{PhysicalAddress: key(n), Tags: map[string]string{"t": fmt.Sprint(n % 2)}}, catalog.Conditions{})
				require.NoError(t, err)
			}
			f.commit()
			var items []dispatch.Item
			for n := range keys {
				a := days
				if n%2 == 1 {
					a = tagged
				}
				items = append(items, f.item(a, key(n), key(n)))
			}
			for n := range keys {
				if r.IntN(2) == 0 {
					change(n)
				}
			}
			f.commit()
			outcomesOf[i] = outcomes(f.dispatch(items...))
			left[i] = f.show("main@")
		}
		require.Equal(t, outcomesOf[1], outcomesOf[0], "seed %d", seed)
		require.Equal(t, left[1], left[0], "seed %d", seed)
		require.Contains(t, outcomesOf[0], lifecycle.Done)
		require.Contains(t, outcomesOf[0], lifecycle.NoopResolved)
	}
}

func TestMergedRunsAreSortedAndEqualItemsStayInOrder(t *testing.T) {
	for n := range 200 {
		r := rand.New(rand.NewPCG(uint64(n), 0))
		var items [][2]int
		for i := range n {
			at := r.IntN(50)
			if i > 0 && r.IntN(5) > 0 { // mostly runs
				at = items[i-1][0] + r.IntN(2)
			}
			items = append(items, [2]int{at, i})
		}
		sorted := slices.Clone(items)
		slices.SortStableFunc(sorted, func(a, b [2]int) int { return a[0] - b[0] })
		require.Equal(t, sorted, append([][2]int(nil), dispatch.MergeRuns(items)...))
	}
}
