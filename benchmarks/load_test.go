// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/benchmarks/measure"
)

// What waits behind a slow operation is late, even if it is quick once it comes to its turn.
func TestLatencyOfAPacedLoadCountsFromWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := measure.NewRecorder(100*time.Millisecond, "all")
		l := startLoad(t.Context(), 1, 10, rec, "op", func(_ context.Context, _, n int) error {
			if n == 0 {
				time.Sleep(time.Second)
			}
			return nil
		})
		require.NoError(t, pause(t.Context(), 2050*time.Millisecond))
		done, err := l.stop()
		require.NoError(t, err)
		require.Equal(t, []int{21}, done, "due every 100 ms from 0 to 2 s")
		phases, points, err := rec.Finish()
		require.NoError(t, err)
		op := phases[0].Operations[0]
		require.EqualValues(t, 21, op.Count)
		require.InDelta(t, 1, op.Max, 0.01)
		require.InDelta(t, 0.9, op.P90, 0.11, "the second waits for 0.9 s, the third for 0.8 s, and so on")
		require.Len(t, points, 10, "from the first interval in which something ended")
		require.InDelta(t, 110, points[0].PerSecond, 1, "all that was due, at once")
	})
}

func TestAClosedLoopDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := measure.NewRecorder(time.Second, "all")
		l := startLoad(t.Context(), 3, 0, rec, "op", func(context.Context, int, int) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		require.NoError(t, pause(t.Context(), 950*time.Millisecond))
		done, err := l.stop()
		require.NoError(t, err)
		require.Equal(t, []int{10, 10, 10}, done)
		phases, _, err := rec.Finish()
		require.NoError(t, err)
		require.InDelta(t, 0.1, phases[0].Operations[0].Max, 0.001)
	})
}

func TestAnErrorEndsALoad(t *testing.T) {
	broken := errors.New("broken")
	fail := func(_ context.Context, worker, n int) error {
		if worker == 1 && n == 3 {
			return broken
		}
		return nil
	}
	l := startLoad(t.Context(), 3, 0, measure.NewRecorder(time.Second, "all"), "op", fail)
	<-l.ended(t)
	_, err := l.stop()
	require.ErrorIs(t, err, broken)
	var b bursts
	_, err = b.run(t.Context(), 3, time.Hour, func(ctx context.Context, worker, n int) error { return errors.Join(fail(ctx, worker, n), ctx.Err()) })
	require.ErrorIs(t, err, broken)
}

// ended returns a channel that is closed when all workers have ended.
func (l *load) ended(t *testing.T) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = l.group.Wait() // stop returns the same
	}()
	return ended
}

func TestBurstsGoOnWhereTheyWere(t *testing.T) {
	var b bursts
	seen := map[int]bool{}
	for range 3 {
		rate, err := b.run(t.Context(), 1, 0, func(_ context.Context, _, n int) error {
			require.False(t, seen[n])
			seen[n] = true
			return nil
		})
		require.NoError(t, err)
		require.Positive(t, rate)
	}
	require.Equal(t, []int{3}, b.done)
}
