// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"errors"
	"strings"
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
)

var errDenied = errors.New("permission denied")

// The time limit falls into the pause before the next attempt.
func TestAnErrorOfTheDispatcherIsReportedThoughThereIsNoTimeForAnotherAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, catalog.VersioningOff)
		f.rules(bucket, expire(1))
		f.put("a")
		f.days(3)
		f.config.MaxRuntime = 100 * time.Millisecond
		f.config.Dispatcher = dispatcherFunc(func(context.Context, dispatch.Source, []dispatch.Batch) ([][]dispatch.Result, error) {
			return nil, errDenied
		})
		r, err := f.tryRun()
		require.ErrorIs(t, err, errDenied)
		require.Equal(t, 1, r.Errors)
		require.Contains(t, r.Heartbeat(), "status=error")
	})
}

func TestAnErrorOfTheDispatcherIsReportedThoughThePassIsCanceled(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(1))
	f.put("a")
	f.days(3)
	ctx, cancel := context.WithCancel(t.Context())
	f.config.Dispatcher = dispatcherFunc(func(context.Context, dispatch.Source, []dispatch.Batch) ([][]dispatch.Result, error) {
		cancel()
		return nil, errDenied
	})
	r, err := dailyrun.Run(ctx, f.config)
	require.ErrorIs(t, err, errDenied)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, r.Errors)
}

// The store does not answer any more when the pass has to end. What saving ran into is its own limit, and that nothing was saved must be told.
func TestWhatCannotBeSavedIsAnErrorThoughThePassHadToEnd(t *testing.T) {
	for _, record := range []string{"positions/", "cursors/", "deferred/"} {
		t.Run(record, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hangs := false
				f := newFixture(t, catalog.VersioningEnabled)
				f.config.Records = &hooked{f.records, func(ctx context.Context, key string) error {
					if hangs && strings.HasPrefix(key, record) {
						<-ctx.Done()
					}
					return ctx.Err()
				}}
				f.rules(bucket, expire(1), `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":1}`)
				f.put("a")
				f.lockedVersion("b", 10)
				f.run()
				f.days(3)
				f.config.MaxRuntime = time.Second
				f.config.Dispatcher = dispatcherFunc(func(ctx context.Context, s dispatch.Source, b []dispatch.Batch) ([][]dispatch.Result, error) {
					results, err := f.mover.Dispatch(ctx, s, b)
					hangs = true
					if record != "cursors/" {
						<-ctx.Done()
					}
					return results, err
				})
				r, err := f.tryRun()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "save what was done")
				require.Positive(t, r.Errors)
			})
		})
	}
}

// What the walk has found before waits for the rate until the pass has to end, which is no error.
func TestAnErrorOfAWalkIsReportedThoughThePassHadToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, w, _ := newWalkFixture(t)
		f.put("b", "c", "d")
		f.run()
		f.days(6)
		f.config.Repositories, f.config.MaxRuntime = []graveler.RepositoryID{bucket}, time.Minute
		w.before = func(_ context.Context, _ graveler.RepositoryID, key string) error {
			if key == "c" {
				return errWalk
			}
			return nil
		}
		l, err := cluster.NewLimiter(0.001, 5)
		require.NoError(t, err)
		_, err = l.Wait(t.Context(), 5)
		require.NoError(t, err)
		f.config.Limiter = l
		r, err := f.tryRun()
		require.ErrorIs(t, err, errWalk)
		require.Equal(t, 1, r.Errors)
		require.True(t, r.CutOff)
	})
}

// lockedVersion puts a version that is not current, and locked for some days.
func (f *fixture) lockedVersion(key string, days int) {
	f.Helper()
	_, err := f.catalog.ObjectLock(f.Context(), bucket)
	if err != nil {
		require.NoError(f, f.catalog.SetObjectLock(f.Context(), bucket, catalog.ObjectLockConfig{Enabled: true}))
	}
	f.clock = f.clock.Add(time.Second)
	lock := catalog.Lock{Mode: catalog.LockCompliance, RetainUntil: f.clock.AddDate(0, 0, days)}
	_, err = f.catalog.Put(f.Context(), in(bucket), key, catalog.Object{PhysicalAddress: key + " locked", Lock: lock}, catalog.Conditions{})
	require.NoError(f, err)
	f.put(key)
}

func TestADeferredObjectThatIsBlockedIsReported(t *testing.T) {
	for _, outcome := range []lifecycle.Outcome{lifecycle.Blocked, lifecycle.RetryLater} {
		f := newFixture(t, catalog.VersioningEnabled)
		f.rules(bucket, `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":1}`)
		f.lockedVersion("a", 10)
		f.days(3)
		f.run()
		before := f.run().Shards[lifecycle.ShardOf(bucket, "a")].Time
		f.results = func(dispatch.Item) dispatch.Result { return dispatch.Result{Outcome: outcome} }
		f.days(10)
		r := f.run()
		require.Len(t, f.sent, 1)
		require.Equal(t, 1, r.Sources[0].Blocked)
		require.Equal(t, before, r.Shards[lifecycle.ShardOf(bucket, "a")].Time)
		since := f.clock.UnixNano()
		f.run()
		s, err := dailyrun.ReadStatus(t.Context(), f.config)
		require.NoError(t, err)
		require.Equal(t, &cursor.Block{Key: f.sent[0].Key, Since: since, Reason: outcome.String()}, s.Sources[0].LockBlocked)
		f.results = nil
		require.Zero(t, f.run().Sources[0].Blocked)
		require.Equal(t, []string{"current"}, f.versions("a"))
		s, err = dailyrun.ReadStatus(t.Context(), f.config)
		require.NoError(t, err)
		require.Nil(t, s.Sources[0].LockBlocked)
	}
}
