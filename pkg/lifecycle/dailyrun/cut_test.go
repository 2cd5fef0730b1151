// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

func numbered(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("key-%03d", i))
	}
	return keys
}

// The rate is 5 in a second and 10 at once: a pass of 3 seconds may remove 20, and has to do so evenly.
func TestAPassRemovesWhatItsRateAllowsThoughItCannotDoAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, catalog.VersioningOff)
		f.rules(bucket, expire(1), `"Filter":{"Prefix":"key-05"},"Expiration":{"Days":2}`)
		f.put(numbered(60)...)
		f.days(4)
		f.config.MaxRuntime = 3 * time.Second
		for left := 60; left > 0; {
			l, err := cluster.NewLimiter(5, 0)
			require.NoError(t, err)
			f.config.Limiter = l
			moves := f.moves()
			r := f.run()
			left -= 20
			require.Len(t, f.keys(bucket), left)
			require.Equal(t, moves+2, f.moves())
			require.GreaterOrEqual(t, r.Waited, 2*time.Second)
			require.Equal(t, left > 0, r.CutOff)
		}
		require.Empty(t, f.run().Outcomes)
	})
}

// A key may have more versions than the rate lets go at once.
func TestTheVersionsOfAKeyAreRemovedLittleByLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, catalog.VersioningEnabled)
		f.rules(bucket, `"Filter":{},"NoncurrentVersionExpiration":{"NewerNoncurrentVersions":1}`)
		f.run()
		for range 12 {
			f.put("a")
		}
		f.put("b", "b", "b")
		l, err := cluster.NewLimiter(2, 0)
		require.NoError(t, err)
		f.config.Limiter = l
		f.run()
		require.Equal(t, []string{"current", "noncurrent"}, f.versions("a"))
		require.Equal(t, []string{"current", "noncurrent"}, f.versions("b"))
		require.Len(t, f.sent, 10+1)
		require.Equal(t, 3, f.moves())
	})
}

// The same by a walk, which remembers the first version that it could not do also where others of the key are dispatched later.
func TestAWalkRemovesTheVersionsOfAKeyLittleByLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, catalog.VersioningEnabled)
		f.config.Walker, f.config.RetentionWindow = walker.New(f.Graveler), 3*24*time.Hour
		f.rules(bucket, `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":5}`)
		f.run()
		for range 12 {
			f.put("a")
		}
		f.put("b")
		f.run()
		f.days(7)
		l, err := cluster.NewLimiter(2, 0)
		require.NoError(t, err)
		f.config.Limiter = l
		f.results = func(dispatch.Item) dispatch.Result {
			if len(f.sent) == 1 {
				return dispatch.Result{Outcome: lifecycle.Blocked, Reason: "the first"}
			}
			return dispatch.Result{}
		}
		f.run()
		require.Equal(t, []string{"current", "noncurrent"}, f.versions("a"))
		require.Len(t, f.sent, 11)
		require.Equal(t, 3, f.moves())
		s, err := dailyrun.ReadStatus(t.Context(), f.config)
		require.NoError(t, err)
		require.Equal(t, "the first", s.Sources[0].WalkBlocked.Reason)
		f.results = nil
		f.run()
		require.Equal(t, []string{"current"}, f.versions("a"))
	})
}

// slow is a store that takes its time to list a tree for a lane that starts cold.
type slow struct {
	*graveler.Graveler
	each time.Duration
}

func (s *slow) DiffTrees(ctx context.Context, repo graveler.RepositoryID, left, right graveler.MetaRangeID, o graveler.DiffOptions) iter.Seq2[graveler.Diff, error] {
	return func(yield func(graveler.Diff, error) bool) {
		for d, err := range s.Graveler.DiffTrees(ctx, repo, left, right, o) {
			if left == s.EmptyTree() {
				time.Sleep(s.each) // by the clock of the bubble
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func TestAPassThatIsCutOffKeepsWhatItHasFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, catalog.VersioningOff)
		f.config.Store = &slow{f.Graveler, 10 * time.Millisecond}
		f.rules(bucket, expire(1))
		f.put(numbered(100)...)
		f.days(3)
		f.config.MaxRuntime = 500 * time.Millisecond
		left := 100
		for range 5 {
			began := time.Now()
			r := f.run()
			require.LessOrEqual(t, time.Since(began), f.config.MaxRuntime+10*time.Millisecond)
			now := len(f.keys(bucket))
			require.True(t, now == 0 || r.CutOff)
			require.True(t, now == 0 || now <= left-30, "%d of %d are left, and there was time for 50", now, left)
			left = now
		}
		require.Zero(t, left)
	})
}

// hanging is a store that does not get on with what a move has changed.
type hanging struct{ *graveler.Graveler }

func (h hanging) DiffTrees(ctx context.Context, repo graveler.RepositoryID, left, right graveler.MetaRangeID, o graveler.DiffOptions) iter.Seq2[graveler.Diff, error] {
	if left == h.EmptyTree() {
		return h.Graveler.DiffTrees(ctx, repo, left, right, o)
	}
	return func(yield func(graveler.Diff, error) bool) {
		<-ctx.Done()
		yield(graveler.Diff{}, ctx.Err())
	}
}

// What a lane has found is not to wait until others have read the log.
func TestAPassThatIsCutOffInTheLogKeepsWhatItHasFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, catalog.VersioningOff)
		f.put("z")
		f.rules(bucket, `"Filter":{"Prefix":"z"},"Expiration":{"Days":9}`)
		f.run()
		f.put("a")
		f.rules(bucket, `"Filter":{"Prefix":"a"},"Expiration":{"Days":1}`, `"Filter":{"Prefix":"z"},"Expiration":{"Days":9}`)
		f.days(10)
		f.config.Store = hanging{f.Graveler}
		require.True(t, f.run().CutOff)
		require.Equal(t, []string{"z"}, f.keys(bucket))
	})
}

func TestMaxRuntimeEndsAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, catalog.VersioningOff)
		f.rules(bucket, expire(1))
		f.put("a")
		f.days(3)
		f.config.MaxRuntime = time.Minute
		f.config.Dispatcher = dispatcherFunc(func(ctx context.Context, _ dispatch.Source, _ []dispatch.Batch) ([][]dispatch.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		r := f.run()
		require.True(t, r.CutOff)
		require.Zero(t, r.Errors)
		require.Equal(t, time.Minute, r.Took)
	})
}

// dispatcherFunc is a dispatch.Dispatcher.
type dispatcherFunc func(ctx context.Context, source dispatch.Source, batches []dispatch.Batch) ([][]dispatch.Result, error)

func (d dispatcherFunc) Dispatch(ctx context.Context, source dispatch.Source, batches []dispatch.Batch) ([][]dispatch.Result, error) {
	return d(ctx, source, batches)
}

func blocking(keys ...string) func(dispatch.Item) dispatch.Result {
	return func(item dispatch.Item) dispatch.Result {
		if slices.Contains(keys, item.LogicalKey) {
			return dispatch.Result{Outcome: lifecycle.Blocked, Reason: "not that one"}
		}
		return dispatch.Result{}
	}
}

func TestABlockedKeyDoesNotUseUpTheBudgetOfTheOthers(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(1))
	f.put(numbered(30)...)
	f.days(3)
	f.config.EventBudget = 5
	f.results = blocking("key-000")
	for range 10 {
		f.run()
	}
	require.Contains(t, f.keys(bucket), "key-000")
	for _, key := range f.keys(bucket) {
		require.Equal(t, lifecycle.ShardOf(bucket, "key-000"), lifecycle.ShardOf(bucket, key), "others do not wait for it")
	}
	f.results = nil
	for range 10 {
		f.run()
	}
	require.Empty(t, f.keys(bucket))
}

// The blocked lane is read for last: the time is for those that get on.
func TestABlockedKeyDoesNotUseUpTheTimeOfTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, catalog.VersioningOff)
		f.config.Store = &slow{f.Graveler, 10 * time.Millisecond}
		f.rules(bucket, expire(1))
		f.put(numbered(100)...)
		f.days(3)
		f.config.MaxRuntime = 200 * time.Millisecond
		f.results = blocking("key-000")
		for range 10 {
			f.run()
		}
		for _, key := range f.keys(bucket) {
			require.Equal(t, lifecycle.ShardOf(bucket, "key-000"), lifecycle.ShardOf(bucket, key))
		}
	})
}

func TestABlockIsForgottenWhenTheLaneGoesOn(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(1))
	same, _ := inOneShard(20)
	f.put(same...)
	f.days(3)
	f.results = blocking(same...)
	require.Equal(t, 1, f.run().Sources[0].Blocked)
	f.config.EventBudget = 4
	blocked := func() *string {
		s, err := dailyrun.ReadStatus(t.Context(), f.config)
		require.NoError(t, err)
		for _, l := range s.Sources[0].Lanes {
			if l.Blocked != nil {
				key := string(l.Blocked.Key)
				return &key
			}
		}
		return nil
	}
	require.Equal(t, same[0], *blocked())
	f.results = blocking(same[2])
	f.run()
	require.Equal(t, same[2], *blocked())
	f.results = nil
	require.Zero(t, f.run().Sources[0].Blocked)
	require.Nil(t, blocked())
	require.NotEmpty(t, f.keys(bucket), "the step has not ended")
}

// Passes come at the same time of each day, and one of the repositories takes all their time.
func TestNoRepositoryTakesAllTheTimeOfAllPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, catalog.VersioningOff)
		f.bucket("zoo", catalog.VersioningOff)
		f.rules(bucket, expire(1))
		f.rules("zoo", expire(1))
		f.put("a")
		_, err := f.catalog.Put(t.Context(), in("zoo"), "b", catalog.Object{PhysicalAddress: "b"}, catalog.Conditions{})
		require.NoError(t, err)
		f.commit("zoo")
		at := time.Date(2030, 1, 4, 2, 0, 0, 0, time.UTC)
		f.config.Now = func() time.Time { return at }
		f.config.Dispatcher = dispatcherFunc(func(ctx context.Context, source dispatch.Source, batches []dispatch.Batch) ([][]dispatch.Result, error) {
			if source.Repository == bucket {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return f.Dispatch(ctx, source, batches)
		})
		for range 8 {
			f.clock = at
			_, err := dailyrun.Run(t.Context(), f.config)
			require.NoError(t, err)
			at = at.AddDate(0, 0, 1)
		}
		require.Empty(t, f.keys("zoo"))
	})
}

func TestWhatALimiterRefusesIsNotDispatched(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(1))
	f.put(numbered(5)...)
	f.days(3)
	l := &refusing{left: 3}
	f.config.Limiter = l
	_, err := f.tryRun()
	require.ErrorIs(t, err, cluster.ErrNoShare)
	require.Len(t, f.sent, 3)
	require.Len(t, f.keys(bucket), 2)
}

// refusing is a limiter that lets some pass, one at a time.
type refusing struct{ left int }

func (l *refusing) Rate() (perSecond float64, burst int) { return 1, 1 }

func (l *refusing) Wait(_ context.Context, n int) (time.Duration, error) {
	if l.left -= n; l.left < 0 {
		return 0, cluster.ErrNoShare
	}
	return 0, nil
}

// losing is a holder that loses shards.
type losing struct{ lose map[int]context.CancelFunc }

func (l *losing) Shards() (all []int) {
	for n := range lifecycle.Shards {
		all = append(all, n)
	}
	return all
}

func (l *losing) Hold(ctx context.Context, shard int) (context.Context, func(), bool) {
	ctx, l.lose[shard] = context.WithCancel(ctx)
	return ctx, l.lose[shard], true
}

// Whoever has the shards now remembers what was done there, and a record of before would undo that.
func TestNothingIsSavedOfShardsThatAreLost(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.rules(bucket, expire(1), `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":1}`)
	f.put(numbered(40)...)
	f.run()
	before := stored(t, f.records, cursor.Partition)
	f.days(5)
	l := &losing{map[int]context.CancelFunc{}}
	f.config.Holder = l
	f.before = func() {
		for n := range 8 {
			l.lose[n]()
		}
	}
	f.run()
	after := stored(t, f.records, cursor.Partition)
	kept, changed := 0, 0
	for key, value := range before {
		var shard int
		for _, form := range []string{"lifecycle positions/%d/", "lifecycle cursors/shard-%d"} {
			if _, err := fmt.Sscanf(key, form, &shard); err == nil {
				break
			}
		}
		if shard < 8 {
			require.Equal(t, value, after[key], key)
			kept++
		} else {
			require.NotEqual(t, value, after[key], key)
			changed++
		}
	}
	require.Equal(t, 16, kept, "a position and a cursor each")
	require.Equal(t, 16, changed)
}
