// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatCannotBeReadIsNamedAndKeepsAnImportFromCommitting(t *testing.T) {
	s := newLake(t)
	s.file("data/a", "x")
	data := filepath.Join(s.dir, "data")
	// Paths that are too long for the kernel cannot be read, by nobody.
	at, err := os.OpenRoot(data)
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

	code, stdout, stderr := s.run("import", data, "lake/main:", "--commit", "-m", "x")
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Len(t, lines(stderr), 2)
	require.Regexp(t, `^cannot import .*: file name too long$`, lines(stderr)[0])
	require.Regexp(t, `not everything could be imported: 1 could not be read: 1 files are staged, nothing was committed \(make them readable and run it again\)$`, lines(stderr)[1])
	require.Equal(t, "+ a\n", s.ok("diff", "lake/main"))
	require.Len(t, s.objects("log", "lake/main"), 1)
}
