// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/kv"
)

var part = []byte("part")

func open(t *testing.T, path string, o kv.OpenOptions) *Store {
	t.Helper()
	s, err := Open(t.Context(), "bolt:"+path, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.(*Store)
}

func openError(t *testing.T, path string, o kv.OpenOptions) error {
	t.Helper()
	s, err := Open(t.Context(), "bolt:"+path, o)
	if err == nil {
		require.NoError(t, s.Close())
	}
	return err
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "meta.db") }

// filled stores a few pages' worth and returns the path of the closed store.
func filled(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	s := open(t, path, kv.OpenOptions{})
	for i := range 20 { // several transactions, so that there are free pages
		var writes []kv.Write
		for j := range 100 {
			writes = append(writes, kv.Write{Key: []byte{byte(j), byte(i)}, Value: bytes.Repeat([]byte{byte(i)}, 50)})
		}
		require.NoError(t, s.SetMany(t.Context(), part, writes))
	}
	require.NoError(t, s.Set(t.Context(), []byte("large"), []byte("k"), make([]byte, 100_000)))
	require.NoError(t, s.Close())
	return path
}

func TestFilesAndDirectoriesArePrivate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "meta.db")
	open(t, path, kv.OpenOptions{})
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700, filepath.Join(dir, "a"): 0o700} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), name)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left but the store")
}

func TestReadOnlyCreatesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "meta.db")
	require.ErrorIs(t, openError(t, path, kv.OpenOptions{ReadOnly: true}), fs.ErrNotExist)
	_, err := os.Stat(filepath.Dir(path))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestSecondOpenInThisProcessIsLocked(t *testing.T) {
	path := newPath(t)
	s := open(t, path, kv.OpenOptions{})
	require.NoError(t, s.Set(t.Context(), part, []byte("k"), []byte("v"))) // the free list is not stored now
	for _, o := range []kv.OpenOptions{{}, {ReadOnly: true}} {
		err := openError(t, path, o)
		require.ErrorIs(t, err, kv.ErrLocked)
		require.ErrorContains(t, err, "locked by another process")
	}
	require.NoError(t, s.Close())
	require.NoError(t, openError(t, path, kv.OpenOptions{}))
}

func TestReadersShareTheFileAndLockOutAWriter(t *testing.T) {
	path := filled(t)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	a, b := open(t, path, kv.OpenOptions{ReadOnly: true}), open(t, path, kv.OpenOptions{ReadOnly: true})
	for _, s := range []*Store{a, b} {
		_, err := s.Get(t.Context(), part, []byte{0, 1})
		require.NoError(t, err)
	}
	require.ErrorIs(t, openError(t, path, kv.OpenOptions{}), kv.ErrLocked)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after))
}

// TestSecondProcessIsLocked runs this test binary as the process that holds the file.
func TestSecondProcessIsLocked(t *testing.T) {
	if path := os.Getenv("BOLT_TEST_HOLD"); path != "" {
		open(t, path, kv.OpenOptions{})
		_, err := os.Stdout.WriteString("open\n")
		require.NoError(t, err)
		_, err = os.Stdin.Read(make([]byte, 1))
		require.Error(t, err, "the parent closes our input")
		return
	}
	path := newPath(t)
	holder := exec.Command(os.Args[0], "-test.run=^TestSecondProcessIsLocked$")
	holder.Env = append(os.Environ(), "BOLT_TEST_HOLD="+path)
	in, err := holder.StdinPipe()
	require.NoError(t, err)
	out, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	_, err = out.Read(make([]byte, 5))
	require.NoError(t, err)
	require.ErrorIs(t, openError(t, path, kv.OpenOptions{}), kv.ErrLocked)
	require.NoError(t, in.Close())
	require.NoError(t, holder.Wait())
	require.NoError(t, openError(t, path, kv.OpenOptions{}))
}

func TestManyMayCreateTheStoreAtOnce(t *testing.T) {
	path := newPath(t)
	var g errgroup.Group
	for range 8 {
		g.Go(func() error {
			s, err := Open(t.Context(), "bolt:"+path, kv.OpenOptions{})
			if errors.Is(err, kv.ErrLocked) {
				return nil
			}
			return errors.Join(err, s.Close())
		})
	}
	require.NoError(t, g.Wait())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestWhatIsNoStoreIsRefusedAndLeftAlone(t *testing.T) {
	whole, err := os.ReadFile(filled(t))
	require.NoError(t, err)
	foreign := newPath(t)
	db, err := bbolt.Open(foreign, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	foreignBytes, err := os.ReadFile(foreign)
	require.NoError(t, err)

	for name, content := range map[string][]byte{
		"empty":                     {},
		"one byte":                  {0},
		"text":                      []byte("not a database at all"),
		"zeros":                     make([]byte, 64<<10),
		"noise":                     noise(64 << 10),
		"one page":                  whole[:4096],
		"two pages":                 whole[:8192],
		"half":                      whole[:len(whole)/2],
		"headers and noise":         append(bytes.Clone(whole[:8192]), noise(8192)...),
		"database of somebody else": foreignBytes,
	} {
		for _, o := range []kv.OpenOptions{{}, {ReadOnly: true}} {
			path := newPath(t)
			require.NoError(t, os.WriteFile(path, content, 0o600))
			err := openError(t, path, o)
			require.ErrorIs(t, err, kv.ErrNotAStore, name)
			_, err = kv.Open(t.Context(), "bolt:"+path, kv.Engines{"bolt": Open}, o)
			require.Equal(t, 1, strings.Count(err.Error(), path), err)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, after), name)
		}
	}
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.ErrorIs(t, openError(t, dir, kv.OpenOptions{}), kv.ErrNotAStore)
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.ErrorIs(t, openError(t, pipe, kv.OpenOptions{}), kv.ErrNotAStore)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	require.Error(t, openError(t, filepath.Join(file, "meta.db"), kv.OpenOptions{}))
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "link")))
	require.ErrorIs(t, openError(t, filepath.Join(dir, "link"), kv.OpenOptions{}), fs.ErrNotExist)
}

func TestANewerLayoutIsRefused(t *testing.T) {
	path := filled(t)
	db, err := openFile(path, false)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(markBucket)).Put([]byte(layoutKey), []byte("2"))
	}))
	require.NoError(t, db.Close())
	require.ErrorIs(t, openError(t, path, kv.OpenOptions{}), kv.ErrSchemaNewer)
}

func TestNothingIsLeftOpen(t *testing.T) {
	path := filled(t)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	h := headerOf(t, path)
	damaged := bytes.Clone(content)
	damaged[h.freeList*h.pageSize+8] ^= 1
	damagedPath := newPath(t)
	require.NoError(t, os.WriteFile(damagedPath, damaged, 0o600))
	noisePath := newPath(t)
	require.NoError(t, os.WriteFile(noisePath, noise(10_000), 0o600))

	files, goroutines := openFiles(t), runtime.NumGoroutine()
	for range 10 {
		require.NoError(t, openError(t, path, kv.OpenOptions{}))
		require.NoError(t, openError(t, path, kv.OpenOptions{ReadOnly: true}))
		require.ErrorIs(t, openError(t, noisePath, kv.OpenOptions{}), kv.ErrNotAStore)
		require.ErrorIs(t, openError(t, damagedPath, kv.OpenOptions{}), kv.ErrNotAStore)
	}
	require.Equal(t, files, openFiles(t))
	require.Equal(t, goroutines, runtime.NumGoroutine())
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	require.NoError(t, err)
	return len(entries)
}

// TestADamagedFreeListIsRefused changes bits of the list of free pages. What is no longer a list must
// not get to bbolt, which would panic with the file open and locked.
func TestADamagedFreeListIsRefused(t *testing.T) {
	path := filled(t)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	h := headerOf(t, path)
	list := int(h.freeList * h.pageSize)
	refused := 0
	for bit := range 8 * 48 { // the header of the page and the first numbers
		damaged := bytes.Clone(content)
		damaged[list+bit/8] ^= 1 << (bit % 8)
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		if err := openError(t, path, kv.OpenOptions{ReadOnly: true}); err != nil {
			require.ErrorIs(t, err, kv.ErrNotAStore)
		}
		if err := verify(path); err != nil {
			require.ErrorIs(t, err, kv.ErrNotAStore)
			refused++
			continue
		}
		db, err := openFile(path, false)
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}
	require.Greater(t, refused, 8*16, "the damage was noticed at times")
}

// crashed returns a copy of a store that was never closed.
func crashed(t *testing.T) []byte {
	t.Helper()
	path := filled(t)
	s := open(t, path, kv.OpenOptions{})
	require.NoError(t, s.Delete(t.Context(), []byte("large"), []byte("k")))
	require.NoError(t, s.Set(t.Context(), part, []byte("last"), []byte("v")))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

func TestAfterACrashEverythingIsThere(t *testing.T) {
	path := newPath(t)
	require.NoError(t, os.WriteFile(path, crashed(t), 0o600))
	require.Equal(t, noFreeList, headerOf(t, path).freeList)

	s := open(t, path, kv.OpenOptions{})
	_, err := s.Get(t.Context(), part, []byte("last"))
	require.NoError(t, err)
	_, err = s.Get(t.Context(), []byte("large"), []byte("k"))
	require.ErrorIs(t, err, kv.ErrNotFound)
	it, err := s.Scan(t.Context(), part, kv.ScanOptions{})
	require.NoError(t, err)
	n := 0
	for it.Next() {
		n++
	}
	require.NoError(t, it.Close())
	require.Equal(t, 2001, n)
	require.NoError(t, s.Close())

	require.NotEqual(t, noFreeList, headerOf(t, path).freeList, "a closed store opens without a walk through its pages")
}

func headerOf(t *testing.T, path string) (h header) {
	t.Helper()
	require.NoError(t, withFile(path, func(f *os.File) (err error) {
		h, err = readHeader(f)
		return err
	}))
	return h
}

// TestDamageNeverPanics changes bits of a file and uses it: what is wrong cannot always be told from
// what is right, but when it is, it must be by an error and not by a crash. A file that was not closed
// is checked before it is written to; one that was is read only here, since it is taken on trust.
func TestDamageNeverPanics(t *testing.T) {
	closed, err := os.ReadFile(filled(t))
	require.NoError(t, err)
	t.Run("closed", func(t *testing.T) { useDamaged(t, closed, kv.OpenOptions{ReadOnly: true}) })
	t.Run("not closed", func(t *testing.T) { useDamaged(t, crashed(t), kv.OpenOptions{}) })
}

func useDamaged(t *testing.T, content []byte, o kv.OpenOptions) {
	path := newPath(t)
	outcomes := make(map[string]int)
	rapid.Check(t, func(rt *rapid.T) {
		damaged := bytes.Clone(content)
		for range rapid.IntRange(1, 3).Draw(rt, "bits") {
			page := rapid.IntRange(0, len(damaged)/4096-1).Draw(rt, "page")
			at := rapid.IntRange(0, 4095).Draw(rt, "byte") // small numbers, and so headers, are likely
			damaged[page*4096+at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		}
		require.NoError(rt, os.WriteFile(path, damaged, 0o600))
		s, err := Open(t.Context(), "bolt:"+path, o)
		if err != nil {
			require.ErrorIs(rt, err, kv.ErrNotAStore)
			outcomes["refused"]++
			return
		}
		if err := use(t.Context(), s.(*Store), o.ReadOnly); err != nil {
			outcomes["failed"]++
			return
		}
		outcomes["unnoticed"]++
	})
	t.Log(outcomes)
}

// use reads everything and, if it may, writes here and there, and closes the store.
func use(ctx context.Context, s *Store, readOnly bool) error {
	_, err := s.Get(ctx, part, []byte{1, 2})
	it, scanErr := s.Scan(ctx, part, kv.ScanOptions{})
	if scanErr == nil {
		for it.Next() {
			continue
		}
		scanErr = it.Close()
	}
	err = errors.Join(err, scanErr)
	for i := 0; i < 10 && !readOnly; i++ {
		err = errors.Join(err, s.Set(ctx, part, []byte{byte(i), byte(27 * i)}, bytes.Repeat([]byte("x"), 300)))
	}
	if !readOnly {
		err = errors.Join(err, s.DropPartition(ctx, part))
	}
	return errors.Join(err, s.Close())
}
