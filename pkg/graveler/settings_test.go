// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

func TestASettingIsReplacedByWhoKnowsIt(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.GetSetting(ctx, "lake", "lifecycle")
	require.ErrorIs(t, err, graveler.ErrSettingNotFound)
	first, err := f.PutSetting(ctx, "lake", "lifecycle", []byte("one"), "")
	require.NoError(t, err)
	_, err = f.PutSetting(ctx, "lake", "lifecycle", []byte("two"), "")
	require.ErrorIs(t, err, graveler.ErrPreconditionFailed)
	got, err := f.GetSetting(ctx, "lake", "lifecycle")
	require.NoError(t, err)
	require.Equal(t, first, got)

	again, err := f.PutSetting(ctx, "lake", "lifecycle", []byte("one"), first.Checksum)
	require.NoError(t, err)
	require.NotEqual(t, first.Checksum, again.Checksum, "the same bytes, written later")
	require.ErrorIs(t, f.RemoveSetting(ctx, "lake", "lifecycle", first.Checksum), graveler.ErrPreconditionFailed)
	require.NoError(t, f.RemoveSetting(ctx, "lake", "lifecycle", again.Checksum))
	_, err = f.GetSetting(ctx, "lake", "lifecycle")
	require.ErrorIs(t, err, graveler.ErrSettingNotFound)

	for _, name := range []string{"", "A", "branch-protection", "metadata"} {
		_, err = f.PutSetting(ctx, "lake", name, nil, "")
		require.ErrorIs(t, err, graveler.ErrInvalidName, name)
	}
	require.NoError(t, f.SetReadOnly(ctx, "lake", true))
	_, err = f.PutSetting(ctx, "lake", "lifecycle", nil, "")
	require.ErrorIs(t, err, graveler.ErrReadOnly)
}

func TestOfManyWhoReplaceASettingOneSucceeds(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	checksum := ""
	for range 20 {
		won := make(chan graveler.Setting, 8)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				s, err := f.PutSetting(ctx, "lake", "doc", fmt.Append(nil, i), checksum)
				if err == nil {
					won <- s
				} else {
					require.ErrorIs(t, err, graveler.ErrPreconditionFailed)
				}
			})
		}
		wg.Wait()
		require.Len(t, won, 1)
		checksum = (<-won).Checksum
	}
}

func TestConcurrentUpdatesOfMetadataAllCount(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			require.NoError(t, f.UpdateRepositoryMetadata(ctx, "lake", func(m map[string]string) (map[string]string, error) {
				m[fmt.Sprint(i)] = "x"
				return m, nil
			}))
		})
	}
	wg.Wait()
	m, err := f.RepositoryMetadata(ctx, "lake")
	require.NoError(t, err)
	require.Len(t, maps.Clone(m), 8)
	for bad, want := range map[string]error{"\xff": graveler.ErrInvalidValue, strings.Repeat("x", graveler.MaxMetadataBytes): graveler.ErrTooLarge} {
		require.ErrorIs(t, f.UpdateRepositoryMetadata(ctx, "lake", func(m map[string]string) (map[string]string, error) {
			m["k"] = bad
			return m, nil
		}), want)
	}
}

func TestHiddenBranchesAreListedOnlyWhereAskedFor(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	names := func(all bool) []graveler.BranchID {
		list := f.ListBranches
		if all {
			list = f.ListAllBranches
		}
		var ids []graveler.BranchID
		for _, b := range collect(t, list(ctx, "lake", "")) {
			ids = append(ids, b.ID)
		}
		return ids
	}
	b, err := f.CreateHiddenBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	require.True(t, b.Hidden)
	require.Equal(t, []graveler.BranchID{"main"}, names(false))
	require.Equal(t, []graveler.BranchID{"dev", "main"}, names(true))
	require.NoError(t, f.Set(ctx, "lake", "dev", key("k"), value("v")))
	require.NoError(t, f.SetBranchHidden(ctx, "lake", "dev", false))
	require.NoError(t, f.SetBranchHidden(ctx, "lake", "main", true))
	require.Equal(t, []graveler.BranchID{"dev"}, names(false))
	require.ErrorIs(t, f.SetBranchHidden(ctx, "lake", "none", true), graveler.ErrBranchNotFound)
}

func TestHooksAreAskedAboutEveryMoveOfAHead(t *testing.T) {
	ctx := context.Background()
	var asked []string
	var made []graveler.CommitID
	var refuse error
	f := newFixture(t, func(c *graveler.Config) {
		c.Hooks.PreCommit = func(_ context.Context, e graveler.PreCommitEvent) error {
			asked = append(asked, fmt.Sprint(e.Branch, " ", e.Op, " ", e.Params.Message, " ", showDiffs(t, e.Changes)))
			return refuse
		}
		c.Hooks.PostCommit = func(_ context.Context, _ graveler.RepositoryID, _ graveler.BranchID, c graveler.Commit) {
			made = append(made, c.ID)
		}
	})
	_, err := f.CreateBranch(ctx, "lake", "side", "main")
	require.NoError(t, err)
	require.NoError(t, f.Set(ctx, "lake", "side", key("a"), value("1")))
	side, err := f.Commit(ctx, "lake", "side", graveler.CommitParams{Message: "one"})
	require.NoError(t, err)

	refuse = fmt.Errorf("no")
	_, err = f.Merge(ctx, "lake", "side", "main", graveler.MergeParams{CommitParams: graveler.CommitParams{Message: "m"}})
	require.ErrorIs(t, err, graveler.ErrRefused)
	require.Empty(t, show(t, f.Graveler, "main", graveler.ListOptions{}))
	refuse = nil
	_, err = f.Merge(ctx, "lake", "side", "main", graveler.MergeParams{FastForward: true})
	require.NoError(t, err)
	reverted, err := f.Revert(ctx, "lake", "main", "side", graveler.PickParams{})
	require.NoError(t, err)
	picked, err := f.CherryPick(ctx, "lake", "main", "side", graveler.PickParams{})
	require.NoError(t, err)
	_, err = f.Reset(ctx, "lake", "main", "side", graveler.ResetParams{})
	require.NoError(t, err)
	require.Equal(t, []string{
		fmt.Sprint("side ", graveler.OpCommit, " one [+a]"),
		fmt.Sprint("main ", graveler.OpMerge, " m [+a]"),
		fmt.Sprint("main ", graveler.OpMerge, " one [+a]"),
		fmt.Sprint("main ", graveler.OpRevert, ` Revert "one" [-a]`),
		fmt.Sprint("main ", graveler.OpCherryPick, " one [+a]"),
		fmt.Sprint("main ", graveler.OpReset, " one []"),
	}, asked)
	require.Equal(t, []graveler.CommitID{side.Commit.ID, reverted.ID, picked.ID}, made)
}
