// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// The report says what was done, and what was left for another time and why.
func TestMaintainReportsWhatItDidAndWhatIsWaiting(t *testing.T) {
	ctx := context.Background()
	now := time.Unix(1_700_000_000, 0)
	edit, breaks := breakable()
	f := newFixture(t, edit, func(c *graveler.Config) { c.Now = func() time.Time { return now } })
	report := func() graveler.MaintainReport {
		r, err := f.Maintain(ctx)
		require.NoError(t, err)
		return r
	}
	// cutOff does something that fails from a call on.
	cutOff := func(at string, do func() error) {
		failing := false
		*breaks = func(call string) (bool, bool) { failing = failing || call == at; return failing, false }
		require.Error(t, do())
		*breaks = func(string) (bool, bool) { return false, false }
	}
	require.Zero(t, report())

	create := func(id graveler.RepositoryID) error {
		_, err := f.CreateRepository(ctx, id, graveler.CreateRepositoryParams{})
		return err
	}
	cutOff("PutCommit", func() error { return create("half") })
	require.NoError(t, create("old"))
	cutOff("DropPartition", func() error { return f.DeleteRepository(ctx, "old") })
	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	cutOff("RemoveBranch", func() error { return f.DeleteBranch(ctx, "lake", "dev", false) })
	for range 10 {
		require.NoError(t, f.DeletePrefix(ctx, "lake", "main", key("x")))
	}
	// Of old its token and itself are registered, of lake the token of dev, and those that main had before it was compacted.
	require.Equal(t, graveler.MaintainReport{RepositoriesDeleted: 1, CreationsWaiting: 1, BranchesDeleted: 1, BranchesCompacted: 1, PartitionsWaiting: 13}, report())
	require.Equal(t, graveler.MaintainReport{CreationsWaiting: 1, PartitionsWaiting: 13}, report())

	// Somebody was about to give a token up, but has not.
	repo, err := f.GetRepository(ctx, "lake")
	require.NoError(t, err)
	b, err := f.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	require.NoError(t, f.config.Refs.PutCleanup(ctx, graveler.Cleanup{
		Partition: string(b.Token), Registered: now.UnixNano(), RepositoryID: "lake", RepositoryUID: repo.UID, Branch: "main",
	}))
	now = now.Add(time.Hour)
	require.Equal(t, graveler.MaintainReport{CreationsUndone: 1, PartitionsDropped: 13, PartitionsWaiting: 1, PartitionsListed: 1}, report(), "the partition of half waits")
	now = now.Add(time.Hour)
	require.Equal(t, graveler.MaintainReport{PartitionsDropped: 1, PartitionsListed: 1}, report())
}

// A branch that is deleted while it is about to be compacted was not compacted.
func TestMaintainDoesNotCountWhatItDidNotDo(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	for range 10 {
		require.NoError(t, f.DeletePrefix(ctx, "lake", "dev", key("x")))
	}
	c := f.config
	c.Refs = &deletedMeanwhile{c.Refs, func() {
		err := f.DeleteBranch(ctx, "lake", "dev", true)
		require.True(t, err == nil || errors.Is(err, graveler.ErrBranchNotFound), "%v", err)
	}}
	g, err := graveler.New(c)
	require.NoError(t, err)
	report, err := g.Maintain(ctx)
	require.NoError(t, err)
	require.Zero(t, report.BranchesCompacted)
}

// deletedMeanwhile does something before it gives the record of the branch dev.
type deletedMeanwhile struct {
	graveler.Refs
	do func()
}

func (d *deletedMeanwhile) GetBranch(ctx context.Context, r *graveler.Repository, id graveler.BranchID) (*graveler.Branch, error) {
	if id == "dev" {
		d.do()
	}
	return d.Refs.GetBranch(ctx, r, id)
}
