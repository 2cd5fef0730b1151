// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// newWalkFixture returns a bucket, and another one that is walked by who walks the first, whose logs are too short for their rule
// of 5 days. They have been walked once.
func newWalkFixture(t *testing.T) (f *fixture, w *controlledWalker, other graveler.RepositoryID) {
	t.Helper()
	f, other = newFixture(t, catalog.VersioningOff), beside(bucket)
	f.bucket(other, catalog.VersioningOff)
	w = &controlledWalker{Walker: walker.New(f.Graveler)}
	f.config.Walker, f.config.RetentionWindow = w, 3*24*time.Hour
	for _, repo := range []graveler.RepositoryID{bucket, other} {
		f.rules(repo, expire(5))
		f.putIn(repo, "a")
	}
	f.run()
	return f, w, other
}

// controlledWalker does what a test says before it yields a key, and goes on as long as it is asked.
type controlledWalker struct {
	*walker.Walker
	before func(ctx context.Context, repo graveler.RepositoryID, key string) error // nil: nothing
	seen   []string
}

func (w *controlledWalker) Walk(ctx context.Context, repo graveler.RepositoryID, tree graveler.MetaRangeID, v catalog.Versioning, after string) iter.Seq2[*walker.Group, error] {
	return func(yield func(*walker.Group, error) bool) {
		for g, err := range w.Walker.Walk(context.WithoutCancel(ctx), repo, tree, v, after) {
			if err == nil && w.before != nil {
				err = w.before(ctx, repo, g.Key)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			w.seen = append(w.seen, g.Key)
			if !yield(g, nil) {
				return
			}
		}
	}
}

var errWalk = errors.New("a file is missing")

// failIn makes the walks over a repository fail.
func failIn(failing graveler.RepositoryID) func(context.Context, graveler.RepositoryID, string) error {
	return func(_ context.Context, repo graveler.RepositoryID, _ string) error {
		if repo == failing {
			return errWalk
		}
		return nil
	}
}

func TestAWalkThatIsCutOffHasDoneWhatItCameTo(t *testing.T) {
	f, w, _ := newWalkFixture(t)
	f.put("b", "c")
	f.run()
	f.days(6)
	f.config.Repositories, f.config.MaxRuntime = []graveler.RepositoryID{bucket}, 2*time.Second
	w.before = func(ctx context.Context, _ graveler.RepositoryID, key string) error {
		end, ok := ctx.Deadline()
		require.True(t, ok)
		if key == "c" {
			for w, err := range cursor.New(f.records).Walks(ctx) {
				require.NoError(t, err)
				if w.Began != 0 {
					require.Equal(t, "b", w.After, "a crash would not change that")
				}
			}
			<-ctx.Done()
			return ctx.Err()
		}
		time.Sleep(time.Until(end) * 6 / 10) // a store that is slow
		return nil
	}
	w.seen = nil
	r, err := f.tryRun()
	require.NoError(t, err)
	require.True(t, r.CutOff)
	require.Equal(t, []string{"a", "b"}, w.seen)
	require.Equal(t, []string{"c"}, f.keys(bucket))
	w.before, w.seen = nil, nil
	f.put("a", "b")
	f.run()
	require.Equal(t, []string{"c"}, w.seen, "it goes on there")
	require.Equal(t, []string{"a", "b"}, f.keys(bucket))
}

func TestAWalkThatIsAlwaysCutOffKeepsNoLockedObject(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	require.NoError(t, f.catalog.SetObjectLock(t.Context(), bucket, catalog.ObjectLockConfig{Enabled: true}))
	f.rules(bucket, `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":1}`)
	f.clock = f.clock.Add(time.Second)
	_, err := f.catalog.Put(t.Context(), in(bucket), "a", catalog.Object{PhysicalAddress: "x", Lock: catalog.Lock{Mode: catalog.LockCompliance, RetainUntil: f.clock.Add(10 * 24 * time.Hour)}}, catalog.Conditions{})
	require.NoError(t, err)
	f.put("a")
	f.days(3)
	f.run()
	require.Equal(t, []string{"current", "noncurrent"}, f.versions("a"))
	f.days(10)
	f.config.MaxRuntime = 2 * time.Second
	f.config.Walker = &controlledWalker{Walker: walker.New(f.Graveler), before: func(ctx context.Context, _ graveler.RepositoryID, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	require.True(t, f.run().CutOff)
	require.Equal(t, []string{"current"}, f.versions("a"))
}

func TestAnErrorOfAWalkBlocksTheWalkAlone(t *testing.T) {
	for _, failing := range []graveler.RepositoryID{bucket, beside(bucket)} {
		f, w, other := newWalkFixture(t)
		if failing == other {
			other = bucket
		}
		f.rules(failing, expire(5), `"Filter":{},"Expiration":{"Days":1}`) // the second one by the log
		f.run()
		w.before = failIn(failing)
		f.days(6)
		for range 2 {
			_, err := f.tryRun()
			require.ErrorIs(t, err, errWalk)
			require.Empty(t, f.keys(failing), "what lanes find due")
			require.Empty(t, f.keys(other), "what another walk finds due")
			f.putIn(failing, "b")
			f.putIn(other, "b")
			_, err = f.tryRun() // lanes have seen them
			require.ErrorIs(t, err, errWalk)
			f.days(6)
		}
	}
}

func TestAWalkThatFailsHasDoneWhatItCameTo(t *testing.T) {
	f, w, _ := newWalkFixture(t)
	f.put("b", "c")
	f.run()
	f.days(6)
	w.before = func(_ context.Context, _ graveler.RepositoryID, key string) error {
		if key == "b" {
			return errWalk
		}
		return nil
	}
	_, err := f.tryRun()
	require.ErrorIs(t, err, errWalk)
	require.Equal(t, []string{"b", "c"}, f.keys(bucket))
}

func TestAWalkThatIsCutOffLooksAtNothingMore(t *testing.T) {
	f, w, _ := newWalkFixture(t)
	f.put("b", "c")
	f.run()
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	w.seen = nil
	w.before = func(context.Context, graveler.RepositoryID, string) error {
		cut()
		return nil
	}
	_, err := dailyrun.Run(ctx, f.config)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, w.seen, 1)
}

func TestAsLongAsAWalkFailsNothingIsSaidToBeDone(t *testing.T) {
	for _, failing := range []graveler.RepositoryID{bucket, beside(bucket)} {
		f, w, _ := newWalkFixture(t)
		done := f.clock
		w.before = failIn(failing)
		for range 3 {
			f.days(6)
			r, err := f.tryRun()
			require.ErrorIs(t, err, errWalk)
			for _, s := range r.Shards {
				require.Equal(t, done, s.Time)
			}
			require.Equal(t, done, r.Shards[lifecycle.ShardOf(failing, "")].LastWalked)
		}
		w.before = nil
		r := f.run()
		require.Equal(t, r.Now, r.Shards[0].Time)
		require.Empty(t, f.keys(failing))
	}
}

func TestWhatAWalkCannotDoIsInTheWayUntilAWalkHasDoneIt(t *testing.T) {
	for _, outcome := range []lifecycle.Outcome{lifecycle.RetryLater, lifecycle.Blocked} {
		t.Run(outcome.String(), func(t *testing.T) {
			f, _, _ := newWalkFixture(t)
			f.put("b", "c", "d")
			done := f.clock
			f.run()
			f.days(6)
			f.config.WalkerInterval = 24 * time.Hour
			f.results = func(i dispatch.Item) dispatch.Result {
				if i.LogicalKey == "b" || i.LogicalKey == "c" {
					return dispatch.Result{Outcome: outcome, Reason: "not " + i.LogicalKey}
				}
				return dispatch.Result{}
			}
			var since int64
			for pass := range 3 { // with a walk, without one, and with one
				r := f.run()
				if pass == 0 {
					since = f.clock.UnixNano()
				}
				require.Equal(t, []string{"b", "c"}, f.keys(bucket))
				source := r.Sources[0]
				require.Equal(t, bucket, source.Repository)
				require.Equal(t, pass != 1, source.Walked)
				require.Equal(t, 1, source.Blocked)
				require.Equal(t, done.Add(time.Second), r.Shards[3].Time)
				s, err := dailyrun.ReadStatus(t.Context(), f.config)
				require.NoError(t, err)
				require.Equal(t, &cursor.Block{Key: graveler.Key("b"), Since: since, Reason: "not b"}, s.Sources[0].WalkBlocked)
				require.Nil(t, s.Sources[1].WalkBlocked)
				f.clock = f.clock.Add(13 * time.Hour)
			}
			f.config.WalkerInterval, f.results = 0, nil
			r := f.run()
			require.Empty(t, f.keys(bucket))
			require.Zero(t, r.Sources[0].Blocked)
			require.Equal(t, r.Now, r.Shards[3].Time)
		})
	}
}

// What one walk could not do is still in the way where the next has not come to it.
func TestABlockStandsUntilAWalkHasComeToIt(t *testing.T) {
	f, _, _ := newWalkFixture(t)
	f.put("b", "c", "d")
	f.run()
	f.days(6)
	block := func(keys ...string) func(dispatch.Item) dispatch.Result {
		return func(i dispatch.Item) dispatch.Result {
			if slices.Contains(keys, i.LogicalKey) {
				return dispatch.Result{Outcome: lifecycle.Blocked}
			}
			return dispatch.Result{}
		}
	}
	blocked := func(want string) {
		t.Helper()
		s, err := dailyrun.ReadStatus(t.Context(), f.config)
		require.NoError(t, err)
		got := ""
		if b := s.Sources[0].WalkBlocked; b != nil {
			got = string(b.Key)
		}
		require.Equal(t, want, got)
	}
	f.results = block("b", "c", "d")
	f.run()
	f.put("0", "z")
	f.config.EventBudget, f.results = 1, block("c", "d")
	for _, want := range []string{"b", "", "c", "c", "c"} { // it comes to 0, b, c, d, z
		f.run()
		blocked(want)
	}
	f.config.EventBudget, f.results = 0, block("d")
	f.run() // there is nothing after z
	f.run()
	blocked("d")
	f.delete("z")
	f.delete("d") // nothing is left where it was
	f.run()
	blocked("")
	require.Equal(t, []string{"0"}, f.keys(bucket))
}

func TestAMalformedWalkStopsTheWalksOfItsBranchAlone(t *testing.T) {
	f, _, other := newWalkFixture(t)
	r, err := f.GetRepository(t.Context(), bucket)
	require.NoError(t, err)
	b, err := f.GetBranch(t.Context(), bucket, "main")
	require.NoError(t, err)
	key := fmt.Sprintf("walks/%s/%s", r.UID, b.UID)
	require.NoError(t, f.records.Set(t.Context(), []byte(cursor.Partition), []byte(key), []byte("x")))
	f.days(6)
	done := f.clock
	report, err := f.tryRun()
	require.ErrorIs(t, err, cursor.ErrMalformed)
	require.ErrorContains(t, err, key)
	require.Equal(t, 1, report.Errors)
	require.True(t, report.Shards[0].Time.Before(done))
	require.Equal(t, []string{"a"}, f.keys(bucket))
	require.Empty(t, f.keys(other))
	_, err = cursor.New(f.records).Forget(t.Context(), 0)
	require.NoError(t, err)
	f.run()
	require.Empty(t, f.keys(bucket))
}

func TestAPassWhoseClockWasAheadKeepsNoWalkFromItsTurn(t *testing.T) {
	f, _, _ := newWalkFixture(t)
	f.config.WalkerInterval = 12 * time.Hour
	now, ahead := f.config.Now, f.clock.AddDate(1, 0, 0)
	f.config.Now = func() time.Time { return ahead }
	f.mover.Now = f.config.Now
	f.run()
	f.config.Now, f.mover.Now = now, now
	f.put("b")
	r := f.run()
	require.True(t, r.Sources[0].Walked)
	require.Less(t, r.Shards[lifecycle.ShardOf(bucket, "")].LastWalked, ahead)
	for range 5 {
		require.Equal(t, []string{"b"}, f.keys(bucket))
		f.days(1)
		f.run()
	}
	require.Empty(t, f.keys(bucket))
}

func TestTheBudgetBoundsAWalkAndItGoesOn(t *testing.T) {
	f, w, other := newWalkFixture(t)
	_, err := f.catalog.Delete(t.Context(), in(other), "a", catalog.DeleteParams{})
	require.NoError(t, err)
	f.commit(other)
	f.put("b", "c", "d", "e")
	f.run()
	done := f.clock
	f.days(6)
	f.config.EventBudget, f.config.WalkerInterval = 2, 24*time.Hour
	for _, seen := range [][]string{{"a", "b"}, {"c", "d"}, {"e"}} {
		w.seen = nil
		r := f.run()
		require.Equal(t, seen, w.seen)
		require.Equal(t, len(seen) == 1, r.Sources[0].Walked)
		require.Equal(t, done, r.Shards[0].Time)
	}
	require.Empty(t, f.keys(bucket))
	for range 3 {
		f.run() // lanes read what the walk has removed
	}
	r := f.run()
	require.Equal(t, r.Now, r.Shards[0].Time)
}

func TestAWalkIsOverTheShardsOfItsPass(t *testing.T) {
	f, _, _ := newWalkFixture(t)
	same, others := inOneShard(3)
	f.put(same...)
	f.put(others...)
	f.days(6)
	f.config.WalkerInterval = 24 * time.Hour
	require.NotEqual(t, 3, lifecycle.ShardOf(bucket, ""))
	f.config.Shards = []int{3}
	require.True(t, f.run().Sources[0].Walked)
	require.ElementsMatch(t, append([]string{"a"}, others...), f.keys(bucket))
	require.False(t, f.run().Sources[0].Walked, "it is not due")
	f.config.Shards = nil
	require.True(t, f.run().Sources[0].Walked, "for all it is")
	require.Empty(t, f.keys(bucket))
}

func TestABranchWithoutRulesThatWalksWouldCarryOutIsNotWalked(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	w := &controlledWalker{Walker: walker.New(f.Graveler)}
	f.config.Walker = w
	f.rules(bucket, `"Filter":{},"AbortIncompleteMultipartUpload":{"DaysAfterInitiation":1}`)
	f.put("a")
	r := f.run()
	require.Empty(t, w.seen)
	require.Equal(t, r.Now, r.Shards[0].LastWalked)
	for key := range stored(t, f.records, cursor.Partition) {
		require.NotContains(t, key, "walks")
	}
	f.rules(bucket, expire(5))
	require.True(t, f.run().Sources[0].Walked)
}

// holding is a Holder of some shards.
type holding []int

func (h holding) Shards() []int { return h }

func (h holding) Hold(ctx context.Context, shard int) (context.Context, func(), bool) {
	return ctx, func() {}, slices.Contains(h, shard)
}

func TestWhoHoldsTheShardOfTheNameWalksForAll(t *testing.T) {
	f, _, other := newWalkFixture(t)
	same, others := inOneShard(3)
	f.put(same...)
	f.put(others...)
	f.run()
	f.days(6)
	shard := lifecycle.ShardOf(bucket, "")
	f.config.Holder = holding{(shard + 1) % lifecycle.Shards, (shard + 2) % lifecycle.Shards}
	for _, s := range f.run().Sources {
		require.False(t, s.Walked)
	}
	f.config.Holder = holding{shard}
	f.run()
	require.Empty(t, f.keys(bucket))
	require.Empty(t, f.keys(other))
}

func TestAWalkLeavesOutAShardWithMalformedRecords(t *testing.T) {
	for _, n := range []int{3, lifecycle.ShardOf(bucket, "")} { // be it the one of the bucket's name
		f, _, _ := newWalkFixture(t)
		same, others := inOneShard(3)
		f.put(same...)
		f.put(others...)
		f.run()
		f.days(6)
		require.NoError(t, f.records.Set(t.Context(), []byte(cursor.Partition), fmt.Appendf(nil, "cursors/shard-%02d", n), []byte("x")))
		_, err := f.tryRun()
		require.ErrorIs(t, err, cursor.ErrMalformed)
		rests := slices.DeleteFunc(append(append([]string{"a"}, same...), others...), func(key string) bool { return lifecycle.ShardOf(bucket, key) != n })
		require.ElementsMatch(t, rests, f.keys(bucket))
		_, err = cursor.New(f.records).Forget(t.Context(), n)
		require.NoError(t, err)
		f.run()
		require.Empty(t, f.keys(bucket))
	}
}

func TestTheTimeOfTheLastWalkDoesNotGoBack(t *testing.T) {
	f, w, _ := newWalkFixture(t)
	w.before = failIn(bucket)
	f.days(1)
	_, err := f.tryRun()
	require.ErrorIs(t, err, errWalk)
	w.before = nil
	protect := func(rules ...graveler.ProtectionRule) {
		require.NoError(t, f.ProtectBranches(t.Context(), bucket, func([]graveler.ProtectionRule) ([]graveler.ProtectionRule, error) { return rules, nil }))
	}
	protect(graveler.ProtectionRule{Pattern: "main", Forbid: graveler.ActionMove})
	f.days(20)
	shard := lifecycle.ShardOf(bucket, "")
	before := f.run().Shards[shard].LastWalked
	require.Equal(t, f.clock, before)
	protect()
	f.days(1)
	r := f.run()
	require.True(t, r.Sources[0].Walked, "the walk that was under way")
	require.Equal(t, before, r.Shards[shard].LastWalked)
	require.Equal(t, f.clock.Add(time.Second), f.run().Shards[shard].LastWalked)
}
