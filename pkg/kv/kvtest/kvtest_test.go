// SPDX-License-Identifier: Apache-2.0

package kvtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// plain has no capabilities, so that the suite runs through the fallbacks.
type plain struct{ kv.Store }

func TestConformanceOfAPlainStore(t *testing.T) {
	open := func(ctx context.Context, url string, o kv.OpenOptions) (kv.Store, error) {
		s, err := mem.Open(ctx, url, o)
		return plain{s}, err
	}
	kvtest.Run(t, kvtest.Harness{Open: open, NewURL: func(*testing.T) string { return "mem:" }})
}

func TestConformanceOfACounter(t *testing.T) {
	open := func(ctx context.Context, url string, o kv.OpenOptions) (kv.Store, error) {
		s, err := mem.Open(ctx, url, o)
		return kvtest.Counting(s), err
	}
	kvtest.Run(t, kvtest.Harness{Open: open, NewURL: func(*testing.T) string { return "mem:" }})
}

func TestCounterCountsCallsByMethod(t *testing.T) {
	ctx, p, k := t.Context(), []byte("p"), []byte("k")
	c := kvtest.Counting(mem.New())
	require.Zero(t, c.Total())
	require.NoError(t, c.Set(ctx, p, k, k))
	require.NoError(t, c.SetIf(ctx, p, k, k, kv.Present))
	for range 3 {
		_, err := c.Get(ctx, p, k)
		require.NoError(t, err)
	}
	require.ErrorIs(t, c.DeleteIf(ctx, p, k, kv.Absent), kv.ErrPredicateFailed)
	require.NoError(t, c.Delete(ctx, p, k))
	require.NoError(t, c.Apply(ctx, p, nil, nil))
	require.NoError(t, kv.SetMany(ctx, c, p, []kv.Write{{Key: k, Value: k}}))
	require.NoError(t, kv.DropPartition(ctx, c, p))
	it, err := c.Scan(ctx, p, kv.ScanOptions{})
	require.NoError(t, err)
	require.NoError(t, it.Close())
	require.Equal(t, map[string]int{
		"Get": 3, "Set": 1, "SetIf": 1, "Delete": 1, "DeleteIf": 1, "Apply": 1, "Scan": 1, "SetMany": 1, "DropPartition": 1,
	}, c.Counts())
	require.Equal(t, 11, c.Total())
	c.Reset()
	require.Zero(t, c.Total())
}
