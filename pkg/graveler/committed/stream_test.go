// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// walkFrom goes on from entry i for n entries, or to the end of a tree of total entries.
func walkFrom(t *testing.T, it *scan, i, n, total int) {
	for ; n > 0; i, n = i+1, n-1 {
		if i == total {
			require.False(t, it.Next())
			require.NoError(t, it.Err())
			return
		}
		if !it.Next() || string(it.Item().Key) != string(entry(i).Key) || string(it.Item().Value.Identity) != string(entry(i).Value.Identity) {
			t.Fatalf("entry %d: %q, %v", i, it.Item().Key, it.Err())
		}
	}
}

func TestLongWalksAndSeeksBetweenThem(t *testing.T) {
	const n = 30_000
	s, counter := newStore(t)
	tree := large(t, s, n)
	s = reopened(t, s)
	rnd := rand.New(rand.NewPCG(1, 1))
	before := runtime.NumGoroutine()
	it := s.Scan(t.Context(), ns, tree).(*scan)
	walkFrom(t, it, 0, n+1, n)
	for range 30 {
		from := rnd.IntN(n)
		it.SeekGE(entry(from).Key)
		walkFrom(t, it, from, 1+rnd.IntN(6000), n)
	}
	require.NoError(t, it.Close())
	requireNoGoroutines(t, before)

	// A walk of everything fetches each range once, whole, but for the first few blocks of the first.
	s = reopened(t, s)
	counter.Reset()
	it = s.Scan(t.Context(), ns, tree).(*scan)
	walkFrom(t, it, 0, n+1, n)
	require.NoError(t, it.Close())
	got := counter.Counts()
	require.LessOrEqual(t, got.GetRange.Calls, 1+streamAfter)
	require.Greater(t, got.Get.Calls, 5)
	require.Less(t, got.Get.Calls, n/1000)
}

func TestAWalkThatEndsEarlyStopsWhatIsOnItsWay(t *testing.T) {
	const n = 30_000
	s, _ := newStore(t)
	tree := large(t, s, n)
	before := runtime.NumGoroutine()
	for i := range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		it := s.Scan(ctx, ns, tree).(*scan)
		walkFrom(t, it, 0, i*2500, n)
		if i%2 == 0 {
			cancel()
			for it.Next() {
			}
			require.ErrorIs(t, it.Err(), context.Canceled)
			require.ErrorIs(t, it.Close(), context.Canceled)
		} else {
			require.NoError(t, it.Close())
			cancel()
		}
		requireNoGoroutines(t, before)
	}
}
