// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	"github.com/moraine-store/moraine/pkg/block/cache"
	"github.com/moraine-store/moraine/pkg/block/mem"
)

const roomy = 1 << 30

func open(t *testing.T, s block.Storage, dir string, size int64) *cache.Cache {
	t.Helper()
	c, err := cache.New(s, dir, size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func put(t *testing.T, s block.Storage, names ...string) {
	t.Helper()
	for _, name := range names {
		require.NoError(t, s.Put(t.Context(), name, []byte("of "+name)))
	}
}

func requireFiles(t *testing.T, s block.Storage, names ...string) {
	t.Helper()
	for _, name := range names {
		got, err := s.Get(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, "of "+name, string(got))
	}
}

// onDisk returns the paths of what a cache keeps.
func onDisk(t *testing.T, dir string) (paths []string, bytes int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		paths = append(paths, filepath.Join(dir, f.Name()))
		bytes += info.Size()
	}
	return paths, bytes
}

// settled closes a cache, which waits until everything that was fetched is on disk.
func settled(t *testing.T, c *cache.Cache) cache.Stats {
	t.Helper()
	require.NoError(t, c.Close())
	return c.Stats()
}

// lasting is a storage that outlives the cache in front of it.
type lasting struct{ block.Storage }

func (lasting) Close() error { return nil }

func TestConformance(t *testing.T) {
	for name, size := range map[string]int64{"roomy": roomy, "tight": 200_000, "too small": 1} {
		t.Run(name, func(t *testing.T) {
			blocktest.Run(t, func(t *testing.T) blocktest.Harness {
				c := open(t, mem.New(), t.TempDir(), size)
				return blocktest.Harness{Forgetful: true, Open: func(_ context.Context, o block.OpenOptions) (block.Storage, error) {
					if o.ReadOnly {
						return block.ReadOnly(c), nil
					}
					return c, nil
				}}
			})
		})
	}
}

func TestAFileIsFetchedOnceAndThenReadFromDisk(t *testing.T) {
	s := blocktest.Counting(mem.New())
	put(t, s, "a")
	dir := t.TempDir()
	c := open(t, lasting{s}, dir, roomy)
	part, err := c.GetRange(t.Context(), "a", 3, 1)
	require.NoError(t, err)
	require.Equal(t, "a", string(part))
	stats := settled(t, c)
	require.Equal(t, cache.Stats{Fetches: 1, Files: 1, Bytes: 8}, stats)

	c = open(t, s, dir, roomy)
	requireFiles(t, c, "a")
	part, err = c.GetRange(t.Context(), "a", 0, 2)
	require.NoError(t, err)
	require.Equal(t, "of", string(part))
	_, err = c.GetRange(t.Context(), "a", 3, 2)
	require.ErrorIs(t, err, block.ErrShort)
	require.Equal(t, cache.Stats{Hits: 3, Files: 1, Bytes: 8}, c.Stats())
	require.Equal(t, 1, s.Counts().Get.Calls)
	require.Equal(t, 1, s.Counts().Stat.Calls)
	require.Zero(t, s.Counts().GetRange.Calls)
}

func TestTheLeastRecentlyUsedGoFirst(t *testing.T) {
	s := mem.New()
	put(t, s, "a", "b", "c", "d")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := open(t, lasting{s}, dir, 3*8)
		for _, name := range []string{"a", "b", "c", "a", "d"} {
			requireFiles(t, c, name)
			synctest.Wait()
		}
		require.Equal(t, cache.Stats{Hits: 1, Fetches: 4, Evicted: 1, Files: 3, Bytes: 24}, c.Stats())
		requireFiles(t, c, "a", "c", "d")
		require.Equal(t, 4, c.Stats().Hits)
		requireFiles(t, c, "b")
		require.Equal(t, 5, c.Stats().Fetches)
	})
}

func TestTheOldestGoFirstWhenReopenedWithLess(t *testing.T) {
	s := mem.New()
	dir := t.TempDir()
	put(t, s, "a", "b", "c")
	var oldest string
	for i, name := range []string{"b", "c", "a"} {
		c := open(t, lasting{s}, dir, roomy)
		before, _ := onDisk(t, dir)
		requireFiles(t, c, name)
		settled(t, c)
		after, _ := onDisk(t, dir)
		for _, path := range after {
			if !strings.Contains(strings.Join(before, "\n"), path) {
				at := time.Unix(int64(1000+i), 0)
				require.NoError(t, os.Chtimes(path, at, at))
				if i == 0 {
					oldest = path
				}
			}
		}
	}
	c := open(t, s, dir, 20)
	require.Equal(t, cache.Stats{Evicted: 1, Files: 2, Bytes: 16}, c.Stats())
	require.NoFileExists(t, oldest)
}

func TestTheBoundHoldsAtEveryMoment(t *testing.T) {
	s := mem.New()
	const bound = 5000
	for i := range 50 {
		require.NoError(t, s.Put(t.Context(), fmt.Sprint(i), bytes.Repeat([]byte{byte(i)}, 10*i)))
	}
	dir := t.TempDir()
	c := open(t, s, dir, bound)
	var g errgroup.Group
	for w := range 4 {
		g.Go(func() error {
			for i := range 200 {
				n := (i*(w+3) + w) % 50
				data, err := c.Get(t.Context(), fmt.Sprint(n))
				if err != nil || !bytes.Equal(data, bytes.Repeat([]byte{byte(n)}, 10*n)) {
					return fmt.Errorf("file %d: %w, %d bytes", n, err, len(data))
				}
				if kept := c.Stats().Bytes; kept > bound {
					return fmt.Errorf("%d bytes are kept", kept)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	stats := settled(t, c)
	paths, size := onDisk(t, dir)
	require.Len(t, paths, stats.Files)
	require.Equal(t, stats.Bytes, size)
}

func TestFilesThatCannotBeKeptPassThrough(t *testing.T) {
	s := blocktest.Counting(mem.New())
	put(t, s, "a")
	c := open(t, s, t.TempDir(), 7)
	s.Reset()
	requireFiles(t, c, "a")
	part, err := c.GetRange(t.Context(), "a", 3, 1)
	require.NoError(t, err)
	require.Equal(t, "a", string(part))
	require.Equal(t, blocktest.Count{Calls: 1, Files: 1, Bytes: 1}, s.Counts().GetRange)
	require.Equal(t, 1, s.Counts().Get.Calls)
	require.Zero(t, c.Stats())
}

func TestDamagedFilesAreFetchedAgain(t *testing.T) {
	damage := map[string]func(path string) error{
		"flipped": func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b[1] ^= 1
			return os.WriteFile(path, b, 0o600)
		},
		"cut":       func(path string) error { return os.Truncate(path, 3) },
		"emptied":   func(path string) error { return os.Truncate(path, 0) },
		"gone":      os.Remove,
		"directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	}
	for name, do := range damage {
		s := mem.New()
		put(t, s, "a")
		dir := t.TempDir()
		c := open(t, lasting{s}, dir, roomy)
		requireFiles(t, c, "a")
		settled(t, c)
		c = open(t, lasting{s}, dir, roomy)
		paths, _ := onDisk(t, dir)
		require.NoError(t, do(paths[0]), name)
		_, err := c.GetRange(t.Context(), "a", 3, 1)
		require.NoError(t, err, name)
		stats := settled(t, c)
		require.Equal(t, cache.Stats{Fetches: 1, Damaged: 1, Files: 1, Bytes: 8}, stats, name)
		c = open(t, s, dir, roomy)
		requireFiles(t, c, "a")
		require.Equal(t, 1, c.Stats().Hits, name)
	}
}

func TestADiskThatFailsDoesNotFailReads(t *testing.T) {
	s := mem.New()
	put(t, s, "a", "b")
	dir := filepath.Join(t.TempDir(), "cache")
	c := open(t, s, dir, roomy)
	requireFiles(t, c, "a")
	require.NoError(t, os.RemoveAll(dir))
	requireFiles(t, c, "b", "a", "b")
	stats := settled(t, c)
	require.Positive(t, stats.Failed)
	require.ErrorIs(t, stats.Err, os.ErrNotExist)
	require.Zero(t, stats.Bytes)
}

func TestOnlyTheOwnerMayReadTheFiles(t *testing.T) {
	s := mem.New()
	put(t, s, "a")
	dir := filepath.Join(t.TempDir(), "some", "cache")
	c := open(t, s, dir, roomy)
	requireFiles(t, c, "a")
	settled(t, c)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	paths, _ := onDisk(t, dir)
	require.Len(t, paths, 1)
	info, err = os.Stat(paths[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestOpeningRemovesUnfinishedFilesAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".tmp-123", "notes", strings.Repeat("a", 63), strings.Repeat("z", 64)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, strings.Repeat("a", 64)), 0o700))
	c := open(t, mem.New(), dir, 1)
	require.Zero(t, c.Stats())
	paths, _ := onDisk(t, dir)
	require.Len(t, paths, 4)
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	_, err := cache.New(mem.New(), t.TempDir(), 0)
	require.ErrorContains(t, err, "positive")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = cache.New(mem.New(), file, roomy)
	require.ErrorContains(t, err, file)
}

// Whatever is put, deleted and read, the cache answers as the storage would.
func TestAnyCallsGiveWhatTheStorageGives(t *testing.T) {
	anyName := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(rt *rapid.T) {
		s := mem.New()
		c, err := cache.New(s, t.TempDir(), 20)
		require.NoError(rt, err)
		for range rapid.IntRange(1, 30).Draw(rt, "calls") {
			name := anyName.Draw(rt, "name")
			switch rapid.IntRange(0, 3).Draw(rt, "call") {
			case 0:
				data := strings.Repeat(name, rapid.IntRange(0, 12).Draw(rt, "size"))
				require.NoError(rt, c.Put(t.Context(), name, []byte(data)))
			case 1:
				require.NoError(rt, c.Delete(t.Context(), name))
			default:
				want, wantErr := s.Get(t.Context(), name)
				got, err := c.Get(t.Context(), name)
				require.Equal(rt, want, got)
				require.Equal(rt, wantErr == nil, err == nil)
			}
		}
		require.NoError(rt, c.Close())
	})
}
