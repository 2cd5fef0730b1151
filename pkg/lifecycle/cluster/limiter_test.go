// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
)

func rated(perSecond float64, burst int) func(c *cluster.Config) {
	return func(c *cluster.Config) { c.DeletesPerSecond, c.DeletesBurst = perSecond, burst }
}

func TestTheRateIsSharedByShards(t *testing.T) {
	store, c := memStore(t), newClock()
	a, b := newWorker(t, store, c.Now, rated(1000, 0)), newWorker(t, store, c.Now, rated(1000, 0))
	share := func(w *cluster.Worker, perSecond float64, burst int) {
		t.Helper()
		r, n := w.Limiter().Rate()
		require.InDelta(t, perSecond, r, 1e-6)
		require.Equal(t, burst, n)
	}
	share(a, 0, 0)
	rounds(t, c, 1, a)
	share(a, 1000, 2000)
	rounds(t, c, 3, a, b)
	share(a, 500, 1000)
	share(b, 500, 1000)
	require.NoError(t, b.Close(t.Context()))
	share(b, 0, 0)
	_, err := b.Limiter().Wait(t.Context(), 1)
	require.ErrorIs(t, err, cluster.ErrNoShare)
	rounds(t, c, 1, a)
	share(a, 1000, 2000)
	c.add(term)
	a.Lapse()
	share(a, 0, 0)
}

func TestWaitingTakesAsLongAsTheRateSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := cluster.NewLimiter(100, 0)
		require.NoError(t, err)
		for _, step := range []struct {
			n      int
			waited time.Duration
		}{
			{200, 0},                      // the burst
			{0, 0},                        //
			{1, 10 * time.Millisecond},    //
			{1000, 10 * time.Second},      // in slices
			{100_000, 1000 * time.Second}, //
		} {
			waited, err := l.Wait(t.Context(), step.n)
			require.NoError(t, err)
			require.InDelta(t, step.waited, waited, float64(time.Microsecond))
		}
		require.InDelta(t, 1010*time.Second+10*time.Millisecond, l.Waited(), float64(time.Millisecond))

		// A change of the part counts at once: 100 in the first second, 1900 at half the rate.
		half := time.AfterFunc(time.Second, func() { l.Share(8) })
		defer half.Stop()
		waited, err := l.Wait(t.Context(), 2000)
		require.NoError(t, err)
		require.InDelta(t, 39*time.Second, waited, float64(time.Millisecond))

		none := time.AfterFunc(time.Second, func() { l.Share(0) })
		defer none.Stop()
		_, err = l.Wait(t.Context(), 2000)
		require.ErrorIs(t, err, cluster.ErrNoShare)
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := cluster.NewLimiter(1, 1)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		waited, err := l.Wait(ctx, 1000)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 90*time.Second, waited, "not before")
		_, err = l.Wait(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		waited, err = l.Wait(t.Context(), 1)
		require.NoError(t, err)
		require.LessOrEqual(t, waited, time.Second, "what was not waited for is not taken")
	})
}

func TestNoRateIsNoBound(t *testing.T) {
	l, err := cluster.NewLimiter(0, 0)
	require.NoError(t, err)
	waited, err := l.Wait(t.Context(), 1<<40)
	require.NoError(t, err)
	require.Zero(t, waited)
	r, burst := l.Rate()
	require.Zero(t, r)
	require.Zero(t, burst)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Wait(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
}

func TestBurstsAreAtLeastOne(t *testing.T) {
	for _, c := range []struct {
		perSecond    float64
		burst, whole int
	}{{0.1, 0, 1}, {1, 0, 2}, {1.2, 0, 3}, {1, 1, 1}, {10, 5, 5}, {1e18, 0, 1<<31 - 1}} {
		l, err := cluster.NewLimiter(c.perSecond, c.burst)
		require.NoError(t, err)
		_, burst := l.Rate()
		require.Equal(t, c.whole, burst)
		l.Share(1)
		_, burst = l.Rate()
		require.Equal(t, max(1, c.whole/16), burst)
	}
	_, err := cluster.NewLimiter(0, 1)
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
}
