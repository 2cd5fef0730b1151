// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
)

func openKept(t *testing.T) (*storage, string) {
	dir := t.TempDir()
	s, err := open(dir, block.OpenOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, dir
}

func TestAFileThatIsKeptOpenIsReadOnlyWhileItHasItsName(t *testing.T) {
	part := func(s *storage, name string) (string, error) {
		data, err := s.GetRange(t.Context(), name, 1, 2)
		return string(data), err
	}
	s, dir := openKept(t)
	other, err := open(dir, block.OpenOptions{}) // as another process would
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	for what, change := range map[string]func(name string) error{
		"removed here":    func(name string) error { return s.Delete(t.Context(), name) },
		"removed there":   func(name string) error { return other.Delete(t.Context(), name) },
		"replaced here":   func(name string) error { return s.Put(t.Context(), name, []byte("a longer one")) },
		"replaced there":  func(name string) error { return other.Put(t.Context(), name, []byte("a longer one")) },
		"cut where it is": func(name string) error { return os.Truncate(filepath.Join(dir, name), 1) },
		"a pipe now": func(name string) error {
			pipe := filepath.Join(dir, "pipe")
			require.NoError(t, syscall.Mkfifo(pipe, fileMode))
			return os.Rename(pipe, filepath.Join(dir, name))
		},
	} {
		t.Run(what, func(t *testing.T) {
			name := "ab/" + fmt.Sprintf("%x", what)
			require.NoError(t, s.Put(t.Context(), name, []byte("abcd")))
			for range 2 {
				data, err := part(s, name)
				require.NoError(t, err)
				require.Equal(t, "bc", data)
			}
			require.NotNil(t, s.kept.get(name))
			require.NoError(t, change(name))
			data, err := part(s, name)
			switch what {
			case "replaced here", "replaced there":
				require.NoError(t, err)
				require.Equal(t, " l", data)
			case "cut where it is":
				require.ErrorIs(t, err, block.ErrShort)
			default:
				require.ErrorIs(t, err, block.ErrNotFound)
			}
		})
	}
}

func TestOnlySoManyFilesAreKeptOpen(t *testing.T) {
	s, _ := openKept(t)
	read := func(i int) {
		data, err := s.GetRange(t.Context(), fmt.Sprintf("f%04d", i), 0, 4)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%04d", i), string(data))
	}
	const n = keptFiles + 50
	for i := range n {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("f%04d", i)), fmt.Appendf(nil, "%04d", i), fileMode))
		read(i)
		read(0)
		require.LessOrEqual(t, s.kept.recent.Len(), keptFiles)
	}
	require.NotNil(t, s.kept.get("f0000"), "it was read all the time")
	require.Nil(t, s.kept.get("f0001"), "the least recently read one went first")
	var readers sync.WaitGroup
	for r := range 4 { // files are closed under those who read them
		readers.Go(func() {
			for i := range n {
				read((i*7 + r*n/4) % n)
			}
		})
	}
	readers.Wait()
}

func TestCloseClosesWhatIsKeptOpen(t *testing.T) {
	s, _ := openKept(t)
	require.NoError(t, s.Put(t.Context(), "a", []byte("abcd")))
	_, err := s.GetRange(t.Context(), "a", 0, 1)
	require.NoError(t, err)
	f := s.kept.get("a")
	require.NoError(t, s.Close())
	_, err = f.Stat()
	require.ErrorIs(t, err, os.ErrClosed)
	_, err = s.GetRange(t.Context(), "a", 0, 1)
	require.ErrorIs(t, err, block.ErrClosed)
	late, err := os.Open(s.dir)
	require.NoError(t, err)
	require.NoError(t, s.kept.keep("late", late))
	_, err = late.Stat()
	require.ErrorIs(t, err, os.ErrClosed, "one that comes after the end is closed at once")
}
