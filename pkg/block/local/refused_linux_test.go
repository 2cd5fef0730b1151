// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
)

// A full disk is tried twice: with a limit on the size of files, which every process may set for
// itself, and with a real full file system where mounting one is allowed.
func TestDiskFull(t *testing.T) {
	t.Run("file size limit", func(t *testing.T) {
		dir := t.TempDir()
		s := openDir(t, dir)
		fillsUp(t, s, dir, unix.EFBIG, func(try func()) {
			signal.Ignore(unix.SIGXFSZ)
			defer signal.Reset(unix.SIGXFSZ)
			var was unix.Rlimit
			require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &was))
			require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 64 << 10, Max: was.Max}))
			defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &was)) }()
			try()
		})
	})

	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=128k"); err != nil {
		require.ErrorIs(t, err, unix.EPERM)
		t.Logf("mounting a small file system is not allowed here (%v): the limit above has to do", err)
		return
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	t.Run("small file system", func(t *testing.T) {
		fillsUp(t, openDir(t, dir), dir, unix.ENOSPC, func(try func()) { try() })
	})
}

// fillsUp puts more than there is room for while full is in force, and wants everything else to go on.
func fillsUp(t *testing.T, s block.Storage, dir string, want error, full func(try func())) {
	require.NoError(t, s.Put(t.Context(), "a/before", []byte("kept")))
	var err error
	full(func() { err = s.Put(t.Context(), "a/large", make([]byte, 1<<20)) })
	require.ErrorIs(t, err, want)
	require.ErrorContains(t, err, "put "+filepath.Join(dir, "a/large")+": ")
	requireNoTemporaries(t, dir)

	_, err = s.Stat(t.Context(), "a/large")
	require.ErrorIs(t, err, block.ErrNotFound)
	got, err := s.Get(t.Context(), "a/before")
	require.NoError(t, err)
	require.Equal(t, "kept", string(got))
	require.NoError(t, s.Put(t.Context(), "a/large", []byte("fits")))
	require.NoError(t, s.Sync(t.Context(), []string{"a/before", "a/large"}))
}

// asOrdinaryUser runs fn in a thread without the privilege to pass over permissions. The thread is
// not used again afterwards: it ends with its goroutine, which never unlocks it.
func asOrdinaryUser(t *testing.T, fn func() error) error {
	t.Helper()
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			result <- err
			return
		}
		result <- fn()
	}()
	return <-result
}

func TestDirectoryThatMayNotBeWritten(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	require.NoError(t, s.Put(t.Context(), "a/b", []byte("x")))
	require.NoError(t, os.Chmod(filepath.Join(dir, "a"), 0o500))
	err := asOrdinaryUser(t, func() error { return s.Put(t.Context(), "a/c", []byte("y")) })
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorContains(t, err, filepath.Join(dir, "a/c"))
	requireNoTemporaries(t, dir)
	require.ErrorIs(t, asOrdinaryUser(t, func() error { return s.Delete(t.Context(), "a/b") }), os.ErrPermission)
	got, err := s.Get(t.Context(), "a/b")
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
}

func TestRootThatMayNotBeWritten(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o600))
	require.NoError(t, os.Chmod(dir, 0o500))
	err := asOrdinaryUser(t, func() error {
		_, err := local.OpenDir(dir, block.OpenOptions{})
		return err
	})
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorContains(t, err, dir)

	require.NoError(t, asOrdinaryUser(t, func() error {
		s, err := local.OpenDir(dir, block.OpenOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		_, err = s.Get(t.Context(), "a")
		return errors.Join(err, s.Close())
	}))
}

func TestFilesThatMayNotBeReadAreNotMissing(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	require.NoError(t, s.Put(t.Context(), "a/b/c", []byte("x")))
	require.NoError(t, os.Chmod(filepath.Join(dir, "a/b"), 0))
	t.Cleanup(func() { require.NoError(t, os.Chmod(filepath.Join(dir, "a/b"), 0o700)) })
	for name, call := range map[string]func() error{
		"get":  func() error { _, err := s.Get(t.Context(), "a/b/c"); return err },
		"stat": func() error { _, err := s.Stat(t.Context(), "a/b/c"); return err },
		"list": func() error {
			for _, err := range s.List(t.Context(), "a") {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		err := asOrdinaryUser(t, call)
		require.ErrorIs(t, err, os.ErrPermission, name)
		require.ErrorContains(t, err, filepath.Join(dir, "a/b"), name)
	}

	require.NoError(t, os.Chmod(dir, 0))
	t.Cleanup(func() { require.NoError(t, os.Chmod(dir, 0o700)) })
	for _, ro := range []bool{false, true} {
		err := asOrdinaryUser(t, func() error {
			_, err := local.OpenDir(dir, block.OpenOptions{ReadOnly: ro})
			return err
		})
		require.ErrorIs(t, err, os.ErrPermission)
		require.ErrorContains(t, err, dir)
	}
}
