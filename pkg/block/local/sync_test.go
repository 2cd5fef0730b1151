// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
)

// syncsOf returns how many syncs a call makes.
func syncsOf(t *testing.T, s block.Storage, call func() error) int {
	t.Helper()
	counting := s.(interface{ Syncs() int64 })
	before := counting.Syncs()
	require.NoError(t, call())
	return int(counting.Syncs() - before)
}

func put(t *testing.T, s block.Storage, name, data string) {
	t.Helper()
	require.Equal(t, 1, syncsOf(t, s, func() error { return s.Put(t.Context(), name, []byte(data)) }), "of the file")
}

func requireSyncs(t *testing.T, want int, s block.Storage, names ...string) {
	t.Helper()
	require.Equal(t, want, syncsOf(t, s, func() error { return s.Sync(t.Context(), names) }), names)
}

// What is durable is not made so again, and everything else is.
func TestSyncDoesWhatIsLeftToDo(t *testing.T) {
	s := openDir(t, t.TempDir())
	put(t, s, "ns/ab/1", "one")
	put(t, s, "ns/cd/2", "two")
	requireSyncs(t, 2+1+1, s, "ns/ab/1", "ns/cd/2") // two directories, the one that names them, and the root, which names that
	put(t, s, "ns/ab/3", "three")
	requireSyncs(t, 1, s, "ns/ab/3") // its directory has a new name; nothing above it has
	put(t, s, "ns/ef/4", "four")
	requireSyncs(t, 2, s, "ns/ef/4") // the directory is new
	put(t, s, "5", "five")
	requireSyncs(t, 1, s, "5") // in the root
}

func TestSyncKnowsOfAFileOnlyWhatPutDid(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	put(t, s, "ns/ab/1", "one")
	requireSyncs(t, 1+2, s, "ns/ab/1")
	requireSyncs(t, 1+1, s, "ns/ab/1") // nobody knows what has happened to it since

	// A file that was there already is not written, and thus not synced, by Put.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ns", "ab", "2"), []byte("two"), 0o600))
	require.Zero(t, syncsOf(t, s, func() error { return s.Put(t.Context(), "ns/ab/2", []byte("two")) }))
	requireSyncs(t, 1+1, s, "ns/ab/2")

	// One that somebody has put in the place of Put's is another file.
	put(t, s, "ns/ab/3", "three")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "copy"), []byte("three"), 0o600))
	require.NoError(t, os.Rename(filepath.Join(dir, "copy"), filepath.Join(dir, "ns", "ab", "3")))
	requireSyncs(t, 1+1, s, "ns/ab/3")

	// Or the same file, with something else in it.
	put(t, s, "ns/ab/4", "four")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ns", "ab", "4"), []byte("more than that"), 0o600))
	requireSyncs(t, 1+1, s, "ns/ab/4")
}

func TestSyncSeesThatADirectoryWasReplaced(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	put(t, s, "ns/ab/1", "one")
	requireSyncs(t, 1+2, s, "ns/ab/1")
	at := func(name string) string { return filepath.Join(dir, name) }

	require.NoError(t, os.Rename(at("ns/ab"), at("ns/old")))
	require.NoError(t, os.Mkdir(at("ns/ab"), 0o700))
	put(t, s, "ns/ab/1", "one")
	requireSyncs(t, 1+1, s, "ns/ab/1") // the directory, and the one that names it

	// Where it is Put that makes it again, its inode may be that of the old one.
	for range 10 {
		require.NoError(t, os.RemoveAll(at("ns")))
		put(t, s, "ns/ab/1", "one")
		requireSyncs(t, 1+2, s, "ns/ab/1")
	}
}

// What another process has done is not known to be durable: it may have been about to sync.
func TestSyncDoesNotRelyOnOtherProcesses(t *testing.T) {
	dir := t.TempDir()
	s, other := openDir(t, dir), openDir(t, dir)
	put(t, other, "ns/ab/1", "one")
	require.NoError(t, s.Put(t.Context(), "ns/ab/1", []byte("one")))
	requireSyncs(t, 1+3, s, "ns/ab/1")
	put(t, other, "ns/cd/2", "two")
	put(t, s, "ns/cd/3", "three")
	requireSyncs(t, 1+1, s, "ns/cd/3")
}

func TestAFailedSyncIsNotRemembered(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	put(t, s, "ns/ab/1", "one")
	require.ErrorIs(t, s.Sync(t.Context(), []string{"ns/ab/1", "ns/ab/missing"}), block.ErrNotFound)
	require.GreaterOrEqual(t, syncsOf(t, s, func() error { return s.Sync(t.Context(), []string{"ns/ab/1"}) }), 3, "the directories")
}

func TestSyncAfterReopeningStartsAnew(t *testing.T) {
	dir := t.TempDir()
	first, err := local.OpenDir(dir, block.OpenOptions{})
	require.NoError(t, err)
	put(t, first, "ns/ab/1", "one")
	require.NoError(t, first.Sync(t.Context(), []string{"ns/ab/1"}))
	require.NoError(t, first.Close())
	requireSyncs(t, 4, openDir(t, dir), "ns/ab/1")
}
