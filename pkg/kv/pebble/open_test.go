// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/kv"
)

var part = []byte("part")

func openDir(t *testing.T, dir string, o kv.OpenOptions) *Store {
	t.Helper()
	s, err := Open(t.Context(), "pebble:"+dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.(*Store)
}

func openError(t *testing.T, dir string, o kv.OpenOptions) error {
	t.Helper()
	s, err := Open(t.Context(), "pebble:"+dir, o)
	if err == nil {
		require.NoError(t, s.Close())
	}
	return err
}

func newDir(t *testing.T) string { return filepath.Join(t.TempDir(), "meta") }

// filled returns the directory of a closed store with one key.
func filled(t *testing.T) string {
	t.Helper()
	dir := newDir(t)
	s := openDir(t, dir, kv.OpenOptions{})
	require.NoError(t, s.Set(t.Context(), part, []byte("k"), []byte("v")))
	require.NoError(t, s.Close())
	return dir
}

func requireValue(t *testing.T, s kv.Store, key, want string) {
	t.Helper()
	item, err := s.Get(context.Background(), part, []byte(key))
	require.NoError(t, err, key)
	require.Equal(t, want, string(item.Value), key)
}

// contents returns the names and contents of all files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	}))
	return files
}

func TestFilesAndDirectoriesArePrivate(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b")
	s := openDir(t, dir, kv.OpenOptions{})
	require.NoError(t, s.Set(t.Context(), part, []byte("k"), []byte("v")))
	require.NoError(t, s.db.Flush())
	for _, name := range []string{filepath.Join(top, "a"), dir} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), name)
	}
	for name := range contents(t, dir) {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), name)
	}
}

func TestReadOnlyCreatesAndChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "meta")
	require.ErrorIs(t, openError(t, dir, kv.OpenOptions{ReadOnly: true}), fs.ErrNotExist)
	require.NoDirExists(t, filepath.Dir(dir))

	empty := t.TempDir()
	require.ErrorIs(t, openError(t, empty, kv.OpenOptions{ReadOnly: true}), kv.ErrNotAStore)
	require.Empty(t, contents(t, empty))

	dir = filled(t)
	before := contents(t, dir)
	requireValue(t, openDir(t, dir, kv.OpenOptions{ReadOnly: true}), "k", "v")
	require.Equal(t, before, contents(t, dir))
}

func TestAnEmptyDirectoryBecomesAStore(t *testing.T) {
	require.NoError(t, openError(t, t.TempDir(), kv.OpenOptions{}))
}

func TestSecondOpenInThisProcessIsLocked(t *testing.T) {
	dir := newDir(t)
	s := openDir(t, dir, kv.OpenOptions{})
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	for name, o := range map[string]kv.OpenOptions{dir: {}, link: {ReadOnly: true}} {
		err := openError(t, name, o)
		require.ErrorIs(t, err, kv.ErrLocked)
		require.ErrorContains(t, err, "locked by another process")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := lockDir(ctx, private{vfs.Default, false}, dir)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Close())
	require.NoError(t, openError(t, dir, kv.OpenOptions{}))
}

func TestReadersShareTheDirectoryAndLockOutAWriter(t *testing.T) {
	dir := filled(t)
	a, b := openDir(t, dir, kv.OpenOptions{ReadOnly: true}), openDir(t, dir, kv.OpenOptions{ReadOnly: true})
	requireValue(t, a, "k", "v")
	requireValue(t, b, "k", "v")
	require.ErrorIs(t, openError(t, dir, kv.OpenOptions{}), kv.ErrLocked)
	require.NoError(t, a.Close())
	requireValue(t, b, "k", "v")
	require.NoError(t, b.Close())
	require.NoError(t, openError(t, dir, kv.OpenOptions{}))
}

// TestSecondProcessIsLocked runs this test binary as the process that holds the directory.
func TestSecondProcessIsLocked(t *testing.T) {
	if dir := os.Getenv("PEBBLE_TEST_HOLD"); dir != "" {
		openDir(t, dir, kv.OpenOptions{})
		_, err := os.Stdout.WriteString("open\n")
		require.NoError(t, err)
		_, err = os.Stdin.Read(make([]byte, 1))
		require.Error(t, err, "the parent closes our input")
		return
	}
	dir := newDir(t)
	holder := exec.Command(os.Args[0], "-test.run=^TestSecondProcessIsLocked$")
	holder.Env = append(os.Environ(), "PEBBLE_TEST_HOLD="+dir)
	in, err := holder.StdinPipe()
	require.NoError(t, err)
	out, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	_, err = out.Read(make([]byte, 5))
	require.NoError(t, err)
	require.ErrorIs(t, openError(t, dir, kv.OpenOptions{}), kv.ErrLocked)
	require.NoError(t, in.Close())
	require.NoError(t, holder.Wait())
	require.NoError(t, openError(t, dir, kv.OpenOptions{}))
}

func TestManyMayCreateTheStoreAtOnce(t *testing.T) {
	dir := newDir(t)
	var g errgroup.Group
	for range 8 {
		g.Go(func() error {
			s, err := Open(t.Context(), "pebble:"+dir, kv.OpenOptions{})
			if errors.Is(err, kv.ErrLocked) {
				return nil
			}
			if err != nil {
				return err
			}
			return s.Close()
		})
	}
	require.NoError(t, g.Wait())
	require.NoError(t, openError(t, dir, kv.OpenOptions{}))
}

func TestWhatIsNoStoreIsRefusedAndLeftAlone(t *testing.T) {
	put := func(name, text string) func(dir string) {
		return func(dir string) { require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	}
	for name, make := range map[string]func(dir string){
		"a file":                 put("notes.txt", "hello"),
		"a directory":            func(dir string) { require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700)) },
		"an empty mark":          put(markName, ""),
		"a mark without version": put(markName, "layout one\n"),
		"version 0":              put(markName, "layout 0\n"),
		"a damaged mark":         put(markName, "layout 1 old\n"),
		"a database of somebody else": func(dir string) {
			db, err := pebble.Open(dir, &pebble.Options{Logger: logger{}})
			require.NoError(t, err)
			require.NoError(t, db.Close())
		},
	} {
		for _, o := range []kv.OpenOptions{{}, {ReadOnly: true}} {
			dir := t.TempDir()
			make(dir)
			before := contents(t, dir)
			err := openError(t, dir, o)
			require.ErrorIs(t, err, kv.ErrNotAStore, name)
			_, err = kv.Open(t.Context(), "pebble:"+dir, kv.Engines{"pebble": Open}, o)
			require.Equal(t, 1, strings.Count(err.Error(), dir), err)
			require.Equal(t, before, contents(t, dir), name)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	require.ErrorIs(t, openError(t, file, kv.OpenOptions{}), kv.ErrNotAStore)
	require.Error(t, openError(t, filepath.Join(file, "meta"), kv.OpenOptions{}))
}

func TestANewerLayoutIsRefused(t *testing.T) {
	dir := filled(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, markName), []byte("layout 2 with more\n"), 0o600))
	before := contents(t, dir)
	err := openError(t, dir, kv.OpenOptions{})
	require.ErrorIs(t, err, kv.ErrSchemaNewer)
	require.ErrorContains(t, err, "2")
	require.Equal(t, before, contents(t, dir))
}

// TestALostDatabaseIsNotReplaced removes files behind the store's back: it must not come up empty.
func TestALostDatabaseIsNotReplaced(t *testing.T) {
	for _, pattern := range []string{"marker.*", "marker.manifest.*", "MANIFEST-*", "[^M]*"} {
		dir := filled(t)
		lost, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, lost)
		for _, name := range lost {
			require.NoError(t, os.Remove(name))
		}
		for range 2 { // the first attempt must not heal it either
			require.ErrorIs(t, openError(t, dir, kv.OpenOptions{}), kv.ErrNotAStore, pattern)
		}
	}
}

// TestACreationThatWasInterruptedIsTakenUp stops the creation at every change of the file system, with
// a crash there, and creates the store again.
func TestACreationThatWasInterruptedIsTakenUp(t *testing.T) {
	for n := 0; ; n++ {
		mem := newMem(t)
		f := &faults{failAt: n}
		s, err := open(t.Context(), f.wrap(mem), memDir, false, testMemTable)
		if err == nil {
			require.Zero(t, f.injected())
			require.NoError(t, s.Close())
			require.Greater(t, n, 20)
			return
		}
		require.ErrorIs(t, err, errInjected)
		for _, after := range []*vfs.MemFS{mem, mem.CrashClone(vfs.CrashCloneCfg{})} {
			s, err = open(t.Context(), after, memDir, false, testMemTable)
			require.NoError(t, err, "after change %d", n)
			require.NoError(t, s.Set(t.Context(), part, []byte("k"), []byte("v")))
			require.NoError(t, s.Close())
		}
	}
}

func TestTheFormatIsTheNewest(t *testing.T) {
	require.EqualValues(t, pebble.FormatNewest, format, "a newer pebble writes a newer format: raise format and layout, and say so")
	dir := filled(t)
	desc, err := pebble.Peek(dir, vfs.Default)
	require.NoError(t, err)
	require.EqualValues(t, format, desc.FormatMajorVersion)
}

func TestNothingIsLeftOpen(t *testing.T) {
	dir := filled(t)
	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "x"), nil, 0o600))
	damaged := filled(t)
	for name := range maps.Keys(contents(t, damaged)) {
		if match, err := filepath.Match("MANIFEST-*", filepath.Base(name)); err == nil && match {
			require.NoError(t, os.WriteFile(name, []byte("damaged"), 0o600))
		}
	}
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	for i := range 5 {
		s := openDir(t, dir, kv.OpenOptions{})
		require.NoError(t, s.SetMany(t.Context(), part, []kv.Write{{Key: []byte("k"), Value: fmt.Append(nil, i)}}))
		require.NoError(t, s.db.Flush())
		require.NoError(t, s.Close())
		require.NoError(t, openError(t, dir, kv.OpenOptions{ReadOnly: true}))
		require.ErrorIs(t, openError(t, foreign, kv.OpenOptions{}), kv.ErrNotAStore)
		require.ErrorIs(t, openError(t, damaged, kv.OpenOptions{}), kv.ErrNotAStore)
	}
	require.Equal(t, files, openFiles(t))
	// Pebble waits for its goroutines to be done, which is a moment before they are gone.
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
		runtime.Gosched()
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	require.NoError(t, err)
	return len(entries)
}
