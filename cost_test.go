// SPDX-License-Identifier: Apache-2.0

package moraine_test

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	"github.com/moraine-store/moraine/pkg/block/local"
	blockmem "github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
)

// countedStore is a store whose repository lake has a commit of n entries on main, and a count of the calls of its block storage.
func countedStore(t *testing.T, n int) (*moraine.Store, *blocktest.Counter) {
	blocks := blocktest.Counting(blockmem.New())
	s, err := moraine.Open(t.Context(), moraine.Options{Store: "mem:", BlockStorage: blocks})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, err = s.CreateRepository(t.Context(), "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	entries := make([]graveler.Entry, n)
	for i := range entries {
		entries[i] = costEntry(i, "first")
	}
	require.NoError(t, s.SetMany(t.Context(), "lake", "main", entries))
	commitAll(t, s, "main")
	return s, blocks
}

func costEntry(i int, text string) graveler.Entry {
	return graveler.Entry{Key: fmt.Appendf(nil, "data/%08d", i), Value: &graveler.Value{Identity: []byte(text), Data: make([]byte, 200)}}
}

func commitAll(t *testing.T, s *moraine.Store, branch graveler.BranchID) {
	_, err := s.Commit(context.Background(), "lake", branch, graveler.CommitParams{})
	require.NoError(t, err)
}

// change commits another value of ten neighbouring entries.
func change(t *testing.T, s *moraine.Store, branch graveler.BranchID, from int) {
	for i := range 10 {
		e := costEntry(from+i, "changed on "+string(branch))
		require.NoError(t, s.Set(context.Background(), "lake", branch, e.Key, *e.Value))
	}
	commitAll(t, s, branch)
}

// A merge reads and writes the files that differ from the base on either side: as many in a tree ten times as large.
func TestAMergeTouchesTheFilesThatDiffer(t *testing.T) {
	cost := func(n int) (reads, writes int) {
		s, blocks := countedStore(t, n)
		_, err := s.CreateBranch(t.Context(), "lake", "side", "main")
		require.NoError(t, err)
		change(t, s, "side", n/10)
		change(t, s, "main", n/2)
		blocks.Reset()
		_, err = s.Merge(t.Context(), "lake", "side", "main", graveler.MergeParams{})
		require.NoError(t, err)
		counts := blocks.Counts()
		return counts.Get.Calls + counts.GetRange.Calls, counts.Put.Calls
	}
	smallReads, smallWrites := cost(20_000)
	reads, writes := cost(200_000)
	t.Logf("20,000 entries: %d reads, %d files written; 200,000 entries: %d and %d", smallReads, smallWrites, reads, writes)
	// Of each of base, source and destination one changed range and its neighbour, where the cut moves, and the nodes above.
	require.LessOrEqual(t, reads, 16)
	require.LessOrEqual(t, writes, 4)
}

// The log of a prefix opens no range of a commit that agrees there with its parents: nodes tell it.
func TestALogByPrefixOpensNoRangesThatAgree(t *testing.T) {
	s, blocks := countedStore(t, 100_000)
	for i := range 20 {
		change(t, s, "main", 50_000+10*i)
	}
	blocks.Reset()
	shown := 0
	for _, err := range s.Log(t.Context(), "lake", "main", graveler.LogOptions{Prefixes: []graveler.Key{graveler.Key("data/000000")}}) {
		require.NoError(t, err)
		shown++
	}
	require.Equal(t, 1, shown)
	counts := blocks.Counts()
	t.Logf("%v", counts)
	// The commit that is shown opens one range, to see that there is something.
	require.LessOrEqual(t, counts.GetRange.Calls+counts.Stat.Calls, 4)
	require.LessOrEqual(t, counts.Get.Calls, 2*21, "a root for each commit, and no more than another node")
}

// A commit of one change syncs its two files and their two directories, all at a time, and the engine twice, for the seal and for
// the record. The directory above the two is synced only where one of them is new.
func TestSyncsOfACommitOfOneChange(t *testing.T) {
	for _, engine := range []string{"bolt", "pebble"} {
		t.Run(engine, func(t *testing.T) {
			ctx, dir := t.Context(), t.TempDir()
			blocks, err := local.OpenDir(filepath.Join(dir, "blocks"), block.OpenOptions{})
			require.NoError(t, err)
			defer func() { require.NoError(t, blocks.Close()) }()
			engineStore, err := kv.Open(ctx, engine+":"+filepath.Join(dir, "meta"), all.Engines(), kv.OpenOptions{})
			require.NoError(t, err)
			defer func() { require.NoError(t, engineStore.Close()) }()
			counted := kvtest.Counting(engineStore)
			s, err := moraine.Open(ctx, moraine.Options{KV: counted, BlockStorage: blocks})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			_, err = s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
			require.NoError(t, err)
			for i := range 20 {
				e := costEntry(i, "one change")
				require.NoError(t, s.Set(ctx, "lake", "main", e.Key, *e.Value))
				before, directories := blocks.(interface{ Syncs() int64 }).Syncs(), directoriesBelow(t, dir)
				counted.Reset()
				commitAll(t, s, "main")
				if i == 0 {
					continue // it makes the directory of the repository
				}
				counts := counted.Counts()
				require.Equal(t, 2, counts["SetIf"]+counts["Publish"])
				require.Zero(t, counts["Set"]+counts["Apply"]+counts["Delete"]+counts["SetMany"])
				most := 4
				if directoriesBelow(t, dir) > directories {
					most++
				}
				require.LessOrEqual(t, int(blocks.(interface{ Syncs() int64 }).Syncs()-before), most)
			}
		})
	}
}

func directoriesBelow(t *testing.T, dir string) (n int) {
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			n++
		}
		return err
	}))
	return n
}
