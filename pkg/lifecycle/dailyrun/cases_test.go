// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// SeaweedFS issues 10574 and 10733: on a quiet cluster a pass never ended. Nor must it on one that is never quiet.
func TestAPassEndsAtTheFrozenNow(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(1))
	f.run()
	f.run()
	f.put("a")
	f.days(2)
	f.results = func(dispatch.Item) dispatch.Result {
		f.put("b", "c") // somebody goes on writing
		return dispatch.Result{}
	}
	f.run()
	require.Equal(t, []string{"a"}, f.sentKeys())
	require.Equal(t, []string{"b", "c"}, f.keys(bucket))
}

// SeaweedFS issue 6619: young objects went with the old ones.
func TestEachObjectGoesByItsOwnAge(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(3))
	f.put("old")
	f.days(1)
	f.run()
	f.put("young")
	f.days(2)
	f.run()
	require.Equal(t, []string{"young"}, f.keys(bucket))
	f.days(1)
	f.run()
	require.Empty(t, f.keys(bucket))
}

func TestAnOldObjectThatIsMergedInIsAsYoungAsTheMerge(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(2))
	_, err := f.CreateBranch(t.Context(), bucket, "dev", "main")
	require.NoError(t, err)
	_, err = f.catalog.Put(t.Context(), catalog.Bucket{Repository: bucket, Ref: "dev"}, "a", catalog.Object{PhysicalAddress: "a"}, catalog.Conditions{})
	require.NoError(t, err)
	_, err = f.Commit(t.Context(), bucket, "dev", graveler.CommitParams{Committer: "user"})
	require.NoError(t, err)
	f.days(5)
	_, err = f.Merge(t.Context(), bucket, "dev", "main", graveler.MergeParams{CommitParams: graveler.CommitParams{Committer: "user"}})
	require.NoError(t, err)
	f.days(1)
	f.run()
	require.Equal(t, []string{"a"}, f.keys(bucket))
	f.days(1)
	f.run()
	require.Empty(t, f.keys(bucket))
}

func TestARuleThatIsEnabledAgainActsOnWhatFellDueMeanwhile(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(2))
	f.put("a")
	f.run()
	disabled, err := dailyrun.GetConfiguration(t.Context(), f.Graveler, bucket)
	require.NoError(t, err)
	disabled.Rules[0].Enabled = false
	require.NoError(t, dailyrun.SetConfiguration(t.Context(), f.Graveler, bucket, disabled))
	for range 3 {
		f.days(1)
		f.run()
	}
	require.Equal(t, []string{"a"}, f.keys(bucket))
	f.rules(bucket, expire(2))
	f.run()
	require.Empty(t, f.keys(bucket))
}

func TestOneRuleEditedInOneBucketLeavesTheOthersAlone(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.bucket("other", catalog.VersioningOff)
	f.rules(bucket, expire(1))
	f.rules("other", expire(1))
	store := &spy{Graveler: f.Graveler}
	f.config.Store = store
	f.put("a")
	_, err := f.catalog.Put(t.Context(), in("other"), "a", catalog.Object{PhysicalAddress: "a"}, catalog.Conditions{})
	require.NoError(t, err)
	f.commit("other")
	f.days(2)
	f.run()
	store.whole = nil
	f.run()
	require.Empty(t, store.whole)
	f.rules("other", expire(1), `"Filter":{"Prefix":"x"},"Expiration":{"Days":1}`)
	f.run()
	require.Equal(t, []graveler.RepositoryID{"other"}, store.whole)
}

// The lane without a delay has rules of its own, and looks at all keys of its own bucket alone.
func TestARuleWithoutADelayThatIsEditedInOneBucketLeavesTheOthersAlone(t *testing.T) {
	const keep = `"Filter":{},"NoncurrentVersionExpiration":{"NewerNoncurrentVersions":%d}`
	f := newFixture(t, catalog.VersioningEnabled)
	f.bucket("other", catalog.VersioningEnabled)
	f.rules(bucket, fmt.Sprintf(keep, 1))
	f.rules("other", fmt.Sprintf(keep, 1))
	f.put("a", "b", "c")
	_, err := f.catalog.Put(t.Context(), in("other"), "d", catalog.Object{PhysicalAddress: "d"}, catalog.Conditions{})
	require.NoError(t, err)
	f.commit("other")
	events := func() (n int) {
		for _, sh := range f.run().Shards {
			n += sh.Events
		}
		return n
	}
	require.Equal(t, 4, events())
	require.Zero(t, events())
	f.rules("other", fmt.Sprintf(keep, 2))
	require.Equal(t, 1, events())
	require.Zero(t, events())
}

// failingWalker fails after some keys.
type failingWalker struct {
	*walker.Walker
	keys  int
	after []string
}

func (w *failingWalker) Walk(ctx context.Context, repo graveler.RepositoryID, tree graveler.MetaRangeID, v catalog.Versioning, after string) iter.Seq2[*walker.Group, error] {
	w.after = append(w.after, after)
	return func(yield func(*walker.Group, error) bool) {
		n := 0
		for g, err := range w.Walker.Walk(ctx, repo, tree, v, after) {
			if n++; n > w.keys {
				yield(nil, errors.New("the disk is on fire"))
				return
			}
			if !yield(g, err) {
				return
			}
		}
	}
}

// SeaweedFS issue 11106: a walk was given up, and nobody was told.
func TestAWalkThatFailsIsAnErrorAndGoesOnWhereItWas(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	w := &failingWalker{Walker: walker.New(f.Graveler), keys: 100}
	f.config.Walker = w
	f.config.RetentionWindow = 2 * 24 * time.Hour
	f.rules(bucket, expire(3), `"Filter":{},"Expiration":{"Days":1}`) // the first is beyond the log
	f.put("a", "b", "c")
	f.run() // cold
	w.keys, w.after = 2, nil
	f.put("d")
	r, err := f.tryRun()
	require.ErrorContains(t, err, "the disk is on fire")
	require.Equal(t, 1, r.Errors)
	require.Contains(t, r.Heartbeat(), "status=error shards=16 errors=1")
	f.days(2)
	w.keys = 100
	f.run() // an error of a walk blocks the walk alone, and that goes on
	require.Equal(t, []string{"", "b"}, w.after)
	require.Empty(t, f.keys(bucket))
}

func TestAnEventOfWhichOneMatchFailsIsNotPassed(t *testing.T) {
	for _, failing := range []int{0, 1} {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			f := newFixture(t, catalog.VersioningEnabled)
			f.rules(bucket, `"Filter":{},"NoncurrentVersionExpiration":{"NewerNoncurrentVersions":1}`)
			f.run()
			f.put("a")
			f.put("a")
			f.put("a")
			f.put("a") // two noncurrent versions too many
			f.results = func(dispatch.Item) dispatch.Result {
				if len(f.sent) == failing+1 {
					return dispatch.Result{Outcome: lifecycle.RetryLater}
				}
				return dispatch.Result{}
			}
			r := f.run()
			require.Len(t, f.sent, 2)
			failed := f.sent[failing].VersionID
			require.Equal(t, 1, r.Sources[0].Blocked)
			require.Equal(t, []string{"current", "noncurrent", "noncurrent"}, f.versions("a"))
			f.results = nil
			r = f.run()
			require.Len(t, f.sent, 1)
			require.Equal(t, failed, f.sent[0].VersionID)
			require.Zero(t, r.Sources[0].Blocked)
			require.Equal(t, []string{"current", "noncurrent"}, f.versions("a"))
		})
	}
}

// inOneShard returns keys of one shard and some of others.
func inOneShard(n int) (same, others []string) {
	for i := 0; len(same) < n || len(others) < n; i++ {
		key := fmt.Sprintf("key-%04d", i)
		if lifecycle.ShardOf(bucket, key) == 3 {
			same = append(same, key)
		} else {
			others = append(others, key)
		}
	}
	return same[:n], others[:n]
}

func TestOnlyWhatIsBehindAStuckEventIsSentAgain(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(1), `"Filter":{"Prefix":"key-"},"Expiration":{"Days":2}`)
	same, others := inOneShard(4)
	f.put(append(same, others...)...)
	f.days(1)
	// An embedder's dispatcher, which does something elsewhere.
	f.results = func(item dispatch.Item) dispatch.Result {
		if item.LogicalKey == same[2] && item.Action.Delay == 1 {
			return dispatch.Result{Outcome: lifecycle.Blocked, Reason: "not that one"}
		}
		return dispatch.Result{Outcome: lifecycle.Done}
	}
	f.run()
	require.Len(t, f.sent, 8)
	for range 3 {
		f.clock = f.clock.Add(time.Hour)
		r := f.run()
		require.Equal(t, same[2:], f.sentKeys())
		require.Equal(t, 1, r.Sources[0].Blocked)
	}
	s, err := dailyrun.ReadStatus(t.Context(), f.config)
	require.NoError(t, err)
	for _, l := range s.Sources[0].Lanes {
		if l.Shard == 3 && l.Delay == 1 {
			require.Equal(t, same[2], string(l.Blocked.Key))
			require.Equal(t, "not that one", l.Blocked.Reason)
			require.True(t, l.Unfinished)
		} else {
			require.Nil(t, l.Blocked)
		}
	}
	f.days(1)
	f.run() // the other lane goes on
	require.ElementsMatch(t, append(append(append([]string{}, same[2:]...), same...), others...), f.sentKeys())
}

func TestALockedObjectIsLookedAtAgainWhenItsRetentionEnds(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	require.NoError(t, f.catalog.SetObjectLock(t.Context(), bucket, catalog.ObjectLockConfig{Enabled: true}))
	f.rules(bucket, `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":1}`)
	lock := func(key string, l catalog.Lock) {
		f.clock = f.clock.Add(time.Second)
		_, err := f.catalog.Put(t.Context(), in(bucket), key, catalog.Object{PhysicalAddress: key, Lock: l}, catalog.Conditions{})
		require.NoError(t, err)
		f.put(key)
	}
	lock("retained", catalog.Lock{Mode: catalog.LockCompliance, RetainUntil: f.clock.Add(4 * 24 * time.Hour)})
	lock("held", catalog.Lock{LegalHold: true})
	for range 3 {
		f.days(1)
		f.run()
		require.Len(t, f.versions("retained"), 2)
	}
	f.days(2)
	f.run()
	require.Equal(t, []string{"current"}, f.versions("retained"))
	require.Equal(t, []string{"current", "noncurrent"}, f.versions("held"))

	page, err := f.catalog.ListVersions(t.Context(), in(bucket), catalog.ListVersionsParams{Prefix: "held"})
	require.NoError(t, err)
	require.NoError(t, f.catalog.PutLegalHold(t.Context(), in(bucket), "held", page.Versions[1].VersionID, false))
	f.commit(bucket)
	f.run()
	require.Equal(t, []string{"current"}, f.versions("held"))
}

func TestAKeyIsOneShardWhateverIsOfIt(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled) // its dispatcher looks at the shards
	f.rules(bucket, expire(1), `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":1}`, `"Filter":{},"AbortIncompleteMultipartUpload":{"DaysAfterInitiation":1}`)
	f.put("a")
	f.put("a")
	f.delete("a")
	f.put("b")
	_, err := f.catalog.CreateUpload(t.Context(), in(bucket), "b", catalog.Object{})
	require.NoError(t, err)
	f.commit(bucket)
	f.days(2)
	f.run()
	require.Equal(t, []string{"a", "a", "b", "b"}, f.sentKeys())
}

// MinIO issue 12961 and pull request 10444: the clock of a noncurrent version was that of its own making, and versions under a delete marker stayed.
func TestANoncurrentVersionGoesByWhenItWasDisplaced(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.rules(bucket, `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":2}`)
	f.put("a", "b")
	f.days(5)
	f.run()
	f.put("a")
	f.delete("b")
	f.days(1)
	f.run()
	require.Equal(t, []string{"current", "noncurrent"}, f.versions("a"))
	require.Equal(t, []string{"marker", "noncurrent"}, f.versions("b"))
	f.days(1)
	f.run()
	require.Equal(t, []string{"current"}, f.versions("a"))
	require.Equal(t, []string{"marker"}, f.versions("b"))
}

// MinIO pull request 14902, SeaweedFS pull request 9845: a suspended bucket piled up delete markers. Ceph pull request 28587:
// they were made again and again.
func TestADeleteMarkerIsMadeOnce(t *testing.T) {
	for _, v := range []catalog.Versioning{catalog.VersioningEnabled, catalog.VersioningSuspended} {
		t.Run(string(v), func(t *testing.T) {
			f := newFixture(t, v)
			f.put("a")
			f.rules(bucket, expire(1), `"Filter":{},"Expiration":{"Date":"2030-01-01T00:00:00Z"}`)
			f.config.Walker = walker.New(f.Graveler)
			f.days(1)
			f.run()
			marked := map[catalog.Versioning][]string{catalog.VersioningEnabled: {"marker", "noncurrent"}, catalog.VersioningSuspended: {"marker"}}[v]
			require.Equal(t, marked, f.versions("a"))
			f.clock = f.clock.Add(time.Hour)
			f.run()
			require.Empty(t, f.sent)
			require.Equal(t, marked, f.versions("a"))
		})
	}
}

// RustFS issue 2827: objects went at the first midnight.
func TestADayEndsAtTheMidnightAfterIt(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.config.DayBoundary = lifecycle.MidnightUTC
	f.rules(bucket, expire(1))
	f.put("a") // at nine
	f.clock = time.Date(2030, 1, 2, 23, 59, 0, 0, time.UTC)
	f.run()
	require.Equal(t, []string{"a"}, f.keys(bucket))
	f.clock = time.Date(2030, 1, 3, 0, 0, 0, 0, time.UTC)
	f.run()
	require.Empty(t, f.keys(bucket))
}

func TestALoneDeleteMarkerGoes(t *testing.T) {
	for name, rule := range map[string]string{
		"at once": `"Filter":{},"Expiration":{"ExpiredObjectDeleteMarker":true}`,
		"by days": expire(3),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, catalog.VersioningEnabled)
			f.rules(bucket, rule, `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":5}`)
			f.put("a")
			f.delete("a")
			f.run()
			f.days(5)
			f.run() // the version goes
			require.Equal(t, []string{"marker"}, f.versions("a"))
			f.run()
			require.Empty(t, f.versions("a"))
		})
	}
}

// Where the log is too short, a version goes by when it was displaced. One that a user restores and overwrites again, after the
// pass has looked at it, is not old any more.
func TestAVersionThatIsDisplacedAgainMeanwhileIsAsYoungAsThat(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint(again), func(t *testing.T) {
			f := newFixture(t, catalog.VersioningEnabled)
			f.rules(bucket, `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":5}`)
			f.config.RetentionWindow = 2 * 24 * time.Hour
			f.config.Walker = walker.New(f.Graveler)
			f.put("a", "a")
			f.days(6)
			f.before = func() {
				page, err := f.catalog.ListVersions(t.Context(), in(bucket), catalog.ListVersionsParams{})
				require.NoError(t, err)
				if again {
					_, err = f.catalog.Delete(t.Context(), in(bucket), "a", catalog.DeleteParams{VersionID: page.Versions[0].VersionID})
					require.NoError(t, err)
				}
				f.put("a")
			}
			f.run()
			if !again {
				require.Equal(t, []string{"current", "noncurrent"}, f.versions("a"), "the one that was displaced just now")
				return
			}
			require.Equal(t, []string{"current", "noncurrent"}, f.versions("a"))
			for range 4 {
				f.days(1)
				f.run()
				require.Equal(t, []string{"current", "noncurrent"}, f.versions("a"))
			}
			f.days(1)
			f.run()
			require.Equal(t, []string{"current"}, f.versions("a"))
		})
	}
}

func TestLanesThatAreDueTogetherAreOneMove(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	const lanes = 200
	var rules []string
	for n := range lanes {
		rules = append(rules, fmt.Sprintf(`"Filter":{"Prefix":"%03d"},"Expiration":{"Days":%d}`, n, n+1))
	}
	f.rules(bucket, rules...)
	f.run()
	for n := range lanes {
		f.put(fmt.Sprintf("%03d", lanes-1-n))
		f.days(1)
	}
	require.Len(t, f.keys(bucket), lanes)
	f.run()
	require.Empty(t, f.keys(bucket))
	require.Len(t, f.sent, lanes)
	require.Equal(t, 1, f.moves())
}

// Objects that several lanes find due at once are dispatched for one of them.
func TestWhatSeveralLanesFindDueIsDispatchedOnce(t *testing.T) {
	for _, v := range []catalog.Versioning{catalog.VersioningOff, catalog.VersioningEnabled} {
		f := newFixture(t, v)
		f.rules(bucket, expire(1), `"Filter":{"Prefix":"a"},"Expiration":{"Days":2}`, expire(3), `"Filter":{},"Expiration":{"Date":"2030-01-02T00:00:00Z"}`)
		f.put("a", "b", "c", "d")
		f.days(4)
		f.run()
		require.Empty(t, f.keys(bucket))
		require.Equal(t, []string{"a", "b", "c", "d"}, f.sentKeys())
		require.Equal(t, 1, f.moves())
		f.run()
		require.Empty(t, f.sent)
	}
}

// A pass takes what is committed. A part that its user commits later is of an upload that is no more.
func TestAPartThatIsCommittedAfterItsUploadWasAbortedGoes(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, `"Filter":{"Prefix":"b"},"AbortIncompleteMultipartUpload":{"DaysAfterInitiation":1}`)
	upload := func(key string) catalog.Upload {
		u, err := f.catalog.CreateUpload(t.Context(), in(bucket), key, catalog.Object{})
		require.NoError(t, err)
		return u
	}
	part := func(u catalog.Upload, number int) {
		_, _, err := f.catalog.PutPart(t.Context(), in(bucket), u.Key, u.UploadID, catalog.Part{Number: number, PhysicalAddress: "p", Size: 5})
		require.NoError(t, err)
	}
	entries := func() (kinds []catalog.Kind) {
		for l, err := range f.List(t.Context(), bucket, "main", graveler.ListOptions{}) {
			require.NoError(t, err)
			place, err := catalog.ParseKey(l.Key)
			require.NoError(t, err)
			kinds = append(kinds, place.Kind)
		}
		return kinds
	}
	u, other := upload("b"), upload("other")
	part(u, 1)
	part(other, 1)
	f.commit(bucket)
	f.days(3)
	part(u, 2)
	f.run()
	require.Equal(t, []catalog.Kind{catalog.KindPart, catalog.KindPart, catalog.KindUpload}, entries())
	part(other, 2)
	f.commit(bucket)
	young := upload("b")
	part(young, 1)
	f.commit(bucket)
	f.run()
	require.Empty(t, f.sent)
	f.days(1)
	f.before = func() { part(other, 3); f.commit(bucket) }
	f.run()
	require.Equal(t, []catalog.Kind{catalog.KindPart, catalog.KindPart, catalog.KindPart, catalog.KindUpload}, entries(), "those of the other upload, which no rule is about")
	f.days(5)
	f.run()
	require.Empty(t, f.sent)
}
