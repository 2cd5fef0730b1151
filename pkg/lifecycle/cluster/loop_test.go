// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
)

// In these tests time is that of a bubble, and workers have their loops.

func TestTheLoopRenewsSharesAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		a, b := newWorker(t, store, nil), newWorker(t, store, nil)
		require.NoError(t, a.Start(t.Context()))
		require.Len(t, a.Shards(), 16, "at once")
		require.Error(t, a.Start(t.Context()), "again")
		require.NoError(t, b.Start(t.Context()))
		time.Sleep(3 * renew)
		synctest.Wait()
		fair(t, a, b)
		time.Sleep(time.Hour)
		synctest.Wait()
		fair(t, a, b)

		// Its shards are asked back while it works on one, and it notices at once when the work ends.
		shard := a.Shards()[7]
		ctx, done, ok := a.Hold(t.Context(), shard)
		require.True(t, ok)
		d := newWorker(t, store, nil)
		require.NoError(t, d.Start(t.Context()))
		time.Sleep(2*renew + renew/2)
		require.ErrorIs(t, context.Cause(ctx), cluster.ErrGivenBack)
		require.Contains(t, a.Held(), shard)
		done()
		synctest.Wait()
		require.NotContains(t, a.Held(), shard)

		ctx, done, ok = b.Hold(t.Context(), b.Shards()[0])
		require.True(t, ok)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			<-ctx.Done()
			time.Sleep(5 * term) // it takes its time, and its leases are renewed meanwhile
			require.NotEmpty(t, b.Held())
			done()
		}()
		require.NoError(t, b.Close(t.Context()))
		<-ended
		require.ErrorIs(t, context.Cause(ctx), cluster.ErrClosed)
		require.Empty(t, b.Held())
		time.Sleep(2 * renew)
		synctest.Wait()
		fair(t, a, d)
		require.NoError(t, a.Close(t.Context()))
		require.NoError(t, d.Close(t.Context()))
		require.Equal(t, cluster.State{}, state(t, store, t))
		require.NoError(t, store.Close())
	})
}

func TestCloseDoesNotReleaseWhatIsStillWorkedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		a := newWorker(t, store, nil)
		require.NoError(t, a.Start(t.Context()))
		_, done, ok := a.Hold(t.Context(), 5)
		require.True(t, ok)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.ErrorIs(t, a.Close(ctx), context.DeadlineExceeded)
		done()
		require.NoError(t, a.Close(t.Context()))
		require.Equal(t, cluster.State{}, state(t, store, t))
		require.NoError(t, store.Close())
	})
}

// silentStore answers nothing, while it is told so, until contexts end.
type silentStore struct {
	kv.Store
	silent atomic.Bool
}

func (s *silentStore) Set(ctx context.Context, partition, key, value []byte) error {
	if s.silent.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Store.Set(ctx, partition, key, value)
}

func TestAStoreThatDoesNotAnswerDoesNotKeepWorkGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &silentStore{Store: mem.New()}
		a := newWorker(t, store, nil)
		require.NoError(t, a.Start(t.Context()))
		began := time.Now()
		ctx, done, ok := a.Hold(t.Context(), 5)
		require.True(t, ok)
		store.silent.Store(true)
		<-ctx.Done()
		require.Equal(t, term, time.Since(began), "to the nanosecond")
		require.ErrorIs(t, context.Cause(ctx), cluster.ErrLost)
		require.Error(t, a.Err())
		done()
		store.silent.Store(false)
		time.Sleep(2 * renew)
		synctest.Wait()
		require.Len(t, a.Shards(), 16)
		require.NoError(t, a.Close(t.Context()))
		require.NoError(t, store.Close())
	})
}
