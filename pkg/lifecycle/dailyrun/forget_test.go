// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

// pins returns the owners of what is pinned.
func (f *fixture) pins() (owners []string) {
	f.Helper()
	for p, err := range f.ListPins(f.Context(), bucket) {
		require.NoError(f, err)
		owners = append(owners, p.Owner)
	}
	return owners
}

// Nobody else would remove them where the rules go before the next pass.
func TestWhatIsForgottenPinsNothing(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(5))
	f.put(numbered(40)...)
	f.days(2)
	f.run()
	before := f.pins()
	require.Len(t, before, lifecycle.Shards)
	removed, err := dailyrun.Forget(t.Context(), f.Graveler, f.records, 3)
	require.NoError(t, err)
	require.Positive(t, removed)
	require.Equal(t, append(before[:3:3], before[4:]...), f.pins(), "those of the shard")
	for shard := range lifecycle.Shards {
		_, err := dailyrun.Forget(t.Context(), f.Graveler, f.records, shard)
		require.NoError(t, err)
	}
	require.Empty(t, f.pins())
	f.days(4)
	f.run()
	require.Empty(t, f.keys(bucket), "and nothing that is due is lost")
}
