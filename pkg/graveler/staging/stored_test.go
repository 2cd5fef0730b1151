// SPDX-License-Identifier: Apache-2.0

package staging_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

func TestAScanOfWhatIsStoredGoesOnBehindWhatDoesNotDecode(t *testing.T) {
	store := mem.New()
	ctx, s := t.Context(), staging.New(store)
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, s.Apply(ctx, nil, token, []graveler.StagedWrite{{Key: graveler.Key(key)}}))
	}
	require.NoError(t, store.Set(ctx, []byte(token), []byte("b"), []byte("\xff")))
	var keys []string
	for r, err := range s.ScanStored(ctx, token) {
		require.NoError(t, err)
		keys = append(keys, string(r.Key))
		if string(r.Key) != "b" {
			require.NoError(t, r.Problem)
			continue
		}
		require.ErrorIs(t, r.Problem, graveler.ErrCorrupt)
		require.ErrorContains(t, r.Problem, string(token))
	}
	require.Equal(t, []string{"a", "b", "c"}, keys)
	for range s.ScanStored(ctx, token) {
		break
	}
	for _, method := range []string{"Scan", "Next"} {
		faulty := staging.New(kvtest.Faulty(store, kvtest.FailBefore(kvtest.Nth(method, 1))))
		var last error
		for _, err := range faulty.ScanStored(ctx, token) {
			last = err
		}
		require.ErrorIs(t, last, kvtest.ErrInjected)
	}
	require.NoError(t, store.Close())
	for _, err := range s.ScanStored(ctx, token) {
		require.ErrorIs(t, err, kv.ErrClosed)
		require.ErrorIs(t, err, graveler.ErrClosed)
	}
}
