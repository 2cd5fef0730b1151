// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTourCanBeTakenAgain(t *testing.T) {
	s := newShell(t)
	s.file("data/it's a", "x")
	s.file("data/b", "y")
	data := filepath.Join(s.dir, "data")
	require.NoError(t, os.Chmod(data, 0o500)) // it only reads
	defer func() { require.NoError(t, os.Chmod(data, 0o700)) }()

	first := s.ok("demo", data)
	require.Contains(t, first, "$ moraine repo create demo\n")
	require.Contains(t, first, "\n$ moraine rm 'demo/experiment:files/it'\\''s a'\n")
	require.Contains(t, first, "~ files/b\n- files/it's a\n+ notes/today.txt\n")
	require.Contains(t, first, "(tag: before-experiment)")
	require.Contains(t, s.ok("demo", data), "$ moraine repo create demo-2\n")
	require.Len(t, s.objects("repo", "list"), 2)
	require.Contains(t, s.ok("demo", t.TempDir()), "+ notes/today.txt\n", "a directory without files")
}

func TestTheTourEndsAtAnError(t *testing.T) {
	s := newShell(t)
	code, stdout, stderr := s.run("demo", filepath.Join(s.dir, "none"))
	require.Equal(t, 1, code)
	require.Len(t, lines(stderr), 1)
	require.NotContains(t, stdout, "$ moraine ls")
}
