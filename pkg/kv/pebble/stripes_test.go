// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/kv"
)

// TestAnApplyWaitsForAChangeOfItsFence is between the lock and the write of a SetIf of the fence when
// the Apply comes.
func TestAnApplyWaitsForAChangeOfItsFence(t *testing.T) {
	s, ctx := openMem(t, newMem(t)), t.Context()
	require.NoError(t, s.SetIf(ctx, part, []byte("fence"), []byte("1"), kv.Absent))
	fenceKey := encode(part, []byte("fence"))
	fence := &kv.Fence{Partition: part, Key: []byte("fence"), Predicate: kv.Equals([]byte("1"))}
	writes := []kv.Write{{Key: []byte("k"), Value: []byte("v")}}

	h := s.stripes.lock([][]byte{fenceKey}, nil)
	var g errgroup.Group
	g.Go(func() error { return s.Apply(ctx, part, writes, fence) })
	for range 1000 {
		runtime.Gosched()
	}
	require.NoError(t, s.db.Set(fenceKey, []byte("2"), pebble.Sync))
	h.unlock()
	require.ErrorIs(t, g.Wait(), kv.ErrFenceFailed)
	_, err := s.Get(ctx, part, []byte("k"))
	require.ErrorIs(t, err, kv.ErrNotFound)
	require.NoError(t, s.Close())
}

func TestManyMayHoldTheSameFence(t *testing.T) {
	s, ctx := openMem(t, newMem(t)), t.Context()
	require.NoError(t, s.SetIf(ctx, part, []byte("fence"), []byte("1"), kv.Absent))
	h := s.stripes.lock(nil, encode(part, []byte("fence")))
	fence := &kv.Fence{Partition: part, Key: []byte("fence"), Predicate: kv.Present}
	require.NoError(t, s.Apply(ctx, part, []kv.Write{{Key: []byte("k"), Value: []byte("v")}}, fence))
	h.unlock()
	require.NoError(t, s.Close())
}

func TestAFenceMayShareTheStripeOfAWrite(t *testing.T) {
	s, ctx := openMem(t, newMem(t)), t.Context()
	stripe := s.stripes.index(encode(part, []byte("fence")))
	key := []byte{0, 0}
	for s.stripes.index(encode(part, key)) != stripe {
		if key[0]++; key[0] == 0 {
			key[1]++
		}
	}
	require.NoError(t, s.SetIf(ctx, part, []byte("fence"), []byte("1"), kv.Absent))
	fence := &kv.Fence{Partition: part, Key: []byte("fence"), Predicate: kv.Present}
	require.NoError(t, s.Apply(ctx, part, []kv.Write{{Key: key, Value: []byte("v")}}, fence))
	requireValue(t, s, string(key), "v")
	require.NoError(t, s.Close())
}
