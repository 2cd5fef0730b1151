// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// aged is a store whose clocks a test moves, those of the files too.
type aged struct {
	*fixture
	t   *testing.T
	now time.Time
}

const day = 24 * time.Hour

func newAged(t *testing.T, rules ...graveler.RetentionRule) *aged {
	a := &aged{t: t, now: time.Now().UTC()}
	clock := func() time.Time { return a.now }
	a.fixture = newFixture(t, func(c *graveler.Config) { c.Now = clock })
	a.trees.Now = clock
	require.NoError(t, a.SetRetention(t.Context(), "lake", rules))
	return a
}

// commit commits one value on a branch, after an hour.
func (a *aged) commit(branch graveler.BranchID, k, text string) graveler.CommitID {
	a.now = a.now.Add(time.Hour)
	require.NoError(a.t, a.Set(a.t.Context(), "lake", branch, key(k), value(text)))
	res, err := a.Commit(a.t.Context(), "lake", branch, graveler.CommitParams{})
	require.NoError(a.t, err)
	return res.Commit.ID
}

func (a *aged) retain(p graveler.RetainParams) graveler.RetainReport {
	report, err := a.Retain(a.t.Context(), "lake", p)
	require.NoError(a.t, err)
	return report
}

// settle runs retention day by day until nothing is left to be done.
func (a *aged) settle() {
	for range 4 {
		a.retain(graveler.RetainParams{})
		a.now = a.now.Add(day + time.Minute)
	}
}

// get reads a key at a ref, or says that it has expired.
func (a *aged) get(ref, k string) string {
	v, err := a.Graveler.Get(context.Background(), "lake", ref, key(k))
	if err != nil {
		require.ErrorIs(a.t, err, graveler.ErrExpired)
		return "expired"
	}
	return string(v.Data)
}

func TestRetentionTakesTreesInSteps(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 7})
	first, second := a.commit("main", "a", "1"), a.commit("main", "a", "2")
	require.Zero(t, a.retain(graveler.RetainParams{}).Pending, "all is younger than the rule")

	a.now = a.now.Add(8 * day)
	third := a.commit("main", "a", "3")
	report := a.retain(graveler.RetainParams{})
	require.Equal(t, 2, report.Pending, "the repository's first commit and the first; the second is what the third followed")
	require.Positive(t, report.MovesRemoved)
	require.Equal(t, "1", a.get(string(first), "a"), "it is there while it is pending")

	a.now = a.now.Add(day)
	require.Equal(t, 2, a.retain(graveler.RetainParams{}).Expiring)
	require.Equal(t, "expired", a.get(string(first), "a"))
	require.Equal(t, "2", a.get(string(second), "a"))
	require.Equal(t, "3", a.get(string(third), "a"))

	var released []string
	collect := graveler.RetainParams{Release: func(e graveler.Entry) error {
		released = append(released, string(e.Value.Data))
		return nil
	}}
	report = a.retain(collect)
	require.Zero(t, report.FilesRemoved)
	require.Empty(t, released, "somebody may still be reading")
	a.now = a.now.Add(day + time.Minute)
	report = a.retain(collect)
	require.Equal(t, 1, report.FilesRemoved)
	require.Equal(t, []string{"1"}, released)
	require.Zero(t, a.retain(collect).FilesRemoved)
	log := 0
	for _, err := range a.Log(t.Context(), "lake", "main", graveler.LogOptions{}) {
		require.NoError(t, err)
		log++
	}
	require.Equal(t, 4, log, "the history stays whole")
}

func TestRetentionKeepsWhatHasANameOrIsMergedFrom(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "forever", Days: 0}, graveler.RetentionRule{Pattern: "*", Days: 7})
	ctx := t.Context()
	old := a.commit("main", "a", "old")
	_, err := a.CreateBranch(ctx, "lake", "forever", "main")
	require.NoError(t, err)
	tagged := a.commit("main", "a", "tagged")
	_, err = a.CreateTag(ctx, "lake", "v1", "main")
	require.NoError(t, err)
	pinned := a.commit("main", "a", "pinned")
	require.NoError(t, a.PutPin(ctx, "lake", "me", graveler.PinParams{Commits: []graveler.CommitID{pinned}}))
	parting := a.commit("main", "a", "parting")
	_, err = a.CreateBranch(ctx, "lake", "side", "main")
	require.NoError(t, err)
	a.commit("side", "b", "side")
	unnamed := a.commit("main", "c", "unnamed")
	a.commit("main", "c", "next")
	for range 3 {
		a.now = a.now.Add(20 * day)
		a.commit("main", "d", a.now.String())
	}
	a.settle()
	require.Equal(t, "old", a.get(string(old), "a"))
	require.Equal(t, "tagged", a.get(string(tagged), "a"))
	require.Equal(t, "pinned", a.get(string(pinned), "a"))
	require.Equal(t, "parting", a.get(string(parting), "a"))
	require.Equal(t, "expired", a.get(string(unnamed), "c"))
	_, err = a.Merge(ctx, "lake", "side", "main", graveler.MergeParams{})
	require.NoError(t, err)

	require.NoError(t, a.RemovePin(ctx, "lake", "me"))
	a.settle()
	require.Equal(t, "expired", a.get(string(pinned), "a"))
	_, err = a.CreateTag(ctx, "lake", "late", string(pinned))
	require.ErrorIs(t, err, graveler.ErrExpired)
	_, err = a.CreateBranch(ctx, "lake", "late", string(pinned))
	require.ErrorIs(t, err, graveler.ErrExpired)
	_, err = a.Reset(ctx, "lake", "main", string(pinned), graveler.ResetParams{})
	require.ErrorIs(t, err, graveler.ErrExpired)
	require.ErrorIs(t, a.PutPin(ctx, "lake", "me", graveler.PinParams{Commits: []graveler.CommitID{pinned}}), graveler.ErrExpired)
}

func TestWhoNamesAPendingCommitKeepsIt(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	first := a.commit("main", "a", "1")
	a.commit("main", "a", "2")
	a.now = a.now.Add(3 * day)
	a.commit("main", "a", "3")
	require.Positive(t, a.retain(graveler.RetainParams{}).Pending)
	_, err := a.CreateTag(t.Context(), "lake", "v1", string(first))
	require.NoError(t, err)
	a.settle()
	require.Equal(t, "1", a.get("v1", "a"))
}

func TestRetentionEndsLogs(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 7})
	ctx := t.Context()
	_, err := a.CreateBranch(ctx, "lake", "gone", "main")
	require.NoError(t, err)
	a.commit("gone", "a", "gone")
	b, err := a.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	require.NoError(t, a.DeleteBranch(ctx, "lake", "gone", true))
	a.commit("main", "a", "1")
	pinnedFrom := a.now.UnixNano()
	require.NoError(t, a.PutPin(ctx, "lake", "me", graveler.PinParams{Logs: map[string]int64{b.UID: pinnedFrom}}))
	a.commit("main", "a", "2")
	a.now = a.now.Add(6 * day)
	a.settle()
	names := 0
	for log, err := range a.LogNames(ctx, "lake", "") {
		require.NoError(t, err)
		require.Equal(t, graveler.BranchID("main"), log.Branch)
		names++
	}
	require.Equal(t, 1, names, "nothing is left of the deleted branch")
	_, err = a.RestoreBranch(ctx, "lake", "gone", "")
	require.ErrorIs(t, err, graveler.ErrBranchNotFound)

	log := graveler.LogName{Branch: "main", UID: b.UID}
	var times []int64
	for m, err := range a.MoveLog(ctx, "lake", log, pinnedFrom-1, a.now.UnixNano()) {
		require.NoError(t, err)
		times = append(times, m.Time)
	}
	require.Len(t, times, 2, "what is pinned stays")
	_, err = a.HeadAt(ctx, "lake", log, pinnedFrom-2)
	require.ErrorIs(t, err, graveler.ErrLogTruncated)
	require.ErrorIs(t, a.PutPin(ctx, "lake", "you", graveler.PinParams{Logs: map[string]int64{b.UID: pinnedFrom - 1}}), graveler.ErrLogTruncated)

	require.NoError(t, a.RemovePin(ctx, "lake", "me"))
	require.NoError(t, a.RemovePin(ctx, "lake", "you"))
	a.settle()
	_, err = a.HeadAt(ctx, "lake", log, pinnedFrom)
	require.ErrorIs(t, err, graveler.ErrLogTruncated)
	head, err := a.HeadAt(ctx, "lake", log, a.now.UnixNano())
	require.NoError(t, err)
	require.NotEmpty(t, head.Tree)
}

// Moves that have gone do not come back by a pin. Only the last one of a branch that lives is still there, in the branch's
// record, and is kept with what it names.
func TestAPinThatComesLateKeepsOnlyTheLastMoveOfABranchThatLives(t *testing.T) {
	for _, c := range []struct {
		name string
		log  int // of the two that branches of the name had
		want string
	}{{"deleted", 0, "expired"}, {"live", 1, "1"}} {
		t.Run(c.name, func(t *testing.T) {
			a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
			ctx, from := t.Context(), a.now.UnixNano()
			var uids [2]string
			b, err := a.CreateBranch(ctx, "lake", "dev", "main")
			require.NoError(t, err)
			uids[0] = b.UID
			left := a.commit("dev", "a", "1") // the deletion of the first names it, and the last move of the second
			require.NoError(t, a.DeleteBranch(ctx, "lake", "dev", true))
			b, err = a.RestoreBranch(ctx, "lake", "dev", "")
			require.NoError(t, err)
			uids[1] = b.UID
			a.commit("dev", "a", "2")
			a.now = a.now.Add(day + time.Hour)
			require.Equal(t, 1, a.retain(graveler.RetainParams{}).Pending)
			require.ErrorIs(t, a.PutPin(ctx, "lake", "me", graveler.PinParams{Logs: map[string]int64{uids[c.log]: from}}), graveler.ErrLogTruncated)
			a.settle()
			require.Equal(t, c.want, a.get(string(left), "a"))
		})
	}
}

func TestDryRunTellsWhatGoesInTheEnd(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	ctx := t.Context()
	for _, text := range []string{"copied", "staged", "alone"} {
		a.commit("main", "a", text)
	}
	require.NoError(t, a.Set(ctx, "lake", "main", key("copy"), value("copied")))
	a.commit("main", "a", "new")
	a.now = a.now.Add(5 * day)
	a.commit("main", "b", "newer")
	require.NoError(t, a.Set(ctx, "lake", "main", key("staged"), value("staged")))
	var released []string
	p := graveler.RetainParams{DryRun: true, Release: func(e graveler.Entry) error {
		released = append(released, string(e.Value.Data))
		return nil
	}}
	dry := a.retain(p)
	require.Equal(t, []string{"alone"}, released)
	require.Positive(t, dry.MovesRemoved)

	p.DryRun, released = false, nil
	var wet graveler.RetainReport
	for range 4 {
		report := a.retain(p)
		wet.MovesRemoved += report.MovesRemoved
		wet.FilesRemoved += report.FilesRemoved
		wet.Expiring += report.Expiring
		a.now = a.now.Add(day + time.Minute)
		if wet.FilesRemoved > 0 {
			break
		}
	}
	require.Equal(t, []string{"alone"}, slices.Compact(released))
	require.Equal(t, dry.FilesRemoved, wet.FilesRemoved)
	require.GreaterOrEqual(t, wet.MovesRemoved, dry.MovesRemoved, "time goes on")
	require.GreaterOrEqual(t, wet.Expiring, dry.Pending)
}

func TestRetentionRulesAreChecked(t *testing.T) {
	a := newAged(t)
	ctx := t.Context()
	for _, bad := range []graveler.RetentionRule{{Pattern: "a b", Days: 1}, {Pattern: "", Days: 1}, {Pattern: "*", Days: -1}, {Pattern: "*", Days: graveler.MaxRetentionDays + 1}} {
		require.ErrorIs(t, a.SetRetention(ctx, "lake", []graveler.RetentionRule{bad}), graveler.ErrInvalidValue, "%v", bad)
	}
	rules := []graveler.RetentionRule{{Pattern: "release/*", Days: 0}, {Pattern: "*", Days: 30}}
	require.NoError(t, a.SetRetention(ctx, "lake", rules))
	got, err := a.Retention(ctx, "lake")
	require.NoError(t, err)
	require.Equal(t, rules, got)
	_, err = a.PutSetting(ctx, "lake", "retention", []byte("{}"), "")
	require.ErrorIs(t, err, graveler.ErrInvalidName)
}
