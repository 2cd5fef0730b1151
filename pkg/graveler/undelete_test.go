// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/graveler"
)

func TestADeletedBranchComesBackWithTheHeadThatItHad(t *testing.T) {
	f := newFixture(t, dropAtOnce)
	ctx := context.Background()
	f.set(t, "a", "1")
	f.commit(t, "first")
	old, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	require.NoError(t, f.Set(ctx, "lake", "dev", key("b"), value("2")))
	res, err := f.Commit(ctx, "lake", "dev", graveler.CommitParams{})
	require.NoError(t, err)
	require.NoError(t, f.Set(ctx, "lake", "dev", key("c"), value("3")))
	_, err = f.RestoreBranch(ctx, "lake", "dev", "")
	require.ErrorIs(t, err, graveler.ErrExists, "it lives")
	require.NoError(t, f.DeleteBranch(ctx, "lake", "dev", true))
	_, err = f.Maintain(ctx)
	require.NoError(t, err)

	deleted := collect(t, f.ListDeletedBranches(ctx, "lake"))
	require.Len(t, deleted, 1)
	require.Equal(t, graveler.DeletedBranch{ID: "dev", UID: old.UID, Head: res.Commit.ID, LastMove: deleted[0].LastMove}, deleted[0])
	require.Equal(t, graveler.OpDelete, deleted[0].LastMove.Op)

	b, err := f.another(t).RestoreBranch(ctx, "lake", "dev", "")
	require.NoError(t, err)
	require.NotEqual(t, old.UID, b.UID)
	require.NotEqual(t, old.Token, b.Token)
	require.Equal(t, []string{"a=1", "b=2"}, show(t, f.Graveler, "dev", graveler.ListOptions{}), "without what was not committed")
	moves := collect(t, f.BranchLog(ctx, "lake", "dev", 0))
	require.Len(t, moves, 1)
	require.Equal(t, graveler.OpCreate, moves[0].Op)
	require.Equal(t, res.Commit.ID, moves[0].New)
	require.Len(t, collect(t, f.DeletedBranchLog(ctx, "lake", "dev", old.UID, 0)), 3, "the log of the old one stays")
	_, err = f.RestoreBranch(ctx, "lake", "dev", "")
	require.ErrorIs(t, err, graveler.ErrExists)
}

func TestOfSeveralDeletedBranchesTheLastOrAChosenOneComesBack(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	var uids []string
	var heads []graveler.CommitID
	for i := range 4 { // within one second, so that UIDs are in no order
		f.set(t, "a", fmt.Sprint(i))
		heads = append(heads, f.commit(t, "m").ID)
		b, err := f.CreateBranch(ctx, "lake", "dev", "main")
		require.NoError(t, err)
		uids = append(uids, b.UID)
		require.NoError(t, f.DeleteBranch(ctx, "lake", "dev", false))
	}
	var listed []graveler.CommitID
	for _, d := range collect(t, f.ListDeletedBranches(ctx, "lake")) {
		listed = append(listed, d.Head)
	}
	require.Equal(t, heads, listed)
	require.Equal(t, heads[3], collect(t, f.DeletedBranchLog(ctx, "lake", "dev", "", 0))[1].Old)
	b, err := f.RestoreBranch(ctx, "lake", "dev", uids[1])
	require.NoError(t, err)
	require.Equal(t, heads[1], b.Head)
	require.NoError(t, f.DeleteBranch(ctx, "lake", "dev", false))
	b, err = f.RestoreBranch(ctx, "lake", "dev", "")
	require.NoError(t, err)
	require.Equal(t, heads[1], b.Head, "the one that was deleted last")
}

func TestWhatCannotBeRestored(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.RestoreBranch(ctx, "lake", "dev", "")
	require.ErrorIs(t, err, graveler.ErrBranchNotFound, "there was none")
	_, err = f.RestoreBranch(ctx, "lake", "d..v", "")
	require.ErrorIs(t, err, graveler.ErrInvalidName)
	old, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	require.NoError(t, f.DeleteBranch(ctx, "lake", "dev", false))
	_, err = f.RestoreBranch(ctx, "lake", "dev", "nonesuch")
	require.ErrorIs(t, err, graveler.ErrBranchNotFound)
	_, err = f.CreateTag(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	_, err = f.RestoreBranch(ctx, "lake", "dev", "")
	require.ErrorIs(t, err, graveler.ErrExists, "a tag has the name")
	require.NoError(t, f.DeleteTag(ctx, "lake", "dev"))

	repo, err := f.GetRepository(ctx, "lake")
	require.NoError(t, err)
	for _, m := range collect(t, f.DeletedBranchLog(ctx, "lake", "dev", "", 0)) {
		require.NoError(t, f.config.Refs.RemoveMove(ctx, &repo, old.UID, m.Time))
	}
	_, err = f.RestoreBranch(ctx, "lake", "dev", "")
	require.ErrorIs(t, err, graveler.ErrBranchNotFound, "its log was removed")
	require.Empty(t, collect(t, f.ListDeletedBranches(ctx, "lake")))
	for _, err := range f.DeletedBranchLog(ctx, "lake", "dev", "", 0) {
		require.ErrorIs(t, err, graveler.ErrBranchNotFound)
	}

	_, err = f.CreateRepository(ctx, "frozen", graveler.CreateRepositoryParams{ReadOnly: true})
	require.NoError(t, err)
	_, err = f.RestoreBranch(ctx, "frozen", "dev", "")
	require.ErrorIs(t, err, graveler.ErrReadOnly)
}

// A deletion that was cut off is a deletion: the branch shows as deleted, and can be restored.
func TestABranchWhoseDeletionWasCutOffCanBeRestored(t *testing.T) {
	ctx := context.Background()
	for _, call := range []string{"PutMove", "RemoveBranch"} {
		edit, breaks := breakable()
		f := newFixture(t, edit)
		f.set(t, "a", "1")
		c := f.commit(t, "first")
		_, err := f.CreateBranch(ctx, "lake", "dev", "main")
		require.NoError(t, err)
		*breaks = func(made string) (bool, bool) { return made == call, false }
		require.ErrorIs(t, f.DeleteBranch(ctx, "lake", "dev", true), errBroken)
		*breaks = func(string) (bool, bool) { return false, false }
		require.Equal(t, c.ID, collect(t, f.ListDeletedBranches(ctx, "lake"))[0].Head)
		require.Len(t, collect(t, f.DeletedBranchLog(ctx, "lake", "dev", "", 0)), 2)
		b, err := f.RestoreBranch(ctx, "lake", "dev", "")
		require.NoError(t, err)
		require.Equal(t, c.ID, b.Head)
		require.Len(t, collect(t, f.ListDeletedBranches(ctx, "lake")), 1, "the old one")
	}
}

func TestOfManyRestoresAtOnceOneSucceeds(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	require.NoError(t, f.DeleteBranch(ctx, "lake", "dev", false))
	made := make([]bool, 8)
	var group errgroup.Group
	for i := range made {
		group.Go(func() error {
			_, err := f.another(t).RestoreBranch(ctx, "lake", "dev", "")
			made[i] = err == nil
			if errors.Is(err, graveler.ErrExists) {
				err = nil
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.Contains(t, made, true)
	require.Len(t, collect(t, f.BranchLog(ctx, "lake", "dev", 0)), 1)
}

func TestAResetToAMoveGoesBackToTheHeadThatItLeft(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	f.commit(t, "first")
	f.set(t, "a", "2")
	f.commit(t, "second")
	moves := collect(t, f.BranchLog(ctx, "lake", "main", 0))
	c, err := f.ResetToMove(ctx, "lake", "main", moves[1].Time, graveler.ResetParams{Actor: "ann"})
	require.NoError(t, err)
	require.Equal(t, moves[1].New, c.ID)
	require.Equal(t, []string{"a=1"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
	_, err = f.ResetToMove(ctx, "lake", "main", moves[2].Time-1, graveler.ResetParams{})
	require.ErrorIs(t, err, graveler.ErrNoChanges, "the same move is the last before")

	// The reset is a move itself: so it can be undone.
	all := collect(t, f.BranchLog(ctx, "lake", "main", 0))
	require.Len(t, all, 4)
	require.Equal(t, graveler.OpReset, all[3].Op)
	require.Equal(t, "ann", all[3].Actor)
	_, err = f.ResetToMove(ctx, "lake", "main", all[2].Time, graveler.ResetParams{})
	require.NoError(t, err)
	require.Equal(t, []string{"a=2"}, show(t, f.Graveler, "main", graveler.ListOptions{}))

	_, err = f.ResetToMove(ctx, "lake", "main", moves[0].Time-1, graveler.ResetParams{})
	require.ErrorIs(t, err, graveler.ErrNotFound)
	_, err = f.ResetToMove(ctx, "lake", "none", moves[0].Time, graveler.ResetParams{})
	require.ErrorIs(t, err, graveler.ErrBranchNotFound)
	f.set(t, "b", "3")
	_, err = f.ResetToMove(ctx, "lake", "main", moves[0].Time, graveler.ResetParams{})
	require.ErrorIs(t, err, graveler.ErrDirtyBranch)
	_, err = f.ResetToMove(ctx, "lake", "main", moves[0].Time, graveler.ResetParams{AllowDirty: true})
	require.NoError(t, err)
	require.Equal(t, []string{"b=3"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
}
