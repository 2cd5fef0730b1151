// SPDX-License-Identifier: Apache-2.0

package blocktest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	"github.com/moraine-store/moraine/pkg/block/mem"
)

// A counter is a storage like any other.
func TestCounterConforms(t *testing.T) {
	blocktest.Run(t, func(*testing.T) blocktest.Harness {
		s := blocktest.Counting(mem.New())
		return blocktest.Harness{Forgetful: true, Open: func(_ context.Context, o block.OpenOptions) (block.Storage, error) {
			if o.ReadOnly {
				return block.ReadOnly(s), nil
			}
			return s, nil
		}}
	})
}

func TestCounterCounts(t *testing.T) {
	ctx := t.Context()
	s := blocktest.Counting(mem.New())
	require.NoError(t, s.Put(ctx, "a", []byte("12345")))
	require.NoError(t, s.Put(ctx, "b", []byte("123")))
	_, err := s.Get(ctx, "a")
	require.NoError(t, err)
	_, err = s.Get(ctx, "missing")
	require.ErrorIs(t, err, block.ErrNotFound)
	_, err = s.GetRange(ctx, "a", 1, 3)
	require.NoError(t, err)
	_, err = s.Stat(ctx, "a")
	require.NoError(t, err)
	for _, err := range s.List(ctx, "") {
		require.NoError(t, err)
	}
	require.NoError(t, s.Refresh(ctx, "a"))
	require.NoError(t, s.Sync(ctx, []string{"a", "b"}))
	require.NoError(t, s.Delete(ctx, "a"))
	require.Equal(t, blocktest.Counts{
		Put:      blocktest.Count{Calls: 2, Files: 2, Bytes: 8},
		Get:      blocktest.Count{Calls: 2, Files: 1, Bytes: 5},
		GetRange: blocktest.Count{Calls: 1, Files: 1, Bytes: 3},
		Stat:     blocktest.Count{Calls: 1, Files: 1},
		List:     blocktest.Count{Calls: 1, Files: 2},
		Refresh:  blocktest.Count{Calls: 1, Files: 1},
		Sync:     blocktest.Count{Calls: 1, Files: 2},
		Delete:   blocktest.Count{Calls: 1, Files: 1},
	}, s.Counts())
	s.Reset()
	require.Zero(t, s.Counts())
}
