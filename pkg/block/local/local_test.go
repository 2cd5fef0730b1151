// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	"github.com/moraine-store/moraine/pkg/block/local"
)

func openDir(t *testing.T, dir string) block.Storage {
	t.Helper()
	s, err := local.OpenDir(dir, block.OpenOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// requireNoTemporaries also shows that tests look in the right place: it wants the directory to be there.
func requireNoTemporaries(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "~tmp"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestConformance(t *testing.T) {
	blocktest.Run(t, func(t *testing.T) blocktest.Harness {
		dir := filepath.Join(t.TempDir(), "new", "blocks")
		t.Cleanup(func() { requireNoTemporaries(t, dir) })
		return blocktest.Harness{Open: func(ctx context.Context, o block.OpenOptions) (block.Storage, error) {
			return block.Open(ctx, "file:"+dir, block.Engines{"file": local.Open}, o)
		}}
	})
}

func TestURLs(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for url, path := range map[string]string{
		"file:" + dir + "/a":   "a",
		"file://" + dir + "/b": "b",
		"file:c":               "c",
		"file:./d/e":           "d/e",
		"file:with%20escape":   "with%20escape",
	} {
		s, err := local.Open(t.Context(), url, block.OpenOptions{})
		require.NoError(t, err, url)
		require.NoError(t, s.Put(t.Context(), "x", nil))
		require.NoError(t, s.Close())
		require.FileExists(t, filepath.Join(dir, path, "x"))
	}
	for _, url := range []string{"file:", "file://", "file://host/path", "file://relative"} {
		_, err := local.Open(t.Context(), url, block.OpenOptions{})
		require.ErrorIs(t, err, block.ErrInvalidURL, url)
	}
}

func TestOnlyTheOwnerMayReadAndWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blocks")
	s := openDir(t, dir)
	require.NoError(t, s.Put(t.Context(), "a/b", []byte("x")))
	for path, mode := range map[string]os.FileMode{"": 0o700, "~tmp": 0o700, "a": 0o700, "a/b": 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
}

func TestReadOnlyCreatesNothing(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	_, err := local.OpenDir(missing, block.OpenOptions{ReadOnly: true})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, missing)

	s, err := local.OpenDir(dir, block.OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestRootThatIsNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{file, pipe, file + "/below"} {
		for _, ro := range []bool{false, true} {
			_, err := local.OpenDir(path, block.OpenOptions{ReadOnly: ro})
			require.ErrorContains(t, err, path+": not a directory")
		}
	}
}

// What a loss of power can do to a file that was never synced: its name is there, its end is not.
func TestACutFileIsNotTrusted(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	for _, left := range []string{"", "who"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte(left), 0o600))
		_, err := s.GetRange(t.Context(), "a", 0, 5)
		require.ErrorIs(t, err, block.ErrShort)
		require.ErrorContains(t, err, filepath.Join(dir, "a"))
		require.NoError(t, s.Put(t.Context(), "a", []byte("whole")))
		got, err := s.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, "whole", string(got))
	}
}

func TestOldTemporariesGoOnOpen(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, openDir(t, dir).Put(t.Context(), "file", nil))
	old, young := filepath.Join(dir, "~tmp", "old"), filepath.Join(dir, "~tmp", "young")
	for path, age := range map[string]time.Duration{old: 25 * time.Hour, young: 23 * time.Hour} {
		require.NoError(t, os.WriteFile(path, []byte("half"), 0o600))
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, then, then))
	}
	ro, err := local.OpenDir(dir, block.OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, ro.Close())
	require.FileExists(t, old)

	s := openDir(t, dir)
	require.NoFileExists(t, old)
	require.FileExists(t, young)
	for info, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		require.Equal(t, "file", info.Name)
	}
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "lost+found"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README"), nil, 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "linkdir")))
	for range s.List(t.Context(), "") {
		t.Fatal("nothing of ours is there")
	}
	_, err := s.Get(t.Context(), "pipe")
	require.ErrorIs(t, err, block.ErrNotFound)
	for _, name := range []string{"link", "linkdir/outside"} {
		_, err := s.Get(t.Context(), name)
		require.Error(t, err)
	}
	require.NoError(t, s.Delete(t.Context(), "pipe"))
	require.FileExists(t, filepath.Join(dir, "README"))
	_, err = os.Lstat(filepath.Join(dir, "pipe"))
	require.NoError(t, err)
}

func TestPutOverADirectoryFails(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	require.NoError(t, s.Put(t.Context(), "a/b", nil))
	require.ErrorContains(t, s.Put(t.Context(), "a", nil), "put "+filepath.Join(dir, "a")+": ")
	require.ErrorContains(t, s.Put(t.Context(), "a/b/c", nil), "put "+filepath.Join(dir, "a/b/c")+": ")
	requireNoTemporaries(t, dir)
}

func TestCloseDuringCalls(t *testing.T) {
	s := openDir(t, t.TempDir())
	started, done := make(chan struct{}), make(chan error)
	go func() {
		for i := 0; ; i++ {
			if i == 10 {
				close(started)
			}
			if err := s.Put(context.Background(), fmt.Sprintf("d%d/f", i), []byte("data")); err != nil {
				done <- err
				return
			}
		}
	}()
	<-started
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-done, block.ErrClosed)
}
