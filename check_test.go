// SPDX-License-Identifier: Apache-2.0

package moraine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
)

// damages returns what a check finds.
func damages(t *testing.T, s *moraine.Store) (all []fsck.Finding, counts fsck.Counts) {
	t.Helper()
	for f, err := range s.Check(context.Background(), fsck.Options{}, &counts) {
		require.NoError(t, err)
		if f.Severity == fsck.Damage {
			all = append(all, f)
		}
	}
	return all, counts
}

// What Stats says is what there is to list, and what a check counts.
func TestStatsAreWhatThereIs(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := open(t, onDisk(dir))
	_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	var entries []graveler.Entry
	bytes := uint64(0)
	for i := range 5000 {
		v := entryValue(fmt.Sprint(i * i))
		k := graveler.Key(fmt.Sprintf("k%06d", i))
		bytes += uint64(len(k) + len(v.Identity) + len(v.Data))
		entries = append(entries, graveler.Entry{Key: k, Value: &v})
	}
	require.NoError(t, s.SetMany(ctx, "lake", "main", entries))
	for range 2 {
		_, err = s.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "m", AllowEmpty: true})
		require.NoError(t, err)
	}
	for _, b := range []graveler.BranchID{"dev", "gone"} {
		_, err = s.CreateBranch(ctx, "lake", b, "main")
		require.NoError(t, err)
	}
	require.NoError(t, s.DeleteBranch(ctx, "lake", "gone", false))
	_, err = s.CreateTag(ctx, "lake", "v1", "main")
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, s.SetMany(ctx, "lake", "dev", entries[i:i+1]))
		require.NoError(t, s.DeletePrefix(ctx, "lake", "dev", graveler.Key("none")))
	}

	damage, counts := damages(t, s)
	require.Empty(t, damage)
	stats, err := s.Stats(ctx, "lake")
	require.NoError(t, err)
	require.Equal(t, graveler.RepositoryStats{
		Repository: "lake", Branches: 2, Tags: 1, Commits: 3, Moves: 6, StagedEntries: 3, Items: 6, Entries: 5000, Bytes: bytes, Files: counts.Files, FileBytes: counts.FileBytes,
	}, stats)
	require.Equal(t, []int{2, 1, 3, 6, 3}, []int{counts.Branches, counts.Tags, counts.Commits, counts.Moves, counts.StagedEntries})
	_, err = s.Stats(ctx, "none")
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
	require.NoError(t, s.Close())

	// Readers check too, and what they find is on the disk.
	files, err := filepath.Glob(filepath.Join(dir, "blocks", "*", "*", "*"))
	require.NoError(t, err)
	require.Len(t, files, counts.Files)
	for _, file := range files {
		require.NoError(t, os.Remove(file))
	}
	o := onDisk(dir)
	o.ReadOnly = true
	s = open(t, o)
	damage, _ = damages(t, s)
	require.Len(t, damage, 1, "the root is missing, and what is below it is not known")
	_, err = s.Stats(ctx, "lake")
	require.ErrorIs(t, err, graveler.ErrCorrupt)
	require.NoError(t, s.Close())
}
