// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

func TestMalformedRecordsAreForgottenAndNoOthers(t *testing.T) {
	store, c := memStore(t), newClock()
	damaged := []string{"leases/shard-05", "leases/shard-5", "workers/x"}
	for _, key := range damaged {
		require.NoError(t, store.Set(t.Context(), []byte(cursor.Partition), []byte(key), []byte("damaged")))
	}
	w := newWorker(t, store, c.Now)
	require.ErrorIs(t, w.Round(t.Context()), cursor.ErrMalformed)
	before, err := cluster.ReadState(t.Context(), store)
	require.ErrorIs(t, err, cursor.ErrMalformed)
	require.Len(t, before.Leases, 15)
	for _, want := range []int{3, 0} {
		n, err := cluster.ForgetMalformed(t.Context(), store)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	after, err := cluster.ReadState(t.Context(), store)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoError(t, w.Round(t.Context()))
	require.Len(t, w.Held(), 16)

	require.NoError(t, store.Set(t.Context(), []byte(cursor.Partition), []byte(damaged[0]), []byte("damaged")))
	_, err = cluster.ForgetMalformed(t.Context(), kv.ReadOnly(store))
	require.ErrorIs(t, err, kv.ErrReadOnly)
	require.ErrorContains(t, err, damaged[0])
}
