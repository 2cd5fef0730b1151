// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/xid"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// bubble runs a test on a store in memory, whose clock is that of a bubble.
func bubble(t *testing.T, run func(t *testing.T, s *Store, storage *meddler)) {
	synctest.Test(t, func(t *testing.T) {
		storage := meddle(mem.New())
		s := storeOn(t, storage, small)
		defer func() { require.NoError(t, s.Close()) }()
		run(t, s, storage)
	})
}

func idsOf(files []graveler.TreeFile) (ids []string) {
	for _, f := range files {
		ids = append(ids, f.ID)
	}
	slices.Sort(ids)
	return ids
}

func grace(t *testing.T, s *Store) time.Time {
	now, err := s.FileTime(t.Context(), ns)
	require.NoError(t, err)
	return now.Add(-graveler.FileGrace)
}

func markerName() string { return runPrefix + xid.New().String() }

func names(s ...string) (ids []rangefile.ID) {
	for _, n := range s {
		id, err := rangefile.ParseID(n)
		if err != nil {
			panic(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestOldFilesAreRemovedAndYoungOnesAreKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *Store, _ *meddler) {
		old := treeOf(t, s, numbered(500))
		oldFiles := filesOf(t, s, old)
		time.Sleep(graveler.FileGrace + time.Hour)
		young := treeOf(t, s, numbered(300)) // shares files with the other, which are thus refreshed
		shared := idsOf(filesOf(t, s, young))
		before := grace(t, s)
		ids := append(idsOf(oldFiles), shared...)
		want := slices.DeleteFunc(idsOf(oldFiles), func(id string) bool { return slices.Contains(shared, id) })
		require.NotEmpty(t, want)
		require.Less(t, len(want), len(oldFiles), "some are shared")

		_, err := scanAll(s, old) // through the caches
		require.NoError(t, err)
		removed, err := s.RemoveFiles(t.Context(), ns, append(ids, string(s.EmptyTree())), before)
		require.NoError(t, err)
		require.Equal(t, want, removed)
		_, err = scanAll(s, old)
		require.ErrorIs(t, err, graveler.ErrCorrupt)
		requireContents(t, s, young, numbered(300))
		require.Equal(t, len(shared), len(collectFiles(t, s, ns)), "no marker is left")

		removed, err = s.RemoveFiles(t.Context(), ns, ids, before)
		require.NoError(t, err)
		require.Empty(t, removed)
		require.Equal(t, old, treeOf(t, s, numbered(500)))
		requireContents(t, s, old, numbered(500))
	})
}

func TestWhatMustNotBeRemovedIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *Store, _ *meddler) {
		ids := idsOf(filesOf(t, s, treeOf(t, s, numbered(100))))
		time.Sleep(10 * graveler.FileGrace)
		stored := collectFiles(t, s, ns)
		_, err := s.RemoveFiles(t.Context(), ns, ids, grace(t, s).Add(clockSlack+time.Second))
		require.ErrorIs(t, err, graveler.ErrInvalidValue)
		_, err = s.RemoveFiles(t.Context(), ns, append(ids, "../../etc"), grace(t, s))
		require.ErrorIs(t, err, graveler.ErrInvalidRef)
		require.Equal(t, stored, collectFiles(t, s, ns))
	})
}

func TestFilesGoInBatchesEachWithItsMarker(t *testing.T) {
	bubble(t, func(t *testing.T, s *Store, storage *meddler) {
		ids := make([]string, 0, 2*sweepBatch+1)
		for i := range cap(ids) {
			ids = append(ids, fmt.Sprintf("%064x", i))
			require.NoError(t, storage.Put(t.Context(), fileName(names(ids[i])[0]), nil))
		}
		time.Sleep(graveler.FileGrace + time.Hour)
		var marked [][]string
		put := storage.put
		storage.put = func(ctx context.Context, name string, data []byte) error {
			if isMarker(name) {
				names, err := decodeMarker(data)
				require.NoError(t, err)
				marked = append(marked, names)
			}
			return put(ctx, name, data)
		}
		removed, err := s.RemoveFiles(t.Context(), ns, append(slices.Clone(ids), ids...), grace(t, s))
		require.NoError(t, err)
		require.Equal(t, ids, removed)
		require.Len(t, marked, 3)
		require.Len(t, slices.Concat(marked...), len(ids))
		require.Len(t, marked[0], sweepBatch)
	})
}

// A sweeper that is held up deletes nothing more, and says what it has removed.
func TestALateSweepStops(t *testing.T) {
	bubble(t, func(t *testing.T, s *Store, storage *meddler) {
		s.writers = 1
		ids := idsOf(filesOf(t, s, treeOf(t, s, numbered(300))))
		time.Sleep(graveler.FileGrace + time.Hour)
		stat, looked := storage.stat, 0
		storage.stat = func(ctx context.Context, name string) (block.Info, error) {
			info, err := stat(ctx, name)
			if looked++; looked == 4 { // the first is for the time
				time.Sleep(sweepLimit + time.Second)
			}
			return info, err
		}
		removed, err := s.RemoveFiles(t.Context(), ns, ids, grace(t, s))
		require.ErrorIs(t, err, errLate)
		require.Less(t, len(removed), 4)
		require.Len(t, collectFiles(t, s, ns), len(ids)-len(removed))
	})
}

// A deletion whose outcome is unknown may take effect later: its marker stays.
func TestAFailedDeletionLeavesItsMarker(t *testing.T) {
	bubble(t, func(t *testing.T, s *Store, storage *meddler) {
		c := numbered(100)
		ids := idsOf(filesOf(t, s, treeOf(t, s, c)))
		time.Sleep(graveler.FileGrace + time.Hour)
		remove, failure := storage.remove, errors.New("connection lost")
		storage.remove = func(ctx context.Context, name string) error {
			if !isSweepFile(name) {
				return failure
			}
			return remove(ctx, name)
		}
		_, err := s.RemoveFiles(t.Context(), ns, ids, grace(t, s))
		require.ErrorIs(t, err, failure)
		require.Equal(t, 1, countMarkers(t, s))

		began := time.Now()
		treeOf(t, s, c)
		waited := time.Since(began)
		require.Greater(t, waited, sweepLease-time.Minute)
		require.LessOrEqual(t, waited, sweepLease)
		storage.remove = remove
		time.Sleep(time.Second)
		_, err = s.RemoveFiles(t.Context(), ns, nil, grace(t, s))
		require.NoError(t, err)
		require.Zero(t, countMarkers(t, s), "what counts no longer is removed")
	})
}

func countMarkers(t *testing.T, s *Store) (n int) {
	for f, err := range s.ListFiles(t.Context(), ns) {
		require.NoError(t, err)
		require.Equal(t, f.Sweep, strings.HasPrefix(f.Name, "sweeps/"))
		if f.Sweep {
			require.Empty(t, f.ID)
			n++
		}
	}
	return n
}

func TestABuildWaitsForTheSweepOfItsFilesOnly(t *testing.T) {
	bubble(t, func(t *testing.T, s *Store, storage *meddler) {
		c := numbered(100)
		root := string(treeOf(t, s, c))
		put := func(ids ...rangefile.ID) string {
			name := markerName()
			require.NoError(t, storage.Put(t.Context(), name, encodeMarker(ids)))
			return name
		}
		put(names(strings.Repeat("0", 64))...)
		began := time.Now()
		treeOf(t, s, c)
		require.Equal(t, began, time.Now())

		marker := put(names(strings.Repeat("0", 64), root)...)
		built := make(chan graveler.MetaRangeID, 1)
		go func() { built <- treeOf(t, s, c) }()
		time.Sleep(time.Minute)
		require.Empty(t, built)
		require.NoError(t, storage.Delete(t.Context(), marker))
		require.EqualValues(t, root, <-built)

		put(names(root)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := s.Apply(ctx, ns, s.EmptyTree(), c.iterator())
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestFilesThatASweepTookFromABuildAreNoticed(t *testing.T) {
	bubble(t, func(t *testing.T, s *Store, storage *meddler) {
		c := numbered(100)
		tree := treeOf(t, s, c)
		marker := markerName()
		require.NoError(t, storage.Put(t.Context(), marker, encodeMarker(names(string(tree)))))
		failed := make(chan error)
		go func() {
			_, err := s.Apply(t.Context(), ns, s.EmptyTree(), c.iterator())
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, storage.Delete(t.Context(), fileName(names(string(tree))[0])))
		require.NoError(t, storage.Delete(t.Context(), marker))
		err := <-failed
		require.ErrorIs(t, err, graveler.ErrSwept)
		require.NotErrorIs(t, err, graveler.ErrCorrupt)
		require.Equal(t, tree, treeOf(t, s, c), "it is built again")
		requireContents(t, s, tree, c)
	})
}

func TestADamagedMarkerStopsBuildsUntilItsLeaseIsOver(t *testing.T) {
	id := names(strings.Repeat("0", 64))
	whole := string(encodeMarker(id))
	for name, contents := range map[string]string{
		"empty": "", "cut": whole[:len(whole)-1], "shorter": whole[:strings.Index(whole, "\n")+1], "longer": whole + whole,
		"another version": strings.Replace(whole, "sweep 1", "sweep 2", 1), "large": strings.Repeat("x", maxMarker+1),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *Store, storage *meddler) {
				require.NoError(t, storage.Put(t.Context(), markerName(), []byte(contents)))
				_, err := s.Apply(t.Context(), ns, s.EmptyTree(), numbered(10).iterator())
				require.ErrorIs(t, err, errMarker)
				time.Sleep(sweepLease)
				treeOf(t, s, numbered(10))
			})
		})
	}
	require.Equal(t, "moraine sweep 1 1\n00/"+strings.Repeat("0", 64)+"\n", whole)
}

// A file that goes between the looks of a build is written again, not deleted.
func TestABuildDeletesNoFileThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, s *Store, storage *meddler) {
		c := numbered(100)
		tree := treeOf(t, s, c)
		stat, remove := storage.stat, storage.remove
		storage.stat = func(ctx context.Context, name string) (block.Info, error) {
			info, err := stat(ctx, name)
			return info, errors.Join(err, remove(ctx, name))
		}
		storage.remove = func(_ context.Context, name string) error { return fmt.Errorf("%s is deleted", name) }
		require.Equal(t, tree, treeOf(t, s, c))
		storage.stat, storage.remove = stat, remove
		requireContents(t, reopened(t, s), tree, c)
	})
}

func TestACopyKeepsTheFilesThatItFinds(t *testing.T) {
	bubble(t, func(t *testing.T, s *Store, storage *meddler) {
		tree := treeOf(t, s, numbered(100))
		ids := idsOf(filesOf(t, s, tree))
		time.Sleep(graveler.FileGrace + time.Hour)
		require.NoError(t, s.CopyTree(t.Context(), ns, ns, tree, all))
		removed, err := s.RemoveFiles(t.Context(), ns, ids, grace(t, s))
		require.NoError(t, err)
		require.Empty(t, removed)

		storage.sync = func(context.Context, []string) error { return block.ErrNotFound }
		require.ErrorIs(t, s.CopyTree(t.Context(), ns, ns, tree, all), graveler.ErrSwept)
	})
}

func TestABuildLooksOnceAndDropLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	storage, err := local.OpenDir(dir, block.OpenOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, storage.Close()) }()
	counter := blocktest.Counting(storage)
	s := storeOn(t, counter, small)
	tree := treeOf(t, s, numbered(100))
	require.Equal(t, 1, counter.Counts().List.Calls)
	require.NoDirExists(t, filepath.Join(dir, "sweeps"))
	counter.Reset()
	require.Equal(t, tree, apply(t, s, tree, nil))
	require.Zero(t, counter.Counts().List.Calls, "nothing was put")

	before, err := s.FileTime(t.Context(), ns)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), before, time.Minute)
	require.NoError(t, storage.Put(t.Context(), markerName(), encodeMarker(names(string(tree)))))
	require.NoError(t, storage.Put(t.Context(), clockPrefix+xid.New().String(), nil))
	require.NoError(t, storage.Put(t.Context(), "sweeps/00/other", nil))
	require.NoError(t, storage.Put(t.Context(), runPrefix+"other", nil))
	treeOf(t, s, numbered(10)) // what is not of this program does not matter
	require.NoError(t, s.Drop(t.Context(), ns))
	require.Equal(t, []string{"sweeps/00/other", runPrefix + "other"}, collectFiles(t, s, ns))
	_, err = os.Stat(filepath.Join(dir, "sweeps"))
	require.NoError(t, err)
}
