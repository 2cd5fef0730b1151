// SPDX-License-Identifier: Apache-2.0

package cursor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

func TestAShardIsForgottenWhateverIsInItsRecords(t *testing.T) {
	engines(t, func(t *testing.T, store kv.Store) {
		s := cursor.New(store)
		for _, shard := range []string{"02", "03", "04"} {
			for _, key := range []string{"cursors/shard-" + shard, "positions/" + shard + "/" + repoUID + "/" + branchUID, "positions/" + shard + "/x", "deferred/" + shard + "/y"} {
				require.NoError(t, store.Set(t.Context(), []byte(cursor.Partition), []byte(key), []byte("damaged")))
			}
		}
		for _, key := range []string{walkKey, walkKey + "/00ff", "walks/x"} {
			require.NoError(t, store.Set(t.Context(), []byte(cursor.Partition), []byte(key), []byte("damaged")))
		}
		for _, want := range []int{4 + 3, 0} {
			n, err := s.Forget(t.Context(), 3)
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
		it, err := store.Scan(t.Context(), []byte(cursor.Partition), kv.ScanOptions{})
		require.NoError(t, err)
		left := 0
		for it.Next() {
			require.NotContains(t, string(it.Key()), "03")
			left++
		}
		require.NoError(t, it.Close())
		require.Equal(t, 8, left)
		for _, shard := range []int{-1, lifecycle.Shards} {
			_, err := s.Forget(t.Context(), shard)
			require.ErrorIs(t, err, graveler.ErrInvalidValue)
		}
	})
}
