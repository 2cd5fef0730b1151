// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
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
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, change := range map[string]func(c *dailyrun.Config){
		"no store":        func(c *dailyrun.Config) { c.Store = nil },
		"no records":      func(c *dailyrun.Config) { c.Records = nil },
		"shard too high":  func(c *dailyrun.Config) { c.Shards = []int{16} },
		"shard too low":   func(c *dailyrun.Config) { c.Shards = []int{-1} },
		"shard twice":     func(c *dailyrun.Config) { c.Shards = []int{1, 1} },
		"window":          func(c *dailyrun.Config) { c.RetentionWindow = -1 },
		"walker interval": func(c *dailyrun.Config) { c.WalkerInterval = -1 },
		"runtime":         func(c *dailyrun.Config) { c.MaxRuntime = -1 },
		"budget":          func(c *dailyrun.Config) { c.EventBudget = -1 },
		"day":             func(c *dailyrun.Config) { c.Day = 25 * time.Hour },
		"clock too late": func(c *dailyrun.Config) {
			c.Now = func() time.Time { return time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) }
		},
		"clock too early": func(c *dailyrun.Config) {
			c.Now = func() time.Time { return time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC) }
		},
		"boundary": func(c *dailyrun.Config) { c.DayBoundary = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, catalog.VersioningOff)
			change(&f.config)
			_, err := f.tryRun()
			require.ErrorIs(t, err, graveler.ErrInvalidValue)
		})
	}
	_, err := cluster.NewLimiter(0, 5)
	require.ErrorIs(t, err, graveler.ErrInvalidValue, "a burst and no rate")
}

// stored returns everything that is stored, but for the wall clock's own record.
func stored(t require.TestingT, s kv.Store, partitions ...string) map[string]string {
	all := map[string]string{}
	for _, partition := range partitions {
		require.NoError(t, readAll(context.Background(), s, partition, all))
	}
	return all
}

func readAll(ctx context.Context, s kv.Store, partition string, into map[string]string) error {
	it, err := s.Scan(ctx, []byte(partition), kv.ScanOptions{})
	if err != nil {
		return err
	}
	for it.Next() {
		into[partition+" "+string(it.Key())] = string(it.Value())
	}
	return it.Close()
}

func TestADryRunSaysWhatWouldGoAndChangesNothing(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.rules(bucket, expire(1), expire(2), `"Filter":{},"NoncurrentVersionExpiration":{"NewerNoncurrentVersions":1}`)
	f.put("a", "b", "b", "b")
	f.days(3)
	f.config.Walker = walker.New(f.Graveler)
	r, err := f.GetRepository(t.Context(), bucket)
	require.NoError(t, err)
	partitions := []string{cursor.Partition, r.Partition()}
	before := stored(t, f.records, partitions...)
	var would []string
	f.config.DryRun = func(source dispatch.Source, item dispatch.Item) {
		require.Equal(t, bucket, source.Repository)
		would = append(would, item.LogicalKey+" "+item.Action.Kind.String())
	}
	report := f.run()
	require.ElementsMatch(t, []string{"a ExpirationDays", "b ExpirationDays", "b NewerNoncurrent"}, would)
	require.Equal(t, 2, report.Outcomes[dailyrun.Dispatched{Repository: bucket, Kind: lifecycle.ExpirationDays, Outcome: lifecycle.Done}])
	require.Empty(t, f.sent)
	require.Equal(t, before, stored(t, f.records, partitions...))
}

func TestTheHeartbeatHasItsTokens(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.config.Walker = walker.New(f.Graveler)
	f.config.WalkerInterval = 24 * time.Hour
	cold, err := dailyrun.Run(t.Context(), dailyrun.Config{Store: f.Graveler, Records: f.records, DryRun: func(dispatch.Source, dispatch.Item) {}})
	require.NoError(t, err)
	require.Regexp(t, `^daily_run: status=ok shards=16 errors=0 duration=\w+ cursor_lag_max=cold walked_max_age=cold$`, cold.Heartbeat())
	require.Regexp(t, ` cursor_lag_max=0s walked_max_age=0s$`, f.run().Heartbeat(), "nothing is to be walked")
	f.rules(bucket, expire(1))
	f.run()
	f.clock = f.clock.Add(3 * time.Minute)
	require.Regexp(t, `^daily_run: status=ok shards=16 errors=0 duration=\w+ cursor_lag_max=0s walked_max_age=3m1s$`, f.run().Heartbeat())

	f.put("a")
	f.days(2)
	f.results = func(dispatch.Item) dispatch.Result { return dispatch.Result{Outcome: lifecycle.RetryLater} }
	f.run()
	f.clock = f.clock.Add(2 * time.Hour)
	require.Regexp(t, `status=ok .* cursor_lag_max=50h\d* `, f.run().Heartbeat(), "the shard waits, and is no error")
}

func TestAMalformedRecordStopsItsShardAndNoOther(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(1))
	same, others := inOneShard(3)
	f.put(append(same, others...)...)
	f.run()
	f.days(2)
	b, err := f.GetBranch(t.Context(), bucket, "main")
	require.NoError(t, err)
	r, err := f.GetRepository(t.Context(), bucket)
	require.NoError(t, err)
	key := fmt.Sprintf("positions/03/%s/%s", r.UID, b.UID)
	require.NoError(t, f.records.Set(t.Context(), []byte(cursor.Partition), []byte(key), []byte{}))
	report, err := f.tryRun()
	require.ErrorIs(t, err, cursor.ErrMalformed)
	require.ErrorContains(t, err, key)
	require.Equal(t, 1, report.Errors)
	require.ElementsMatch(t, same, f.keys(bucket))
}

func TestWhatPositionsNameIsPinned(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	pins := func() (owners []string) {
		for p, err := range f.ListPins(t.Context(), bucket) {
			require.NoError(t, err)
			require.NotEmpty(t, p.Logs)
			owners = append(owners, p.Owner)
		}
		return owners
	}
	f.rules(bucket, expire(5))
	f.put("a")
	f.run()
	require.Len(t, pins(), 16)
	for range 3 {
		f.days(3)
		f.put("b")
		f.run()
		b, err := f.GetBranch(t.Context(), bucket, "main")
		require.NoError(t, err)
		positions := cursor.New(f.records).Positions(t.Context(), 0)
		for p, err := range positions {
			require.NoError(t, err)
			for pin, err := range f.ListPins(t.Context(), bucket) {
				require.NoError(t, err)
				for _, l := range p.Lanes {
					require.Contains(t, pin.Trees, l.Head.Tree)
					require.LessOrEqual(t, pin.Logs[b.UID], l.Head.Time)
					if l.Delay > 0 && l.Horizon.Commit != "" {
						require.Contains(t, pin.Trees, l.Horizon.Tree)
						require.LessOrEqual(t, pin.Logs[b.UID], l.Horizon.Time)
					}
				}
			}
		}
	}
	require.Equal(t, []string{"b"}, f.keys(bucket))
	require.NoError(t, dailyrun.RemoveConfiguration(t.Context(), f.Graveler, bucket))
	f.run()
	require.Empty(t, pins())
	for key := range stored(t, f.records, cursor.Partition) {
		require.NotContains(t, key, "positions")
	}
}

func TestWhatTheLogDoesNotGoBackFarEnoughForIsFoundByWalking(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	require.NoError(t, f.SetRetention(t.Context(), bucket, []graveler.RetentionRule{{Pattern: "*", Days: 3}}))
	f.rules(bucket, expire(5))
	f.config.Walker = walker.New(f.Graveler)
	f.put("a")
	f.run()
	for range 4 {
		f.days(1)
		f.run()
		require.Equal(t, []string{"a"}, f.keys(bucket))
	}
	f.days(1)
	f.run()
	require.Empty(t, f.keys(bucket))
}

func TestReadOnlyRepositoriesAndProtectedBranchesAreSkipped(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(1))
	f.put("a")
	f.days(2)
	require.NoError(t, f.ProtectBranches(t.Context(), bucket, func([]graveler.ProtectionRule) ([]graveler.ProtectionRule, error) {
		return []graveler.ProtectionRule{{Pattern: "main", Forbid: graveler.ActionMove}}, nil
	}))
	require.Equal(t, "the branch is protected against moves", f.run().Sources[0].Skipped)
	require.NoError(t, f.ProtectBranches(t.Context(), bucket, func([]graveler.ProtectionRule) ([]graveler.ProtectionRule, error) { return nil, nil }))
	require.NoError(t, f.SetReadOnly(t.Context(), bucket, true))
	require.Equal(t, "the repository is read-only", f.run().Sources[0].Skipped)
	require.NoError(t, f.SetReadOnly(t.Context(), bucket, false))
	f.run()
	require.Empty(t, f.keys(bucket))
}

func TestABudgetBoundsAPassAndNothingIsLeftOut(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.config.EventBudget = 3
	f.rules(bucket, expire(2), `"Filter":{},"NoncurrentVersionExpiration":{"NewerNoncurrentVersions":1}`)
	var keys []string
	for i := range 10 {
		keys = append(keys, fmt.Sprintf("key-%02d", i))
	}
	f.run()
	for range 4 {
		f.put(keys...)
	}
	most := 0
	pass := func() {
		before := 0
		for _, n := range f.run().Shards {
			before += n.Events
		}
		most = max(most, before)
	}
	for range 40 {
		pass()
	}
	for _, key := range keys {
		require.Len(t, f.versions(key), 2, key)
	}
	require.Equal(t, keys, f.keys(bucket))
	f.days(3)
	for range 40 {
		pass()
	}
	require.Empty(t, f.keys(bucket))
	require.LessOrEqual(t, most, 2*2*f.config.EventBudget)
}

func TestAWorkerWorksOnTheShardsThatItHolds(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(1))
	same, others := inOneShard(3)
	f.put(append(same, others...)...)
	f.days(2)
	w, err := cluster.New(cluster.Config{Store: f.records, Shards: []int{3}})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	f.config.Holder, f.config.Limiter = w, w.Limiter()
	require.Len(t, f.run().Shards, 1)
	require.ElementsMatch(t, others, f.keys(bucket))
	require.Equal(t, []int{3}, w.Shards(), "the work has ended")
	require.NoError(t, w.Close(t.Context()))
	f.config.Holder, f.config.Limiter = nil, nil
	f.config.Shards = []int{0, 1, 2}
	f.run()
	f.config.Shards = nil
	f.run()
	require.Empty(t, f.keys(bucket))
}

func TestRulesThatCannotBeReadAreAnErrorOfTheirBucketAlone(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.bucket("other", catalog.VersioningOff)
	_, err := f.PutSetting(t.Context(), "other", "lifecycle", []byte("nonsense"), "")
	require.NoError(t, err)
	f.rules(bucket, expire(1))
	f.put("a")
	f.days(2)
	_, err = f.tryRun()
	require.ErrorIs(t, err, graveler.ErrCorrupt)
	require.ErrorContains(t, err, "repository other")
	require.Empty(t, f.keys(bucket))

	bad := lifecycle.Configuration{Rules: []lifecycle.Rule{{ID: "x"}}}
	require.ErrorIs(t, dailyrun.SetConfiguration(t.Context(), f.Graveler, bucket, bad), catalog.InvalidRequest)
	c, err := dailyrun.GetConfiguration(t.Context(), f.Graveler, bucket)
	require.NoError(t, err)
	require.Equal(t, "0", c.Rules[0].ID, "nothing was stored")
}

// A pass that is cut off at any call of the store, and run again, removes what one that was not would have.
func TestAPassThatIsCutOffAnywhereIsFinishedByTheNext(t *testing.T) {
	play := func(cutAt int, crash bool) (calls int, left []string) {
		armed := false
		var guard sync.Mutex
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		store := mem.New()
		faulty := kvtest.Faulty(store, func(ctx context.Context, _ kvtest.Op, call func(context.Context) error) error {
			guard.Lock()
			cut := false
			if armed {
				calls++
				cut = cutAt > 0 && calls >= cutAt
			}
			guard.Unlock()
			if cut {
				cancel()
				if crash {
					return kvtest.ErrInjected
				}
			}
			return call(ctx)
		})
		f := newFixtureOn(t, faulty, memtrees.New(), catalog.VersioningEnabled)
		f.config.Walker = walker.New(f.Graveler)
		f.rules(bucket, expire(2), `"Filter":{},"NoncurrentVersionExpiration":{"NewerNoncurrentVersions":1}`, `"Filter":{"Prefix":"b"},"NoncurrentVersionExpiration":{"NoncurrentDays":1}`)
		f.put("a", "b", "c")
		f.run()
		f.days(1)
		for range 3 {
			f.put("a", "b")
		}
		f.days(1)
		armed = true
		_, err := dailyrun.Run(ctx, f.config)
		armed = false
		require.Equal(t, cutAt > 0 && calls >= cutAt, err != nil, "cut at %d: %v", cutAt, err)
		if err != nil {
			_, err = dailyrun.Run(t.Context(), f.config)
			require.NoError(t, err)
		}
		for _, key := range []string{"a", "b", "c"} {
			left = append(left, fmt.Sprint(key, f.versions(key)))
		}
		return calls, left
	}
	calls, whole := play(0, false)
	require.Equal(t, []string{"a[current noncurrent]", "b[current]", "c[marker noncurrent]"}, whole)
	for cutAt := 1; cutAt <= calls; cutAt += 1 + calls/60 {
		for _, crash := range []bool{false, true} {
			_, left := play(cutAt, crash)
			require.Equal(t, whole, left, "cut at call %d of %d, crash %t", cutAt, calls, crash)
		}
	}
}

type observer struct{ reports []*dailyrun.Report }

func (o *observer) Saved(r *dailyrun.Report) { o.reports = append(o.reports, r) }

func TestTheObserverIsToldOfWhatWasSaved(t *testing.T) {
	broken := false
	store := kvtest.Faulty(mem.New(), func(ctx context.Context, op kvtest.Op, call func(context.Context) error) error {
		if broken {
			return errors.New("the disk is full")
		}
		return call(ctx)
	})
	f := newFixture(t, catalog.VersioningOff)
	f.config.Records = store
	o := &observer{}
	f.config.Observer = o
	f.run()
	require.Len(t, o.reports, 1)
	broken = true
	_, err := f.tryRun()
	require.ErrorContains(t, err, "the disk is full")
	require.Len(t, o.reports, 1)
}

func TestEveryKindIsExplained(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.rules(bucket, expire(3), `"Filter":{"Prefix":"b"},"Expiration":{"Days":1}`, `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":2,"NewerNoncurrentVersions":1}`)
	f.put("a")
	began := f.clock
	f.put("a")
	second := f.clock
	all, err := dailyrun.Explain(t.Context(), f.config, bucket, "", "a")
	require.NoError(t, err)
	require.Len(t, all, 2)
	current, old := all[0], all[1]
	require.Equal(t, second, current.Since)
	require.True(t, current.Actions[0].Acts)
	require.Equal(t, second.AddDate(0, 0, 3), current.Actions[0].At)
	require.Contains(t, current.Actions[1].Why, "does not begin with")
	require.Contains(t, current.Actions[2].Why, "not about current objects")
	require.Equal(t, "3 days after it came to the branch", current.Actions[0].Why)
	require.True(t, began.Before(second))
	require.False(t, old.Actions[2].Acts)
	require.Equal(t, "newer noncurrent versions that count: 0 of 1", old.Actions[2].Why)
	_, err = dailyrun.Explain(t.Context(), f.config, bucket, "nowhere", "a")
	require.ErrorIs(t, err, graveler.ErrBranchNotFound)
	_, err = f.CreateBranch(t.Context(), bucket, "dev", "main")
	require.NoError(t, err)
	_, err = dailyrun.Explain(t.Context(), f.config, bucket, "dev", "a")
	require.ErrorIs(t, err, dailyrun.ErrNoConfiguration)
}

func TestTheStatusTellsHowFarLanesAre(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(2))
	f.put("a")
	s, err := dailyrun.ReadStatus(t.Context(), f.config)
	require.NoError(t, err)
	require.Len(t, s.Sources[0].Lanes, 32)
	require.True(t, s.Sources[0].Lanes[0].Cold)
	put := f.clock
	f.run()
	f.run()
	f.days(1)
	f.put("b")
	s, err = dailyrun.ReadStatus(t.Context(), f.config)
	require.NoError(t, err)
	lane := s.Sources[0].Lanes[slices.IndexFunc(s.Sources[0].Lanes, func(l dailyrun.LaneStatus) bool { return l.Delay == 2 })]
	require.False(t, lane.Cold)
	require.Equal(t, put, lane.Head)
	require.Equal(t, f.clock.Sub(put), lane.Lag)
	require.NotZero(t, lane.WaitingUntil)
	f.run()
	s, err = dailyrun.ReadStatus(t.Context(), f.config)
	require.NoError(t, err)
	for _, l := range s.Sources[0].Lanes {
		require.Zero(t, l.Lag)
	}
}

// truncated is a store whose branch log says once that it does not go back far enough.
type truncated struct {
	*graveler.Graveler
	armed bool
}

func (s *truncated) MoveLog(ctx context.Context, repo graveler.RepositoryID, log graveler.LogName, after, until int64) iter.Seq2[graveler.LoggedMove, error] {
	if s.armed {
		s.armed = false
		return func(yield func(graveler.LoggedMove, error) bool) {
			yield(graveler.LoggedMove{}, &graveler.LogTruncatedError{Repository: repo, Log: log, Earliest: until})
		}
	}
	return s.Graveler.MoveLog(ctx, repo, log, after, until)
}

func TestALaneWhoseEventsAreLostLooksAtEverything(t *testing.T) {
	for name, rule := range map[string]string{
		"without a delay": `"Filter":{},"NoncurrentVersionExpiration":{"NewerNoncurrentVersions":1}`,
		"with a delay":    `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, catalog.VersioningEnabled)
			store := &truncated{Graveler: f.Graveler}
			f.config.Store = store
			f.rules(bucket, rule)
			f.put("a", "a", "a")
			f.run()
			f.put("a", "b", "b", "b")
			store.armed = true
			f.days(2)
			f.run()
			require.False(t, store.armed)
			for _, key := range []string{"a", "b"} {
				require.LessOrEqual(t, len(f.versions(key)), 2)
			}
		})
	}
}
