// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func numbered(n int) contents {
	c := contents{}
	for i := range n {
		c[fmt.Sprintf("key/%05d", i)] = fmt.Sprint(i)
	}
	return c
}

// filesOf walks a tree and returns its files.
func filesOf(t *testing.T, s *Store, tree graveler.MetaRangeID) []graveler.TreeFile {
	var files []graveler.TreeFile
	require.NoError(t, s.Walk(t.Context(), ns, tree, func(f graveler.TreeFile) (bool, error) {
		f.First, f.Last = slices.Clone(f.First), slices.Clone(f.Last)
		files = append(files, f)
		return true, nil
	}))
	return files
}

func treeOf(t *testing.T, s *Store, c contents) graveler.MetaRangeID {
	tree, err := s.Apply(t.Context(), ns, s.EmptyTree(), c.iterator())
	require.NoError(t, err)
	return tree
}

func TestAWalkVisitsEveryFileOfATreeAndItsRangesHoldTheEntries(t *testing.T) {
	s, _ := newStore(t, small)
	want := numbered(3000)
	tree := treeOf(t, s, want)
	require.Empty(t, filesOf(t, s, s.EmptyTree()))

	stored := map[string]bool{}
	for f, err := range s.ListFiles(t.Context(), ns) {
		require.NoError(t, err)
		require.Positive(t, f.Size)
		require.False(t, f.ModTime.IsZero())
		stored[f.ID] = true
	}
	got, seen, entries := contents{}, map[string]bool{}, uint64(0)
	for i, f := range filesOf(t, s, tree) {
		require.Equal(t, i == 0, f.Root)
		require.NoError(t, s.CheckFile(t.Context(), ns, f))
		seen[f.ID] = true
		if f.Level > 0 || f.Root {
			continue
		}
		entries += f.Entries
		for e, err := range s.ScanFile(t.Context(), ns, f.ID) {
			require.NoError(t, err)
			got[string(e.Key)] = string(e.Value.Identity)
		}
	}
	require.Equal(t, stored, seen)
	require.Equal(t, want, got)
	require.EqualValues(t, len(want), entries)

	visited := 0
	require.NoError(t, s.Walk(t.Context(), ns, tree, func(graveler.TreeFile) (bool, error) { visited++; return false, nil }))
	require.Equal(t, 1, visited)
}

func TestACheckFindsEveryFlippedByteAndWhatAParentSaysWrongly(t *testing.T) {
	storage := mem.New()
	s := storeOn(t, storage, small)
	files := filesOf(t, s, treeOf(t, s, numbered(500)))
	for _, f := range files {
		name := f.ID[:2] + "/" + f.ID
		data, err := storage.Get(t.Context(), name)
		require.NoError(t, err)
		for at := 0; at < len(data); at += 1 + len(data)/50 {
			broken := slices.Clone(data)
			broken[at] ^= 0x40
			replace(t, storage, name, broken)
			require.ErrorIs(t, s.CheckFile(t.Context(), ns, f), graveler.ErrCorrupt, "byte %d of %s", at, name)
		}
		replace(t, storage, name, data)
		require.NoError(t, s.CheckFile(t.Context(), ns, f))
		if f.Root {
			continue
		}
		for _, spoil := range []func(*graveler.TreeFile){
			func(f *graveler.TreeFile) { f.Entries++ },
			func(f *graveler.TreeFile) { f.Last = append(slices.Clone(f.Last), 'x') },
			func(f *graveler.TreeFile) { f.Level++ },
		} {
			wrong := f
			spoil(&wrong)
			require.ErrorIs(t, s.CheckFile(t.Context(), ns, wrong), graveler.ErrCorrupt)
		}
	}
	require.NoError(t, storage.Delete(t.Context(), files[1].ID[:2]+"/"+files[1].ID))
	require.ErrorIs(t, s.CheckFile(t.Context(), ns, files[1]), graveler.ErrCorrupt)
}

func replace(t *testing.T, storage block.Storage, name string, data []byte) {
	require.NoError(t, storage.Delete(t.Context(), name))
	require.NoError(t, storage.Put(t.Context(), name, data))
}

func collectFiles(t *testing.T, s *Store, ns string) (names []string) {
	for f, err := range s.ListFiles(t.Context(), ns) {
		require.NoError(t, err)
		names = append(names, f.Name)
	}
	return names
}

func all(graveler.TreeFile) (bool, error) { return true, nil }

func TestACopiedTreeIsWholeAndADamagedOneIsNotCopied(t *testing.T) {
	own, other := mem.New(), mem.New()
	s, err := New(Config{Storage: func(_ context.Context, ns string) (block.Storage, error) {
		return map[string]block.Storage{"repo": own, "other": other}[ns], nil
	}})
	require.NoError(t, err)
	s.shapes = small
	tree := treeOf(t, s, numbered(500))
	require.NoError(t, s.CopyTree(t.Context(), ns, "other", tree, func(graveler.TreeFile) (bool, error) { return false, nil }))
	require.Empty(t, collectFiles(t, s, "other"))
	for range 2 {
		require.NoError(t, s.CopyTree(t.Context(), ns, "other", tree, all))
	}
	copied := reopened(t, s)
	require.NoError(t, copied.Walk(t.Context(), "other", tree, func(f graveler.TreeFile) (bool, error) {
		return true, copied.CheckFile(t.Context(), "other", f)
	}))

	more := treeOf(t, s, numbered(700))
	f := filesOf(t, s, more)[3]
	require.NoError(t, own.Delete(t.Context(), f.ID[:2]+"/"+f.ID))
	require.NoError(t, other.Delete(t.Context(), f.ID[:2]+"/"+f.ID))
	require.ErrorIs(t, reopened(t, s).CopyTree(t.Context(), ns, "other", more, all), graveler.ErrCorrupt)
}
