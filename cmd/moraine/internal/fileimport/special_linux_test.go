// SPDX-License-Identifier: Apache-2.0

package fileimport

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinksAndSpecialFilesAreNamedAndSkipped(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	write(t, filepath.Join(dir, "dir/a"), "x")
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "l-file")))
	require.NoError(t, os.Symlink("dir", filepath.Join(dir, "l-dir")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "l-nowhere")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	t.Chdir(dir) // the path of a socket must be short
	socket, err := net.Listen("unix", "socket")
	require.NoError(t, err)
	defer func() { require.NoError(t, socket.Close()) }()

	r := newRecorder(dir)
	report, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"dir/a", "file"}, r.keys())
	require.Equal(t, []string{"l-dir: symbolic link", "l-file: symbolic link", "l-nowhere: symbolic link", "pipe: named pipe", "socket: socket"}, r.skipped)
	require.Equal(t, Report{Files: 2, Bytes: 2, Skipped: 5}, report)
}

// A path that is too long for the kernel cannot be looked at, by nobody.
func TestADirectoryThatCannotBeReadFailsTheImport(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "x")
	write(t, filepath.Join(dir, "z"), "x")
	at, err := os.OpenRoot(dir)
	require.NoError(t, err)
	for range 20 {
		name := strings.Repeat("d", 250)
		require.NoError(t, at.Mkdir(name, 0o700))
		below, err := at.OpenRoot(name)
		require.NoError(t, err)
		require.NoError(t, at.Close())
		at = below
	}
	require.NoError(t, at.Close())

	r := newRecorder(dir)
	report, err := r.Run(t.Context())
	require.ErrorIs(t, err, ErrIncomplete)
	require.Equal(t, []string{"a", "z"}, r.keys())
	require.Equal(t, 1, report.Failed)
	require.Contains(t, r.failed[0], "file name too long")
}

// Files below /proc have no size although there is something to read: they look as if somebody kept writing to them.
func TestAFileThatKeepsChangingIsNotDescribed(t *testing.T) {
	_, err := Describe(t.Context(), "/proc/version")
	require.ErrorIs(t, err, errChanging)
}
