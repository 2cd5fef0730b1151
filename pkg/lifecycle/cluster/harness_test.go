// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
)

// clock stands still unless it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// off is the clock of a machine that differs.
func (c *clock) off(d time.Duration) func() time.Time {
	return func() time.Time { return c.Now().Add(d) }
}

func memStore(t testing.TB) kv.Store {
	store := mem.New()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

const (
	term  = time.Minute
	renew = 20 * time.Second
)

func newWorker(t require.TestingT, store kv.Store, now func() time.Time, change ...func(c *cluster.Config)) *cluster.Worker {
	c := cluster.Config{Store: store, LeaseFor: term, RenewEvery: renew, Now: now}
	for _, f := range change {
		f(&c)
	}
	w, err := cluster.New(c)
	require.NoError(t, err)
	return w
}

func takes(shards ...int) func(c *cluster.Config) {
	return func(c *cluster.Config) { c.Shards = shards }
}

// rounds lets each worker have n rounds, a renewal apart.
func rounds(t *testing.T, c *clock, n int, workers ...*cluster.Worker) {
	t.Helper()
	for range n {
		for _, w := range workers {
			require.NoError(t, w.Round(t.Context()))
			exclusive(t, workers...)
		}
		c.add(renew)
		for _, w := range workers {
			w.Lapse()
		}
	}
}

// exclusive makes sure that no shard is held twice.
func exclusive(t require.TestingT, workers ...*cluster.Worker) {
	holder := map[int]string{}
	for _, w := range workers {
		for _, shard := range w.Held() {
			require.Empty(t, holder[shard], "shard %d is held by two", shard)
			holder[shard] = w.ID()
		}
	}
}

// shares are the numbers of shards that workers hold.
func shares(workers ...*cluster.Worker) (n []int) {
	for _, w := range workers {
		n = append(n, len(w.Held()))
	}
	return n
}

// fair makes sure that all shards are held, and no two workers differ by more than one.
func fair(t require.TestingT, workers ...*cluster.Worker) {
	exclusive(t, workers...)
	sum, least, most := 0, lifecycle.Shards, 0
	for _, n := range shares(workers...) {
		sum, least, most = sum+n, min(least, n), max(most, n)
	}
	require.Equal(t, lifecycle.Shards, sum, fmt.Sprint(shares(workers...)))
	require.LessOrEqual(t, most-least, 1, fmt.Sprint(shares(workers...)))
}

func state(t require.TestingT, store kv.Store, t0 *testing.T) cluster.State {
	s, err := cluster.ReadState(t0.Context(), store)
	require.NoError(t, err)
	return s
}
