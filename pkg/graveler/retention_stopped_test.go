// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// betweenRefs does something once before a call of the store takes place.
type betweenRefs struct {
	graveler.Refs
	before map[string]func()
}

func (b *betweenRefs) do(call string) {
	if do := b.before[call]; do != nil {
		delete(b.before, call)
		do()
	}
}

func (b *betweenRefs) CreateTag(ctx context.Context, r *graveler.Repository, t *graveler.Tag) error {
	b.do("CreateTag")
	return b.Refs.CreateTag(ctx, r, t)
}

func (b *betweenRefs) ScanExpirations(ctx context.Context, r *graveler.Repository) iter.Seq2[graveler.Expiration, error] {
	b.do("ScanExpirations")
	return b.Refs.ScanExpirations(ctx, r)
}

// ScanCommits lets something happen when the first commits have been read.
func (b *betweenRefs) ScanCommits(ctx context.Context, r *graveler.Repository, from graveler.CommitID) iter.Seq2[*graveler.Commit, error] {
	return func(yield func(*graveler.Commit, error) bool) {
		for c, err := range b.Refs.ScanCommits(ctx, r, from) {
			if !yield(c, err) {
				return
			}
			b.do("ScanCommits")
		}
	}
}

// betweenTrees does something once after a tree was built.
type betweenTrees struct {
	graveler.Trees
	refs *betweenRefs
}

func (b betweenTrees) Apply(ctx context.Context, ns string, tree graveler.MetaRangeID, changes graveler.Iterator[graveler.Entry]) (graveler.MetaRangeID, error) {
	built, err := b.Trees.Apply(ctx, ns, tree, changes)
	b.refs.do("Apply")
	return built, err
}

// slow is another process on the same store, which is held up at calls of its own.
func (a *aged) slow() (*graveler.Graveler, map[string]func()) {
	c := a.config
	refs := &betweenRefs{Refs: c.Refs, before: map[string]func(){}}
	c.Refs, c.Trees = refs, betweenTrees{c.Trees, refs}
	g, err := graveler.New(c)
	require.NoError(a.t, err)
	return g, refs.before
}

func TestATagThatComesDaysLateIsNone(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	first := a.commit("main", "a", "1")
	a.commit("main", "a", "2")
	a.now = a.now.Add(3 * day)
	a.commit("main", "a", "3")
	slow, before := a.slow()
	before["CreateTag"] = a.settle
	_, err := slow.CreateTag(t.Context(), "lake", "v1", string(first))
	require.ErrorIs(t, err, graveler.ErrExpired)
	_, err = a.GetTag(t.Context(), "lake", "v1")
	require.ErrorIs(t, err, graveler.ErrTagNotFound)
}

// The machine sleeps for days after a commit was built, which its monotonic clock does not see. What retention removed meanwhile is not published.
func TestACommitThatComesDaysLateIsBuiltAgain(t *testing.T) {
	a := newAged(t)
	ctx := t.Context()
	a.commit("main", "a", "1")
	slow, after := a.slow()
	after["Apply"] = func() {
		a.now = a.now.Add(2 * day)
		require.Positive(t, a.retain(graveler.RetainParams{}).FilesRemoved)
	}
	require.NoError(t, slow.Set(ctx, "lake", "main", key("b"), value("2")))
	_, err := slow.Commit(ctx, "lake", "main", graveler.CommitParams{})
	require.NoError(t, err)
	require.Equal(t, []string{"a=1", "b=2"}, show(t, a.Graveler, "main@", graveler.ListOptions{}))
}

// A run that was stopped for days marks a commit that another run could then take at once, from under one who has just looked.
func TestAMarkIsNotOlderThanItsRecord(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	ctx := t.Context()
	first := a.commit("main", "a", "1")
	a.commit("main", "a", "2")
	a.now = a.now.Add(3 * day)
	a.commit("main", "a", "3")
	stopped, before := a.slow()
	before["ScanCommits"] = func() { a.now = a.now.Add(2 * day) }
	_, err := stopped.Retain(ctx, "lake", graveler.RetainParams{})
	require.NoError(t, err)
	require.Zero(t, a.retain(graveler.RetainParams{}).Expiring, "they have been pending for no time")
	require.Equal(t, "1", a.get(string(first), "a"))

	// So it is with the time at which a commit expired: readers may have looked until then.
	a.now = a.now.Add(day)
	before["ScanCommits"] = func() { a.now = a.now.Add(2 * day) }
	report, err := stopped.Retain(ctx, "lake", graveler.RetainParams{})
	require.NoError(t, err)
	require.Positive(t, report.Expiring)
	require.Zero(t, a.retain(graveler.RetainParams{}).FilesRemoved)
}

// A commit that is due is named after a run has looked at the names, and before it takes the tree.
func TestWhoNamesACommitBesideARunKeepsIt(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	ctx := t.Context()
	first := a.commit("main", "a", "1")
	a.commit("main", "a", "2")
	a.now = a.now.Add(3 * day)
	a.commit("main", "a", "3")
	require.Positive(t, a.retain(graveler.RetainParams{}).Pending)
	a.now = a.now.Add(day + time.Minute)
	slow, before := a.slow()
	before["ScanCommits"] = func() {
		_, err := a.CreateTag(ctx, "lake", "v1", string(first))
		require.NoError(t, err)
	}
	_, err := slow.Retain(ctx, "lake", graveler.RetainParams{})
	require.NoError(t, err)
	require.Equal(t, "1", a.get("v1", "a"))
}

func TestCommitsThatAreMadeWhileTheyAreReadAreNotMissed(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	for seed := range 40 { // IDs are random: in some of these the scan sees a child and misses its parent
		a.commit("main", "a", time.Duration(seed).String())
		other, before := a.slow()
		before["ScanCommits"] = func() {
			a.commit("main", "b", time.Duration(seed).String())
			a.commit("main", "c", time.Duration(seed).String())
		}
		_, err := other.Retain(t.Context(), "lake", graveler.RetainParams{})
		require.NoError(t, err)
	}
}

// A base that was replaced after a run has read it goes with another run, as soon as its files are old. To the first that is no damage.
func TestABaseThatAnotherRunHasRemovedIsNoDamage(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	ctx := t.Context()
	a.commit("main", "a", "1")
	require.NoError(t, a.Set(ctx, "lake", "main", key("u"), value("base")))
	require.NoError(t, a.Compact(ctx, "lake", "main"))
	a.now = a.now.Add(3 * day)
	slow, before := a.slow()
	before["ScanCommits"] = func() {
		require.NoError(t, a.ResetStaged(ctx, "lake", "main", nil))
		require.Positive(t, a.retain(graveler.RetainParams{}).FilesRemoved)
	}
	_, err := slow.Retain(ctx, "lake", graveler.RetainParams{})
	require.NoError(t, err)
}

func TestNothingIsReleasedOfARepositoryThatIsDeletedMeanwhile(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	a.commit("main", "a", "1")
	a.commit("main", "a", "2")
	a.now = a.now.Add(3 * day)
	a.commit("main", "a", "3")
	slow, before := a.slow()
	before["ScanExpirations"] = func() { require.NoError(t, a.DeleteRepository(t.Context(), "lake")) }
	_, err := slow.Retain(t.Context(), "lake", graveler.RetainParams{Release: func(e graveler.Entry) error {
		t.Errorf("released %s", e.Value.Data)
		return nil
	}})
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
}

// What is restored can be merged as before.
func TestARestoredBranchCanBeMerged(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "dev", Days: 30}, graveler.RetentionRule{Pattern: "*", Days: 1})
	ctx := t.Context()
	a.commit("main", "a", "1")
	_, err := a.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	a.now = a.now.Add(40 * day)
	a.commit("main", "a", "2")
	a.commit("main", "a", "3")
	for _, text := range []string{"4", "5"} {
		a.commit("dev", "b", text)
		a.now = a.now.Add(40 * day)
	}
	require.NoError(t, a.DeleteBranch(ctx, "lake", "dev", true))
	a.settle()
	_, err = a.RestoreBranch(ctx, "lake", "dev", "")
	require.NoError(t, err)
	_, err = a.Merge(ctx, "lake", "dev", "main", graveler.MergeParams{})
	require.NoError(t, err)
}

// A commit whose changes another one took along, so long ago that the log does not tell any more, does not say that there were none.
func TestACommitThatTheLogForgotIsNotEmpty(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	ctx := t.Context()
	slow, after := a.slow()
	after["Apply"] = func() {
		a.commit("main", "b", "1") // takes "a" along
		a.now = a.now.Add(3 * day)
		require.NoError(t, a.Set(ctx, "lake", "main", key("b"), value("2")))
		_, err := a.Commit(ctx, "lake", "main", graveler.CommitParams{Prefixes: []graveler.Key{key("b")}}) // which does not say through what
		require.NoError(t, err)
		a.retain(graveler.RetainParams{})
	}
	require.NoError(t, slow.Set(ctx, "lake", "main", key("a"), value("1")))
	_, err := slow.Commit(ctx, "lake", "main", graveler.CommitParams{})
	require.ErrorIs(t, err, graveler.ErrLogTruncated)
	require.Equal(t, []string{"a=1", "b=2"}, show(t, a.Graveler, "main@", graveler.ListOptions{}))
}

// An import whose tree took too long makes it again from what it was given; what was removed meanwhile is not published.
func TestAnImportThatTakesTooLongIsMadeAgain(t *testing.T) {
	a := newAged(t)
	slow, after := a.slow()
	after["Apply"] = func() {
		a.now = a.now.Add(2 * day)
		require.Positive(t, a.retain(graveler.RetainParams{}).FilesRemoved)
	}
	v := value("1")
	_, err := slow.Import(t.Context(), "lake", "main", one(graveler.Entry{Key: key("a"), Value: &v}), graveler.ImportParams{})
	require.NoError(t, err)
	require.Equal(t, []string{"a=1"}, show(t, a.Graveler, "main@", graveler.ListOptions{}))
}

// The move that made the head was removed; the head itself is known all the same.
func TestAHeadIsKnownFromTheStartOfTheLog(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 2})
	ctx := t.Context()
	first := a.commit("main", "a", "1")
	a.now = a.now.Add(5 * day)
	at := a.now.Add(-day).UnixNano()
	a.commit("main", "a", "2")
	a.retain(graveler.RetainParams{})
	c, err := a.ResetToMove(ctx, "lake", "main", at, graveler.ResetParams{})
	require.NoError(t, err)
	require.Equal(t, first, c.ID)
	_, err = a.ResetToMove(ctx, "lake", "main", at-int64(2*day), graveler.ResetParams{})
	require.ErrorIs(t, err, graveler.ErrNotFound)
}
