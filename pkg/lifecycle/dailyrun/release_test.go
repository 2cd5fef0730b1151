// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// takenHolder holds all shards until take is called, which takes one.
type takenHolder struct {
	cancel map[int]context.CancelFunc
	ended  map[int]bool
}

func newTakenHolder() *takenHolder {
	return &takenHolder{cancel: map[int]context.CancelFunc{}, ended: map[int]bool{}}
}

func (h *takenHolder) Shards() (shards []int) {
	for n := range lifecycle.Shards {
		shards = append(shards, n)
	}
	return shards
}

func (h *takenHolder) Hold(ctx context.Context, n int) (context.Context, func(), bool) {
	ctx, cancel := context.WithCancel(ctx)
	h.cancel[n] = cancel
	return ctx, func() { h.ended[n] = true }, true
}

func (h *takenHolder) take(n int) { h.cancel[n]() }

type dispatchFunc func(ctx context.Context, s dispatch.Source, batches []dispatch.Batch) ([][]dispatch.Result, error)

func (d dispatchFunc) Dispatch(ctx context.Context, s dispatch.Source, batches []dispatch.Batch) ([][]dispatch.Result, error) {
	return d(ctx, s, batches)
}

// diffHook is a store that calls hook before it yields the difference of a key between two trees.
type diffHook struct {
	*graveler.Graveler
	key  string
	hook func()
}

func (s *diffHook) DiffTrees(ctx context.Context, repo graveler.RepositoryID, left, right graveler.MetaRangeID, o graveler.DiffOptions) iter.Seq2[graveler.Diff, error] {
	return func(yield func(graveler.Diff, error) bool) {
		for d, err := range s.Graveler.DiffTrees(ctx, repo, left, right, o) {
			if string(d.Key) == s.key {
				s.hook()
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Whoever waits for a shard gets it when what is under way has been done, and not only when the pass has ended.
func TestAShardThatIsTakenDuringAPassIsLetGoOfBeforeThePassEnds(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	const zoo graveler.RepositoryID = "zoo"
	f.bucket(zoo, catalog.VersioningOff)
	f.rules(bucket, expire(1))
	f.rules(zoo, expire(1))
	for n := range 64 {
		for _, repo := range []graveler.RepositoryID{bucket, zoo} {
			_, err := f.catalog.Put(t.Context(), in(repo), fmt.Sprint(n), catalog.Object{PhysicalAddress: "a"}, catalog.Conditions{})
			require.NoError(t, err)
		}
	}
	f.commit(bucket)
	f.commit(zoo)
	f.days(2)
	h := newTakenHolder()
	f.config.Holder = h
	taken := []int{3, 11}
	first := graveler.RepositoryID("")
	f.config.Dispatcher = dispatchFunc(func(ctx context.Context, s dispatch.Source, batches []dispatch.Batch) ([][]dispatch.Result, error) {
		if first == "" {
			first = s.Repository
			for _, n := range taken {
				h.take(n)
			}
			require.Empty(t, h.ended, "this is under way")
		}
		if s.Repository != first {
			require.Equal(t, map[int]bool{3: true, 11: true}, h.ended)
			for _, b := range batches {
				require.NotContains(t, taken, b.Shard, "others do it")
			}
		}
		return f.mover.Dispatch(ctx, s, batches)
	})
	f.run()
	require.Len(t, h.ended, lifecycle.Shards)
	require.Empty(t, f.keys(first))
	other := zoo
	if first == zoo {
		other = bucket
	}
	for _, key := range f.keys(other) {
		require.Contains(t, taken, lifecycle.ShardOf(other, key))
	}
	require.NotEmpty(t, f.keys(other))
}

// A pass that reads for long before it dispatches anything lets go of a shard as soon as it comes to one of its keys.
func TestAShardThatIsTakenWhileAPassReadsIsLetGoOf(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(1))
	var keys []string
	for n := range 64 {
		keys = append(keys, fmt.Sprintf("%02d", n))
	}
	f.put(keys...)
	f.days(2)
	h := newTakenHolder()
	f.config.Holder = h
	n := lifecycle.ShardOf(bucket, keys[32])
	f.config.Store = &diffHook{f.Graveler, keys[16], func() { h.take(n) }}
	let := map[string]bool{} // whether it had been let go of when a key was dispatched
	f.config.Dispatcher = dispatchFunc(func(ctx context.Context, s dispatch.Source, batches []dispatch.Batch) ([][]dispatch.Result, error) {
		for _, b := range batches {
			for _, item := range b.Items {
				let[item.LogicalKey] = h.ended[n]
			}
		}
		return f.mover.Dispatch(ctx, s, batches)
	})
	f.run()
	require.NotContains(t, let, keys[32])
	require.Contains(t, let, keys[0])
	require.False(t, let[keys[0]], "it was gathered before, and goes first")
	last := slices.Max(slices.Collect(maps.Keys(let)))
	require.True(t, let[last], last)
}

// A walk over much may take long, and has nothing under way of any shard; so have deferred objects.
func TestAShardThatIsTakenDuringAWalkIsLetGoOfAtOnce(t *testing.T) {
	f, w, _ := newWalkFixture(t)
	f.put("b", "c")
	f.days(1)
	h := newTakenHolder()
	f.config.Holder, f.config.Repositories = h, []graveler.RepositoryID{bucket}
	taken := (lifecycle.ShardOf(bucket, "") + 1) % lifecycle.Shards // the walk goes on
	let := map[string]bool{}
	w.before = func(_ context.Context, _ graveler.RepositoryID, key string) error {
		if key == "a" {
			h.take(taken)
		}
		let[key] = h.ended[taken]
		return nil
	}
	f.run()
	require.Equal(t, map[string]bool{"a": false, "b": true, "c": true}, let)
}

func TestAShardThatIsTakenWhileDeferredObjectsAreLookedAtIsLetGoOf(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.rules(bucket, `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":1}`)
	last := 0
	for _, key := range numbered(20) {
		f.lockedVersion(key, 10)
		last = max(last, lifecycle.ShardOf(bucket, key))
	}
	f.days(3)
	f.run()
	f.days(10)
	h := newTakenHolder()
	f.config.Holder = h
	var let []bool
	f.config.Dispatcher = dispatchFunc(func(ctx context.Context, s dispatch.Source, batches []dispatch.Batch) ([][]dispatch.Result, error) {
		if let == nil {
			h.take(last)
		}
		let = append(let, h.ended[last])
		require.NotEqual(t, last, batches[0].Shard)
		return f.mover.Dispatch(ctx, s, batches)
	})
	f.run()
	require.Greater(t, len(let), 1)
	require.Equal(t, append([]bool{false}, slices.Repeat([]bool{true}, len(let)-1)...), let)
}

// takingLimiter is that of a worker that loses all its shards while it waits.
type takingLimiter struct{ *takenHolder }

func (l takingLimiter) Rate() (perSecond float64, burst int) { return 0, 0 }

func (l takingLimiter) Wait(context.Context, int) (time.Duration, error) {
	for n := range lifecycle.Shards {
		l.take(n)
	}
	return 0, cluster.ErrNoShare
}

func TestAWorkerThatLosesAllItsShardsHasNotFailed(t *testing.T) {
	f, _, _ := newWalkFixture(t)
	f.rules(bucket, expire(1), `"Filter":{},"Expiration":{"Days":5}`)
	f.days(6)
	h := newTakenHolder()
	f.config.Holder, f.config.Limiter = h, takingLimiter{h}
	r := f.run()
	require.Zero(t, r.Errors)
	require.True(t, r.CutOff)
	require.Empty(t, f.sent)
	require.Len(t, h.ended, lifecycle.Shards)
	for _, s := range r.Sources {
		require.Zero(t, s.Blocked)
	}
	f.config.Holder, f.config.Limiter = nil, nil
	f.run()
	require.Empty(t, f.keys(bucket))
}

func TestAPassWithoutShardsIsIdle(t *testing.T) {
	require.Contains(t, (&dailyrun.Report{}).Heartbeat(), "status=idle shards=0 errors=0")
	require.Contains(t, (&dailyrun.Report{Errors: 1}).Heartbeat(), "status=error shards=0 errors=1")
}
