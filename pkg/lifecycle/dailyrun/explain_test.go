// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

// No midnight fell into the hour for which the branch showed the object first.
func TestATimeForWhichNoPassWouldFindAnObjectExplainsNothing(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.config.DayBoundary = lifecycle.MidnightUTC
	f.rules(bucket, expire(5))
	f.put("z")
	since := f.head()
	f.put("a")
	full := f.head()
	f.clock = f.clock.Add(time.Hour)
	f.resetTo(since)
	f.days(3)
	f.resetTo(full)
	f.run()
	all, err := dailyrun.Explain(t.Context(), f.config, bucket, "main", "a")
	require.NoError(t, err)
	require.True(t, all[0].Actions[0].Acts)
	at := all[0].Actions[0].At
	require.True(t, at.After(f.clock))
	f.clock = at.Add(-2 * time.Second)
	f.run()
	require.Contains(t, f.keys(bucket), "a")
	f.clock = at
	f.run()
	require.NotContains(t, f.keys(bucket), "a")
}
