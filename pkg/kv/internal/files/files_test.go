// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
)

func TestPathOfURL(t *testing.T) {
	for url, want := range map[string]string{
		"bolt:meta.db":                "meta.db",
		"bolt:data/a b%20@1.db":       "data/a b%20@1.db",
		"bolt:/var/lib/meta.db":       "/var/lib/meta.db",
		"bolt:///var/lib/meta.db":     "/var/lib/meta.db",
		"bolt:////var/lib/meta.db":    "//var/lib/meta.db",
		"bolt:":                       "",
		"bolt://":                     "",
		"bolt://host/meta.db":         "",
		"bolt:meta.db?mode=fast":      "",
		"bolt:meta\x00.db":            "",
		"bolt://user:secret@host/x.d": "",
	} {
		got, err := Path(url)
		require.Equal(t, want, got)
		if want == "" {
			require.ErrorIs(t, err, kv.ErrInvalidURL, url)
			require.NotContains(t, err.Error(), "secret")
		} else {
			require.NoError(t, err, url)
		}
	}
}

func TestMakeDirMakesParentsAndLeavesAloneWhatIsThere(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b")
	require.NoError(t, MakeDir(dir))
	for _, d := range []string{filepath.Dir(dir), dir} {
		info, err := os.Stat(d)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, MakeDir(dir))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
}
