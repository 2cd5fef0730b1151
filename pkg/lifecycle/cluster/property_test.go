// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/kv/postgres"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
)

func drawShards(t *rapid.T) []int {
	shards := rapid.SliceOfNDistinct(rapid.IntRange(0, lifecycle.Shards-1), 1, lifecycle.Shards, rapid.ID[int]).Draw(t, "shards")
	slices.Sort(shards)
	return shards
}

func TestPlansAreFairAndFinal(t *testing.T) {
	every := make([]int, lifecycle.Shards)
	for i := range every {
		every[i] = i
	}
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.Bool().Draw(t, "some")
		takes := map[string][]int{}
		var ids []string
		for i := range rapid.IntRange(1, 20).Draw(t, "workers") {
			id := fmt.Sprintf("w%02d", i)
			ids = append(ids, id)
			takes[id] = every
			if some {
				takes[id] = drawShards(t)
			}
		}
		var holders [lifecycle.Shards]string
		for shard := range holders {
			holders[shard] = rapid.SampledFrom(append(ids, "", "gone")).Draw(t, "holder")
		}
		planned := cluster.Plan(takes, holders)
		require.Equal(t, planned, cluster.Plan(takes, planned), "a plan that is carried out stays")
		load := map[string]int{}
		for shard, id := range planned {
			if id == "" {
				for _, shards := range takes {
					require.NotContains(t, shards, shard, "somebody would have taken it")
				}
				continue
			}
			require.Contains(t, takes[id], shard)
			load[id]++
		}
		for shard, id := range planned {
			for other, shards := range takes {
				if id != "" && slices.Contains(shards, shard) {
					require.LessOrEqual(t, load[id]-load[other], 1, "%s could have shard %d of %s", other, shard, id)
				}
			}
		}
		moved := 0
		for shard := range planned {
			if planned[shard] != holders[shard] && takes[holders[shard]] != nil {
				moved++
			}
		}
		if !some && len(ids) == 1 {
			require.Zero(t, moved)
		}
	})
}

// Workers join, leave, die, work and stop working at any time; renewals come when they come. In one clock no shard is ever held
// by two. When everybody has been left alone for a while, all shards are held, and evenly.
func TestShardsAreSharedWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store, c := mem.New(), newClock()
		var live, dead []*cluster.Worker
		var doing []func()
		check := func() { exclusive(rt, append(slices.Clone(live), dead...)...) }
		pick := func() *cluster.Worker { return rapid.SampledFrom(live).Draw(rt, "worker") }
		skew := rapid.SampledFrom([]time.Duration{0, -5 * time.Minute, 5 * time.Minute, time.Minute})
		rt.Repeat(map[string]func(*rapid.T){
			"join": func(rt *rapid.T) {
				if len(live) < 6 {
					live = append(live, newWorker(rt, store, c.Now))
				}
			},
			"join with another clock": func(rt *rapid.T) {
				if len(live) == 0 {
					live = append(live, newWorker(rt, store, c.off(skew.Draw(rt, "skew")/2)))
				}
			},
			"round": func(rt *rapid.T) {
				if len(live) > 0 {
					require.NoError(rt, pick().Round(t.Context()))
				}
			},
			"another round": func(rt *rapid.T) {
				if len(live) > 0 {
					require.NoError(rt, pick().Round(t.Context()))
				}
			},
			"work": func(rt *rapid.T) {
				if len(live) == 0 {
					return
				}
				w := pick()
				if shards := w.Shards(); len(shards) > 0 {
					_, done, ok := w.Hold(t.Context(), rapid.SampledFrom(shards).Draw(rt, "shard"))
					require.True(rt, ok)
					doing = append(doing, done)
				}
			},
			"end work": func(*rapid.T) {
				if len(doing) > 0 {
					doing[0]()
					doing = doing[1:]
				}
			},
			"die": func(rt *rapid.T) {
				if len(live) > 0 {
					i := rapid.IntRange(0, len(live)-1).Draw(rt, "which")
					dead = append(dead, live[i])
					live = slices.Delete(live, i, i+1)
				}
			},
			"leave": func(rt *rapid.T) {
				if len(live) > 0 {
					i := rapid.IntRange(0, len(live)-1).Draw(rt, "which")
					ctx, cancel := context.WithCancel(t.Context())
					for _, done := range doing {
						done()
					}
					doing = nil
					require.NoError(rt, live[i].Close(ctx))
					cancel()
					live = slices.Delete(live, i, i+1)
				}
			},
			"time": func(rt *rapid.T) {
				c.add(time.Duration(rapid.Int64Range(0, int64(term)).Draw(rt, "passes")))
				for _, w := range live {
					w.Lapse()
				}
			},
			"": func(*rapid.T) { check() },
		})
		for _, done := range doing {
			done()
		}
		if len(live) == 0 {
			live = append(live, newWorker(rt, store, c.Now))
		}
		for range 12 {
			for _, w := range live {
				require.NoError(rt, w.Round(t.Context()))
				check()
			}
			c.add(renew)
			for _, w := range live {
				w.Lapse()
			}
			check()
		}
		fair(rt, live...)
		require.NoError(rt, store.Close())
	})
}

// Two processes as far as the server can tell, and both at once.
func TestWorkersShareThroughPostgreSQL(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	c := newClock()
	var workers []*cluster.Worker
	for range 2 {
		store, err := kv.Open(t.Context(), url, kv.Engines{"postgres": postgres.Open}, kv.OpenOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		workers = append(workers, newWorker(t, store, c.Now))
	}
	a, b := workers[0], workers[1]
	together := func(workers ...*cluster.Worker) {
		t.Helper()
		var group errgroup.Group
		var mu sync.Mutex
		for _, w := range workers {
			group.Go(func() error {
				err := w.Round(t.Context())
				mu.Lock()
				defer mu.Unlock()
				exclusive(t, a, b)
				return err
			})
		}
		require.NoError(t, group.Wait())
		c.add(renew)
	}
	for range 5 {
		together(a, b)
	}
	fair(t, a, b)
	require.NoError(t, b.Round(t.Context()))
	for range 4 { // a is dead
		together(b)
	}
	require.Len(t, b.Held(), 16)
	for range 4 { // it was not
		together(a, b)
	}
	fair(t, a, b)
	require.NoError(t, a.Close(t.Context()))
	together(b)
	require.Len(t, b.Held(), 16)
	require.NoError(t, b.Close(t.Context()))
}
