// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

func TestRevertUndoesOneCommit(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	f.set(t, "b", "1")
	f.commit(t, "base")
	f.set(t, "a", "2")
	require.NoError(t, f.Delete(ctx, "lake", "main", key("b")))
	f.set(t, "c", "2")
	bad := f.commit(t, "bad")
	f.set(t, "d", "3")
	f.commit(t, "later")

	c, err := f.Revert(ctx, "lake", "main", string(bad.ID), graveler.PickParams{})
	require.NoError(t, err)
	require.Equal(t, []string{"a=1", "b=1", "d=3"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
	require.Equal(t, `Revert "bad"`, c.Message)
	require.Equal(t, string(bad.ID), c.Metadata[graveler.MetadataReverts])
	_, err = f.Revert(ctx, "lake", "main", string(bad.ID), graveler.PickParams{})
	require.ErrorIs(t, err, graveler.ErrNoChanges)

	c, err = f.CherryPick(ctx, "lake", "main", string(bad.ID), graveler.PickParams{})
	require.NoError(t, err)
	require.Equal(t, "bad", c.Message)
	require.Equal(t, string(bad.ID), c.Metadata[graveler.MetadataPickedFrom])
	require.Equal(t, []string{"a=2", "c=2", "d=3"}, show(t, f.Graveler, "main", graveler.ListOptions{}))

	f.set(t, "a", "4")
	f.commit(t, "changed since")
	_, err = f.Revert(ctx, "lake", "main", string(bad.ID), graveler.PickParams{})
	require.ErrorIs(t, err, graveler.ErrConflict)
	_, err = f.Revert(ctx, "lake", "main", string(bad.ID), graveler.PickParams{Strategy: graveler.DestWins})
	require.NoError(t, err)
	require.Equal(t, []string{"a=4", "b=1", "d=3"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
}

func TestConflictsOfRevertAndCherryPickAreAllListed(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	const entries = 15
	setAll := func(text string) graveler.Commit {
		for i := range entries {
			f.set(t, fmt.Sprintf("k%02d", i), text)
		}
		return f.commit(t, text)
	}
	setAll("1")
	bad := setAll("2")
	setAll("3")
	for name, c := range map[string]struct {
		do         func(context.Context, graveler.RepositoryID, graveler.BranchID, string, graveler.PickParams) (graveler.Commit, error)
		conflicts  func(context.Context, graveler.RepositoryID, graveler.BranchID, string, graveler.PickParams) iter.Seq2[graveler.Conflict, error]
		base, take string
	}{
		"revert":      {f.Revert, f.RevertConflicts, "2", "1"},
		"cherry-pick": {f.CherryPick, f.CherryPickConflicts, "1", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.do(ctx, "lake", "main", string(bad.ID), graveler.PickParams{})
			var conflict *graveler.ConflictError
			require.True(t, errors.As(err, &conflict), "%v", err)
			all := collect(t, c.conflicts(ctx, "lake", "main", string(bad.ID), graveler.PickParams{}))
			require.Len(t, all, entries)
			require.EqualValues(t, entries, conflict.Count)
			require.Equal(t, conflict.First, all[:len(conflict.First)])
			for _, x := range all {
				require.Equal(t, []string{c.base, "3", c.take}, []string{string(x.Base.Data), string(x.Left.Data), string(x.Right.Data)})
			}
			require.Empty(t, collect(t, c.conflicts(ctx, "lake", "main", string(bad.ID), graveler.PickParams{Strategy: graveler.DestWins})))

			for expected, err := range map[error]error{
				graveler.ErrRefNotFound:    firstError(c.conflicts(ctx, "lake", "main", "none", graveler.PickParams{})),
				graveler.ErrBranchNotFound: firstError(c.conflicts(ctx, "lake", "none", "main", graveler.PickParams{})),
				graveler.ErrInvalidName:    firstError(c.conflicts(ctx, "lake", "a b", "main", graveler.PickParams{})),
				graveler.ErrInvalidValue:   firstError(c.conflicts(ctx, "lake", "main", "main", graveler.PickParams{Parent: 2})),
			} {
				require.ErrorIs(t, err, expected)
				require.ErrorContains(t, err, name+" ")
			}
		})
	}
}

func firstError[T any](items iter.Seq2[T, error]) error {
	_, _, err := graveler.Page(items, 1)
	return err
}

func TestMergesArePickedAgainstAParent(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	require.NoError(t, f.Set(ctx, "lake", "dev", key("dev"), value("1")))
	_, err = f.Commit(ctx, "lake", "dev", graveler.CommitParams{})
	require.NoError(t, err)
	f.set(t, "main", "1")
	f.commit(t, "main")
	m, err := f.Merge(ctx, "lake", "dev", "main", graveler.MergeParams{})
	require.NoError(t, err)
	for _, parent := range []int{0, 3, -1} {
		_, err = f.Revert(ctx, "lake", "main", string(m.ID), graveler.PickParams{Parent: parent})
		require.ErrorIs(t, err, graveler.ErrInvalidValue)
	}
	_, err = f.Revert(ctx, "lake", "main", string(m.ID), graveler.PickParams{Parent: 1})
	require.NoError(t, err)
	require.Equal(t, []string{"main=1"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
}

func TestResetOfTheHead(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	first := f.commit(t, "first")
	f.set(t, "a", "2")
	second := f.commit(t, "second")
	f.set(t, "b", "uncommitted")
	_, err := f.Reset(ctx, "lake", "main", "main~1", graveler.ResetParams{})
	require.ErrorIs(t, err, graveler.ErrDirtyBranch)
	_, err = f.Reset(ctx, "lake", "main", "main~1", graveler.ResetParams{AllowDirty: true})
	require.NoError(t, err)
	require.Equal(t, []string{"a=1"}, show(t, f.Graveler, "main@", graveler.ListOptions{}))
	require.Equal(t, []string{"a=1", "b=uncommitted"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
	require.NoError(t, f.ResetStaged(ctx, "lake", "main", nil))
	_, err = f.Reset(ctx, "lake", "main", string(second.ID), graveler.ResetParams{Actor: "ada"})
	require.NoError(t, err)
	_, err = f.Reset(ctx, "lake", "main", string(second.ID), graveler.ResetParams{})
	require.ErrorIs(t, err, graveler.ErrNoChanges)
	require.EqualError(t, err, "reset lake/main to "+string(second.ID)+": already there")
	_, err = f.Reset(ctx, "lake", "main", "none", graveler.ResetParams{})
	require.ErrorIs(t, err, graveler.ErrRefNotFound)
	require.ErrorContains(t, err, "reset lake/main to none: ")
	require.ErrorContains(t, f.ResetStaged(ctx, "lake", "none", nil), "reset uncommitted changes of lake/none: ")
	require.ErrorContains(t, f.ResetStaged(ctx, "lake", "none", key("a/")), "reset uncommitted changes of lake/none:a/: ")
	moves := collect(t, f.BranchLog(ctx, "lake", "main", 0))
	last := moves[len(moves)-1]
	require.Equal(t, []any{graveler.OpReset, first.ID, second.ID, "ada"}, []any{last.Op, last.Old, last.New, last.Actor})
}

func TestResetOfUncommittedChanges(t *testing.T) {
	ctx := context.Background()
	scene := func(t *testing.T) *fixture {
		f := newFixture(t, dropAtOnce)
		for _, k := range []string{"a/1", "a/2", "b/1"} {
			f.set(t, k, "old")
		}
		f.commit(t, "base")
		f.set(t, "a/1", "new")
		require.NoError(t, f.Delete(ctx, "lake", "main", key("a/2")))
		require.NoError(t, f.Compact(ctx, "lake", "main"))
		f.set(t, "a/3", "new")
		require.NoError(t, f.DeletePrefix(ctx, "lake", "main", key("b")))
		f.set(t, "b/2", "new")
		return f
	}
	for name, c := range map[string]struct {
		reset func(f *fixture) error
		left  []string
	}{
		"all":              {func(f *fixture) error { return f.ResetStaged(ctx, "lake", "main", nil) }, []string{}},
		"prefix":           {func(f *fixture) error { return f.ResetStaged(ctx, "lake", "main", key("a/")) }, []string{"-b/1", "+b/2"}},
		"key":              {func(f *fixture) error { return f.ResetStagedKey(ctx, "lake", "main", key("a/2")) }, []string{"~a/1", "+a/3", "-b/1", "+b/2"}},
		"prefixes":         {func(f *fixture) error { return f.ResetStaged(ctx, "lake", "main", key("b/2"), key("a/1")) }, []string{"-a/2", "+a/3", "-b/1"}},
		"key and prefixes": {func(f *fixture) error { return f.ResetStagedKey(ctx, "lake", "main", key("b/1"), key("a/")) }, []string{"+b/2"}},
		"nothing there": {func(f *fixture) error { return f.ResetStagedKey(ctx, "lake", "main", key("a/")) },
			[]string{"~a/1", "-a/2", "+a/3", "-b/1", "+b/2"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := scene(t)
			require.NoError(t, c.reset(f))
			require.Equal(t, c.left, showDiffs(t, f.DiffUncommitted(ctx, "lake", "main", graveler.DiffOptions{})))
			_, err := f.Maintain(ctx)
			require.NoError(t, err)
			require.Equal(t, c.left, showDiffs(t, f.DiffUncommitted(ctx, "lake", "main", graveler.DiffOptions{})))
		})
	}
}

func TestCompareShowsWhatRightHasChangedSinceTheMergeBase(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	f.commit(t, "base")
	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	f.set(t, "main", "1")
	f.commit(t, "main")
	require.NoError(t, f.Set(ctx, "lake", "dev", key("dev"), value("1")))
	_, err = f.Commit(ctx, "lake", "dev", graveler.CommitParams{})
	require.NoError(t, err)
	require.Equal(t, []string{"+dev"}, showDiffs(t, f.Compare(ctx, "lake", "main", "dev", graveler.DiffOptions{})))
	require.Equal(t, []string{"+dev", "-main"}, showDiffs(t, f.Diff(ctx, "lake", "main", "dev", graveler.DiffOptions{})))
}

func TestCommitOfAPart(t *testing.T) {
	f := newFixture(t, dropAtOnce)
	ctx := context.Background()
	for _, k := range []string{"a/1", "b/1", "c/1"} {
		f.set(t, k, "old")
	}
	f.commit(t, "base")
	f.set(t, "a/1", "new")
	f.set(t, "b/2", "new")
	require.NoError(t, f.DeletePrefix(ctx, "lake", "main", key("c")))
	f.set(t, "d", "new")

	part := graveler.CommitParams{Message: "part", Prefixes: []graveler.Key{key("c"), key("a/"), key("a/1")}}
	res, err := f.Commit(ctx, "lake", "main", part)
	require.NoError(t, err)
	require.Equal(t, []string{"~a/1", "-c/1"}, showDiffs(t, f.Diff(ctx, "lake", "main~1", "main", graveler.DiffOptions{})))
	require.Equal(t, []string{"+b/2", "+d"}, showDiffs(t, f.DiffUncommitted(ctx, "lake", "main", graveler.DiffOptions{})))
	require.Equal(t, []string{"a/1=new", "b/1=old", "b/2=new", "d=new"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
	_, err = f.Commit(ctx, "lake", "main", part)
	require.ErrorIs(t, err, graveler.ErrNoChanges)
	_, err = f.Maintain(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"+b/2", "+d"}, showDiffs(t, f.DiffUncommitted(ctx, "lake", "main", graveler.DiffOptions{})))
	rest := f.commit(t, "rest")
	require.Equal(t, []graveler.CommitID{res.Commit.ID}, rest.Parents)
	require.Empty(t, showDiffs(t, f.DiffUncommitted(ctx, "lake", "main", graveler.DiffOptions{})))
}

// What a caller does to his map afterwards is no concern of the commit.
func TestMetadataOfACommitIsItsOwn(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.CreateBranch(ctx, "lake", "side", "main")
	require.NoError(t, err)
	require.NoError(t, f.Set(ctx, "lake", "side", key("k"), value("v")))
	metadata := map[string]string{"why": "one"}
	p := graveler.CommitParams{Metadata: metadata}
	_, err = f.Commit(ctx, "lake", "side", p)
	require.NoError(t, err)
	_, err = f.Merge(ctx, "lake", "side", "main", graveler.MergeParams{CommitParams: p})
	require.NoError(t, err)
	metadata["why"] = "two"
	for _, ref := range []string{"side", "main"} {
		c, err := f.ResolveRef(ctx, "lake", ref)
		require.NoError(t, err)
		require.Equal(t, "one", c.Metadata["why"], ref)
	}
}
