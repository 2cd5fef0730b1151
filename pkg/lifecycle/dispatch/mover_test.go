// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

const (
	off       = catalog.VersioningOff
	enabled   = catalog.VersioningEnabled
	suspended = catalog.VersioningSuspended
)

func TestEachKindInEachVersioningState(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(f *fixture)
		state  catalog.Versioning // when it is dispatched
		action *lifecycle.Action
		object string
		after  string
		noop   bool
	}{
		{name: "an object without versions goes", before: func(f *fixture) { f.put("k", "a") }, state: off, action: days, object: "a", after: ""},
		{name: "by a date it goes as well", before: func(f *fixture) { f.put("k", "a") }, state: off, action: date, object: "a", after: ""},
		{name: "with versions a marker takes its place", before: func(f *fixture) { f.version(enabled); f.put("k", "a", "b") }, state: enabled, action: days, object: "b", after: "k: - | b a"},
		{name: "so it does of an object from before", before: func(f *fixture) { f.put("k", "a") }, state: enabled, action: date, object: "a", after: "k: - | ~a"},
		{name: "with versions suspended a null marker replaces the null version", before: func(f *fixture) { f.put("k", "a") }, state: suspended, action: days, object: "a", after: "k: ~-"},
		{name: "and keeps one that is none", before: func(f *fixture) { f.version(enabled); f.put("k", "a") }, state: suspended, action: days, object: "a", after: "k: ~- | a"},
		{name: "and replaces the null version that is aside", before: func(f *fixture) { f.put("k", "a"); f.version(enabled); f.put("k", "b") }, state: suspended, action: days, object: "b", after: "k: ~- | b"},
		{name: "a marker is not marked again", before: func(f *fixture) { f.version(enabled); f.put("k", "a", "-") }, state: enabled, action: date, object: "-", after: "k: - | a", noop: true},
		{name: "a marker that is not alone stays", before: func(f *fixture) { f.version(enabled); f.put("k", "a", "-") }, state: enabled, action: days, object: "-", after: "k: - | a", noop: true},
		{name: "a lone marker goes when it is old", before: func(f *fixture) { f.version(enabled); f.put("k", "-") }, state: enabled, action: days, object: "-", after: ""},
		{name: "a lone marker goes at once", before: func(f *fixture) { f.version(enabled); f.put("k", "-") }, state: suspended, action: soleMarker, object: "-", after: ""},
		{name: "a lone null marker goes", before: func(f *fixture) { f.version(enabled); f.version(suspended); f.put("k", "-") }, state: enabled, action: soleMarker, object: "-", after: ""},
		{name: "a version that is not current goes", before: func(f *fixture) { f.version(enabled); f.put("k", "a", "b", "c") }, state: enabled, action: noncurrent, object: "b", after: "k: c | a"},
		{name: "also the null version", before: func(f *fixture) { f.put("k", "a"); f.version(enabled); f.put("k", "b") }, state: suspended, action: noncurrent, object: "a", after: "k: b"},
		{name: "what is current is not noncurrent", before: func(f *fixture) { f.version(enabled); f.put("k", "a") }, state: enabled, action: noncurrent, object: "a", after: "k: a", noop: true},
		{name: "one with enough newer ones goes", before: func(f *fixture) { f.version(enabled); f.put("k", "a", "b", "c") }, state: enabled, action: keep(1), object: "a", after: "k: c | b"},
		{name: "one with too few stays", before: func(f *fixture) { f.version(enabled); f.put("k", "a", "b", "c") }, state: enabled, action: keepDays(1), object: "b", after: "k: c | b a", noop: true},
		{name: "the null version counts by its age", before: func(f *fixture) { f.put("k", "a"); f.version(enabled); f.put("k", "b", "c") }, state: enabled, action: keepDays(1), object: "a", after: "k: c | b"},
	} {
		for _, bare := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %t", c.name, bare), func(t *testing.T) {
				f := newFixture(t, off)
				f.bare = bare
				c.before(f)
				f.commit()
				f.version(c.state)
				want := lifecycle.Done
				if c.noop {
					want = lifecycle.NoopResolved
				}
				head := f.head()
				item := f.item(c.action, "k", c.object)
				require.Equal(t, []dispatch.Result{{Outcome: want}}, f.dispatch(item))
				require.Equal(t, c.after, f.show("main@"))
				require.Equal(t, c.after, f.show("main"))
				require.Equal(t, c.noop, head == f.head(), "a move is made where something changes, and only there")
				require.Equal(t, []dispatch.Result{{Outcome: lifecycle.NoopResolved}}, f.dispatch(item), "again it is harmless")
				require.Equal(t, c.after, f.show("main@"))
			})
		}
	}
}

func (f *fixture) head() graveler.CommitID {
	c, err := f.ResolveRef(f.Context(), bucket, "main")
	require.NoError(f, err)
	return c.ID
}

func TestAnUploadIsAbortedWithItsParts(t *testing.T) {
	f := newFixture(t, off)
	f.upload("k", 1, 2)
	f.upload("k", 2, 1)
	f.commit()
	item := f.item(abort, "k", "upload 1")
	require.Equal(t, lifecycle.Done, f.dispatch(item)[0].Outcome)
	require.Len(t, f.entries("main@"), 2)
	require.Equal(t, lifecycle.NoopResolved, f.dispatch(item)[0].Outcome)
}

func TestTwoUploadsOfOneIDAreAborted(t *testing.T) {
	f := newFixture(t, off)
	f.upload("k", 1, 2)
	f.upload("l", 1, 1)
	f.commit()
	require.Equal(t, []lifecycle.Outcome{lifecycle.Done, lifecycle.Done}, outcomes(f.dispatch(f.item(abort, "k", "upload 1"), f.item(abort, "l", "upload 1"))))
	require.Empty(t, f.entries("main@"))
}

// upload stages what makes up a multipart upload.
func (f *fixture) upload(key string, number, parts int) {
	id := fmt.Sprintf("%024x", number)
	set := func(key, data string) {
		require.NoError(f, f.Set(f.Context(), bucket, "main", graveler.Key(key), graveler.Value{Identity: []byte(data), Data: []byte(data)}))
	}
	set("\x00u"+key+"\x00\x01"+id, fmt.Sprint("upload ", number))
	for n := range parts {
		set(fmt.Sprintf("\x00p%s\x00%05d", id, n+1), "part")
	}
}

func TestWhatHappensBetweenFreezingAndDispatchCounts(t *testing.T) {
	tagged := *days
	tagged.Rule = &lifecycle.Rule{ID: "tagged", Filter: lifecycle.Filter{Tags: []lifecycle.Tag{{Key: "t", Value: "1"}}}}
	tag := func(f *fixture, value string) {
		require.NoError(f, f.catalog.PutTagging(f.Context(), f.in(), "k", "", map[string]string{"t": value}))
	}
	for _, c := range []struct {
		name      string
		before    func(f *fixture)
		action    *lifecycle.Action
		object    string
		meanwhile func(f *fixture)
		after     string
		done      bool
	}{
		{"overwritten", func(f *fixture) { f.put("k", "a") }, days, "a", func(f *fixture) { f.put("k", "b"); f.commit() }, "k: b | a", false},
		{"overwritten without a commit", func(f *fixture) { f.put("k", "a") }, days, "a", func(f *fixture) { f.put("k", "b") }, "k: - | a", true},
		{"put again with the same bytes", func(f *fixture) { f.put("k", "a") }, days, "a", func(f *fixture) { f.put("k", "a"); f.commit() }, "k: a | a", false},
		{"reset to before it was put", func(f *fixture) { f.put("l", "x"); f.commit(); f.put("k", "a") }, days, "a", func(f *fixture) { f.reset("main@~1") }, "l: x", false},
		{"reset and brought back", func(f *fixture) { f.put("k", "a"); f.commit(); f.put("l", "x") }, days, "a", func(f *fixture) { h := string(f.head()); f.reset(h + "~1"); f.reset(h) }, "k: - | a l: x", true},
		{"another key was put", func(f *fixture) { f.put("k", "a") }, days, "a", func(f *fixture) { f.put("l", "b"); f.commit() }, "k: - | a l: b", true},
		{"tags were edited", func(f *fixture) { f.put("k", "a"); tag(f, "1") }, &tagged, "a", func(f *fixture) { tag(f, "2"); f.commit() }, "k: a", false},
		{"other tags were edited", func(f *fixture) { f.put("k", "a"); tag(f, "1") }, days, "a", func(f *fixture) { tag(f, "2"); f.commit() }, "k: - | a", true},
		{"deleted", func(f *fixture) { f.put("k", "a") }, days, "a", func(f *fixture) { f.put("k", "-"); f.commit() }, "k: - | a", false},
		{"a version became current again", func(f *fixture) { f.put("k", "a", "b") }, noncurrent, "a", func(f *fixture) { f.remove("k", "b"); f.commit() }, "k: a", false},
		{"a newer version went", func(f *fixture) { f.put("k", "a", "b", "c") }, keep(1), "a", func(f *fixture) { f.remove("k", "b"); f.commit() }, "k: c | a", false},
		{"the version that would stay went", func(f *fixture) { f.put("k", "a", "b", "c", "d") }, keepDays(1), "b", func(f *fixture) { f.remove("k", "a"); f.commit() }, "k: d | c", true},
		{"a marker has a version under it", func(f *fixture) { f.put("k", "-") }, soleMarker, "-", func(f *fixture) { f.put("k", "a", "-"); f.commit() }, "k: - | a -", false},
		{"an old marker is no longer current", func(f *fixture) { f.put("k", "-") }, days, "-", func(f *fixture) { f.put("k", "a"); f.commit() }, "k: a | -", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, when := range map[string]func(f *fixture){
				"before the move": func(f *fixture) { c.meanwhile(f) },
				"during the move": func(f *fixture) { f.between = func() { c.meanwhile(f) } },
			} {
				f := newFixture(t, enabled)
				c.before(f)
				f.commit()
				item := f.item(c.action, "k", c.object)
				when(f)
				got := f.dispatch(item)
				require.Nil(t, f.between)
				require.Equal(t, c.done, got[0].Outcome == lifecycle.Done, "%s: %v", name, got)
				require.Equal(t, c.after, f.show("main@"), name)
				if c.done || name == "before the move" {
					continue
				}
				require.GreaterOrEqual(t, f.moves, 2, "it was built again")
				require.Equal(t, lifecycle.NoopResolved, got[0].Outcome)
			}
		})
	}
}

// remove removes a version for good.
func (f *fixture) remove(key, name string) {
	f.tick()
	_, err := f.catalog.Delete(f.Context(), f.in(), key, catalog.DeleteParams{VersionID: f.item(noncurrent, key, name).VersionID})
	require.NoError(f, err)
}

func TestALockBarsTheRemovalButNotAMarker(t *testing.T) {
	f := newFixture(t, enabled)
	require.NoError(t, f.catalog.SetObjectLock(t.Context(), bucket, catalog.ObjectLockConfig{Enabled: true}))
	f.put("held", "a", "b")
	f.put("kept", "a", "b")
	f.commit()
	until := f.clock.Add(time.Hour)
	held, kept := f.item(noncurrent, "held", "a"), f.item(noncurrent, "kept", "a")
	marked := f.item(days, "held", "b")
	require.NoError(t, f.catalog.PutLegalHold(t.Context(), f.in(), "held", held.VersionID, true))
	require.NoError(t, f.catalog.PutLegalHold(t.Context(), f.in(), "held", marked.VersionID, true))
	require.NoError(t, f.catalog.PutRetention(t.Context(), f.in(), "kept", kept.VersionID, catalog.Retention{Mode: catalog.LockGovernance, Until: until}, false))
	f.commit()
	require.Equal(t, []dispatch.Result{{Outcome: lifecycle.SkippedObjectLock}, {Outcome: lifecycle.SkippedObjectLock, Until: until}, {Outcome: lifecycle.Done}}, f.dispatch(held, kept, marked))
	require.Equal(t, "held: - | b a kept: b | a", f.show("main@"))

	f.clock = until
	require.Equal(t, lifecycle.Done, f.dispatch(kept)[0].Outcome)
	require.NoError(t, f.catalog.PutLegalHold(t.Context(), f.in(), "held", held.VersionID, false))
	f.commit()
	require.Equal(t, lifecycle.Done, f.dispatch(held)[0].Outcome)
	require.Equal(t, "held: - | b kept: b", f.show("main@"))
}

func TestALockOfWhatANullMarkerWouldReplaceBarsIt(t *testing.T) {
	f := newFixture(t, off)
	until := f.clock.Add(time.Hour)
	f.put("aside", "a")
	f.version(enabled)
	f.put("aside", "b")
	f.version(suspended)
	f.put("current", "a")
	for _, e := range f.entries("main") { // a bucket with locks cannot be suspended, but what it holds can come from one that has them
		if e.object.PhysicalAddress == "a" {
			e.object.Lock = catalog.Lock{Mode: catalog.LockCompliance, RetainUntil: until}
			v, err := catalog.Encode(e.object)
			require.NoError(t, err)
			require.NoError(t, f.Set(t.Context(), bucket, "main", e.key, v))
		}
	}
	f.commit()
	barred := dispatch.Result{Outcome: lifecycle.SkippedObjectLock, Until: until}
	require.Equal(t, []dispatch.Result{barred, barred}, f.dispatch(f.item(days, "aside", "b"), f.item(days, "current", "a")))
	require.Equal(t, "aside: b | ~a current: ~a", f.show("main@"))
}

func TestAVersionInABucketWithoutVersionsIsKept(t *testing.T) {
	f := newFixture(t, off)
	id := fmt.Sprintf("7%023x", 1)
	v, err := catalog.Encode(catalog.Object{PhysicalAddress: "a", VersionID: id, Lock: catalog.Lock{LegalHold: true}})
	require.NoError(t, err)
	require.NoError(t, f.Set(t.Context(), bucket, "main", graveler.Key("k"), v))
	f.commit()
	require.Equal(t, lifecycle.Done, f.dispatch(f.item(days, "k", "a"))[0].Outcome)
	require.Equal(t, "k: ~- | a", f.show("main@"))
}

func TestItemsOfOneKeyAreJudgedByWhatThoseBeforeLeave(t *testing.T) {
	f := newFixture(t, enabled)
	f.put("k", "a", "b", "c", "d", "e")
	f.commit()
	// Of a, b, c, d, two are to stay; c goes by its age, so that b has one newer than itself, and stays.
	got := f.dispatch(f.item(keep(2), "k", "a"), f.item(keep(2), "k", "b"), f.item(noncurrent, "k", "c"), f.item(days, "k", "e"), f.item(date, "k", "e"))
	require.Equal(t, []lifecycle.Outcome{lifecycle.Done, lifecycle.NoopResolved, lifecycle.Done, lifecycle.Done, lifecycle.NoopResolved}, outcomes(got))
	require.Equal(t, "k: - | e d b", f.show("main@"))
}

func TestAMarkerGoesTogetherWithTheLastVersionUnderIt(t *testing.T) {
	f := newFixture(t, enabled)
	f.put("k", "a", "b", "-")
	f.put("l", "a", "b", "-")
	f.commit()
	got := f.dispatch(f.item(soleMarker, "k", "-"), f.item(noncurrent, "k", "a"), f.item(noncurrent, "k", "b"), f.item(soleMarker, "l", "-"), f.item(noncurrent, "l", "a"))
	require.Equal(t, []lifecycle.Outcome{lifecycle.Done, lifecycle.Done, lifecycle.Done, lifecycle.NoopResolved, lifecycle.Done}, outcomes(got))
	require.Equal(t, "l: - | b", f.show("main@"))
}

func TestHalfOfAPutIsNoVersion(t *testing.T) {
	f := newFixture(t, enabled)
	f.put("k", "a", "b")
	f.put("m", "-")
	half := func(name string) dispatch.Item {
		for _, e := range f.entries("main") {
			if e.object.PhysicalAddress != name && (!e.object.DeleteMarker || name != "-") {
				continue
			}
			key := graveler.Key("\x00v" + e.place.Key + "\x00\x01v" + e.object.VersionID)
			require.NoError(t, f.Set(t.Context(), bucket, "main", key, e.value))
			return dispatch.Item{Action: noncurrent, Key: key, LogicalKey: e.place.Key, VersionID: e.object.VersionID, ContentIdentity: e.object.ContentIdentity()}
		}
		return dispatch.Item{}
	}
	b, marker := half("b"), half("-")
	f.commit()
	require.Equal(t, []lifecycle.Outcome{lifecycle.NoopResolved, lifecycle.NoopResolved, lifecycle.NoopResolved}, outcomes(f.dispatch(b, marker, f.item(keep(1), "k", "a"))))
	require.Equal(t, "k: b | b a m: - | -", f.show("main@"))
	require.Equal(t, lifecycle.Done, f.dispatch(f.item(soleMarker, "m", "-"))[0].Outcome, "beside its half it is alone")
	require.Equal(t, "k: b | b a", f.show("main@"))
}

func TestAMarkerBesideAnObjectIsNotCurrent(t *testing.T) {
	f := newFixture(t, enabled)
	f.put("k", "-")
	marker := f.entries("main")[0]
	f.put("k", "a")
	f.remove0("k")
	f.put("k", "b")
	require.NoError(t, f.Set(t.Context(), bucket, "main", marker.key, marker.value))
	f.commit()
	require.Equal(t, []lifecycle.Outcome{lifecycle.NoopResolved, lifecycle.NoopResolved}, outcomes(f.dispatch(f.item(days, "k", "-"), f.item(soleMarker, "k", "-"))))
	item := f.item(noncurrent, "k", "-")
	item.Key = marker.key
	require.Equal(t, lifecycle.Done, f.dispatch(item)[0].Outcome)
	require.Equal(t, "k: b", f.show("main@"))
}

// remove0 removes every entry of a key.
func (f *fixture) remove0(key string) {
	for _, e := range f.entries("main") {
		if e.place.Key == key {
			require.NoError(f, f.Delete(f.Context(), bucket, "main", e.key))
		}
	}
}

func TestAllBatchesAreOneMoveAndWhatIsUncommittedStays(t *testing.T) {
	f := newFixture(t, off)
	for n := range 9 {
		f.put(fmt.Sprint("k", n), "a")
	}
	f.commit()
	head := f.head()
	f.put("k8", "uncommitted")
	f.put("new", "uncommitted")
	var batches []dispatch.Batch
	for n := range 3 {
		batches = append(batches, dispatch.Batch{Shard: n, Items: []dispatch.Item{f.item(days, fmt.Sprint("k", n), "a"), f.item(days, fmt.Sprint("k", n+6), "a")}})
	}
	results, err := f.mover.Dispatch(t.Context(), f.source(), batches)
	require.NoError(t, err)
	for _, r := range results {
		require.Equal(t, []lifecycle.Outcome{lifecycle.Done, lifecycle.Done}, outcomes(r))
	}
	require.Equal(t, "k3: a k4: a k5: a", f.show("main@"))
	require.Equal(t, "k3: a k4: a k5: a k8: uncommitted new: uncommitted", f.show("main"))
	c, err := f.ResolveRef(t.Context(), bucket, "main")
	require.NoError(t, err)
	require.Equal(t, []graveler.CommitID{head}, c.Parents)
	var last graveler.Move
	for m, err := range f.BranchLog(t.Context(), bucket, "main", 0) {
		require.NoError(t, err)
		last = m
	}
	require.Equal(t, graveler.OpLifecycle, last.Op)
	require.Equal(t, "lifecycle", last.Actor)
}

func TestABranchThatCannotBeMovedBlocks(t *testing.T) {
	refused := fmt.Errorf("not on a Sunday")
	for name, c := range map[string]struct {
		block, free func(f *fixture)
		reason      error
	}{
		"read-only": {func(f *fixture) { require.NoError(f, f.SetReadOnly(f.Context(), bucket, true)) }, func(f *fixture) { require.NoError(f, f.SetReadOnly(f.Context(), bucket, false)) }, graveler.ErrReadOnly},
		"protected": {func(f *fixture) { f.protect(graveler.ActionMove) }, func(f *fixture) { f.protect(0) }, graveler.ErrProtected},
		"refused":   {func(f *fixture) { f.refuse = refused }, func(f *fixture) { f.refuse = nil }, refused},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, off)
			f.put("k", "a")
			f.put("l", "a")
			f.commit()
			k, l := f.item(days, "k", "a"), f.item(days, "l", "a")
			l.ContentIdentity = []byte("another")
			c.block(f)
			got := f.dispatch(k, l)
			require.Equal(t, lifecycle.Blocked, got[0].Outcome)
			require.Contains(t, got[0].Reason, c.reason.Error())
			require.NotEqual(t, lifecycle.Done, got[1].Outcome)
			require.Equal(t, "k: a l: a", f.show("main@"))
			c.free(f)
			require.Equal(t, []lifecycle.Outcome{lifecycle.Done, lifecycle.NoopResolved}, outcomes(f.dispatch(k, l)))
		})
	}
}

func (f *fixture) protect(forbid graveler.Actions) {
	require.NoError(f, f.ProtectBranches(f.Context(), bucket, func([]graveler.ProtectionRule) ([]graveler.ProtectionRule, error) {
		if forbid == 0 {
			return nil, nil
		}
		return []graveler.ProtectionRule{{Pattern: "main", Forbid: forbid}}, nil
	}))
}

func TestOfABranchThatIsGoneNothingIsLeftToDo(t *testing.T) {
	f := newFixture(t, off)
	f.put("k", "a")
	f.commit()
	item := f.item(days, "k", "a")
	_, err := f.CreateBranch(t.Context(), bucket, "dev", "main")
	require.NoError(t, err)
	dev, err := f.GetBranch(t.Context(), bucket, "dev")
	require.NoError(t, err)
	source := dispatch.Source{Repository: bucket, Branch: "dev", UID: dev.UID}
	require.NoError(t, f.DeleteBranch(t.Context(), bucket, "dev", true))
	noop := func() {
		t.Helper()
		results, err := f.mover.Dispatch(t.Context(), source, []dispatch.Batch{{Items: []dispatch.Item{item}}})
		require.NoError(t, err)
		require.Equal(t, lifecycle.NoopResolved, results[0][0].Outcome)
	}
	noop()
	_, err = f.CreateBranch(t.Context(), bucket, "dev", "main")
	require.NoError(t, err)
	noop()
	require.Equal(t, "k: a", f.show("dev"))
	source.Repository = "gone"
	noop()
}

func TestASettingThatChangesMeanwhileCounts(t *testing.T) {
	f := newFixture(t, off)
	f.put("k", "a")
	f.commit()
	item := f.item(days, "k", "a")
	f.between = func() { f.version(enabled) }
	require.Equal(t, lifecycle.Done, f.dispatch(item)[0].Outcome)
	require.Equal(t, "k: - | ~a", f.show("main@"))
}

func TestWhatCannotBeUnderstoodBlocksNothingElse(t *testing.T) {
	f := newFixture(t, enabled)
	f.put("good", "a")
	f.put("bad", "a", "b")
	f.commit()
	good, bad, aside := f.item(days, "good", "a"), f.item(days, "bad", "b"), f.item(noncurrent, "bad", "a")
	require.NoError(t, f.Set(t.Context(), bucket, "main", graveler.Key("bad"), graveler.Value{Identity: []byte("i"), Data: []byte("\xff")}))
	_, err := f.Commit(t.Context(), bucket, "main", graveler.CommitParams{Committer: "user"})
	require.NoError(t, err)
	foreign := good
	foreign.Key = graveler.Key("\x00x")
	got := f.dispatch(foreign, aside, good, bad)
	require.Equal(t, []lifecycle.Outcome{lifecycle.Blocked, lifecycle.Blocked, lifecycle.Done, lifecycle.Blocked}, outcomes(got))
	require.Contains(t, got[3].Reason, `entry "bad"`)
	require.Contains(t, got[0].Reason, `\x00x`)
}
