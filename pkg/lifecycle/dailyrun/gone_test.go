// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// hooked is a store that calls a hook before it writes a record.
type hooked struct {
	kv.Store
	hook func(ctx context.Context, key string) error
}

func (h *hooked) Set(ctx context.Context, partition, key, value []byte) error {
	if err := h.hook(ctx, string(key)); err != nil {
		return err
	}
	return h.Store.Set(ctx, partition, key, value)
}

// One pass prunes what is remembered of a repository that has no rules any more. It began before another repository got rules, by
// which a second pass, on the same shards or others, has deferred a locked version meanwhile.
func TestAPassDoesNotPruneWhatALaterOneRemembers(t *testing.T) {
	const locked, gone graveler.RepositoryID = "locked", "gone"
	shard := lifecycle.ShardOf(bucket, "a")
	var others []int
	for n := range lifecycle.Shards {
		if n != shard {
			others = append(others, n)
		}
	}
	for name, shards := range map[string][]int{"of the same shards": nil, "of others": others} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, catalog.VersioningOff)
			f.bucket(locked, catalog.VersioningEnabled)
			f.bucket(gone, catalog.VersioningOff)
			require.NoError(t, f.catalog.SetObjectLock(t.Context(), locked, catalog.ObjectLockConfig{Enabled: true}))
			f.rules(bucket, expire(1))
			f.rules(gone, expire(1))
			_, err := f.catalog.Put(t.Context(), in(gone), "g", catalog.Object{PhysicalAddress: "g"}, catalog.Conditions{})
			require.NoError(t, err)
			f.commit(gone)
			for _, address := range []string{"1", "2"} {
				f.clock = f.clock.Add(time.Second)
				lock := catalog.Lock{Mode: catalog.LockCompliance, RetainUntil: f.clock.AddDate(0, 0, 20)}
				_, err := f.catalog.Put(t.Context(), in(locked), "z", catalog.Object{PhysicalAddress: address, Lock: lock}, catalog.Conditions{})
				require.NoError(t, err)
			}
			f.commit(locked)
			f.put("a")
			f.run()
			require.NoError(t, dailyrun.RemoveConfiguration(t.Context(), f.Graveler, gone))
			f.days(3)

			at := f.clock
			started, goOn, ended := make(chan bool), make(chan bool), make(chan error)
			first := f.config
			first.Now, first.Shards = func() time.Time { return at }, shards
			if shards != nil {
				first.Shards = []int{shard}
			}
			first.Dispatcher = dispatcherFunc(func(ctx context.Context, s dispatch.Source, b []dispatch.Batch) ([][]dispatch.Result, error) {
				close(started)
				<-goOn
				return f.mover.Dispatch(ctx, s, b)
			})
			go func() {
				_, err := dailyrun.Run(t.Context(), first)
				ended <- err
			}()
			<-started
			f.rules(locked, `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":1}`)
			second := f.config
			second.Now, second.Shards = func() time.Time { return at.Add(time.Second) }, shards
			second.Dispatcher = &f.mover
			var once sync.Once
			deferred := false
			second.Records = &hooked{f.records, func(_ context.Context, key string) error {
				deferred = deferred || strings.HasPrefix(key, "deferred/")
				if deferred && strings.HasPrefix(key, "positions/") {
					once.Do(func() { // the object is deferred, and the lane not past it
						close(goOn)
						require.NoError(t, <-ended)
					})
				}
				return nil
			}}
			_, err = dailyrun.Run(t.Context(), second)
			require.NoError(t, err)
			require.True(t, deferred)
			f.clock = at
			f.days(30)
			f.run()
			page, err := f.catalog.ListVersions(t.Context(), in(locked), catalog.ListVersionsParams{})
			require.NoError(t, err)
			require.Len(t, page.Versions, 1)
		})
	}
}

// A deletion that was cut off leaves a repository that is neither there nor gone.
func TestARepositoryInDeletionIsNoErrorAndHoldsBackNoCursor(t *testing.T) {
	var calls, cutAt atomic.Int32 // pins are written several at a time
	store := kvtest.Faulty(mem.New(), func(ctx context.Context, _ kvtest.Op, call func(context.Context) error) error {
		if n := cutAt.Load(); calls.Add(1) >= n && n > 0 {
			return kvtest.ErrInjected
		}
		return call(ctx)
	})
	f := newFixtureOn(t, store, memtrees.New(), catalog.VersioningOff)
	f.rules(bucket, expire(1))
	for at := int32(1); at < 12; at++ { // then it is about what is cleaned up later
		if _, err := f.GetRepository(t.Context(), "gone"); err != nil {
			f.bucket("gone", catalog.VersioningOff)
			f.rules("gone", expire(1))
		}
		f.put("a")
		f.run()
		f.days(3)
		calls.Store(0)
		cutAt.Store(at)
		err := f.DeleteRepository(t.Context(), "gone")
		cutAt.Store(0)
		r := f.run()
		require.Empty(t, f.keys(bucket), "deletion cut off at call %d", at)
		for _, sh := range r.Shards {
			require.Equal(t, r.Now, sh.Time, "deletion cut off at call %d", at)
		}
		require.Error(t, err)
		require.NoError(t, f.DeleteRepository(t.Context(), "gone"))
	}
}

func TestARepositoryThatIsDeletedMeanwhileIsNoError(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.bucket("gone", catalog.VersioningOff)
	f.rules("gone", expire(1))
	_, err := f.catalog.Put(t.Context(), in("gone"), "a", catalog.Object{PhysicalAddress: "a"}, catalog.Conditions{})
	require.NoError(t, err)
	f.commit("gone")
	f.days(3)
	f.before = func() { require.NoError(t, f.DeleteRepository(t.Context(), "gone")) }
	f.run()
	require.Equal(t, []string{"a"}, f.sentKeys())
	r := f.run()
	require.Empty(t, r.Sources)
	require.Equal(t, r.Now, r.Shards[0].Time)
}
