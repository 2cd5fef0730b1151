// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

func TestAPassSaysThatItsBudgetHasCutItShort(t *testing.T) {
	for name, prepare := range map[string]func(f *fixture){
		"candidates": func(f *fixture) {
			f.put(numbered(9)...)
			f.days(3)
		},
		"keys of a walk": func(f *fixture) {
			f.config.RetentionWindow, f.config.Walker, f.config.WalkerInterval = 24*time.Hour, walker.New(f.Graveler), 24*time.Hour
			f.put(numbered(9)...)
			f.run()
			f.days(3)
		},
		"changes, of which one is a candidate": func(f *fixture) {
			f.put("a")
			f.run()
			for range 9 {
				f.put("a")
			}
			f.days(3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, catalog.VersioningOff)
			f.rules(bucket, expire(2))
			prepare(f)
			f.config.EventBudget = 4
			named := 0
			f.config.DryRun = func(dispatch.Source, dispatch.Item) { named++ }
			require.True(t, f.run().Sources[0].OverBudget)
			require.Less(t, named, 9)
			f.config.DryRun = nil
			passes := 0
			for r := f.run(); r.Sources[0].OverBudget; r = f.run() {
				require.False(t, r.CutOff)
				passes++
				require.Less(t, passes, 50)
			}
			require.Positive(t, passes)
			require.Empty(t, f.keys(bucket), "a pass that does not say so has looked at everything")
			f.config.EventBudget = 0
			require.Empty(t, f.run().Outcomes)
		})
	}
}
