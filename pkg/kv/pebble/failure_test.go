// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/kv"
)

// newMem returns a file system that can crash, with an empty directory.
func newMem(t *testing.T) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewCrashableMem()
	require.NoError(t, mem.MkdirAll(memDir, 0o700))
	root, err := mem.OpenDir("/")
	require.NoError(t, err)
	require.NoError(t, root.Sync())
	return mem
}

const memDir = "/meta"

func openMem(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := open(t.Context(), fs, memDir, false, testMemTable)
	require.NoError(t, err)
	return s
}

// load writes from several goroutines until the store has failed or they have done enough, and
// remembers the last number that each key was acknowledged with, and the last that was tried.
type load struct {
	mu           sync.Mutex
	acknowledged map[string]int
	tried        map[string]int
	errs         []error
}

func (l *load) run(s *Store, writers, each int) {
	l.acknowledged, l.tried = make(map[string]int), make(map[string]int)
	var g errgroup.Group
	for w := range writers {
		g.Go(func() error {
			for n := 1; n <= each; n++ {
				key := fmt.Sprintf("%d-%d", w, n%7)
				if !l.write(s, key, n) {
					break
				}
			}
			return nil
		})
	}
	_ = g.Wait() // errors are in l.errs
}

func (l *load) write(s *Store, key string, n int) bool {
	l.mu.Lock()
	l.tried[key] = n
	l.mu.Unlock()
	value := append(fmt.Appendf(nil, "%d ", n), bytes.Repeat([]byte("x"), 1000)...)
	err := s.Set(context.Background(), part, []byte(key), value)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.errs = append(l.errs, err)
		return false
	}
	l.acknowledged[key] = n
	return true
}

// check makes sure that a store holds what was acknowledged, or what was tried after that.
func (l *load) check(t *testing.T, s *Store) {
	t.Helper()
	for key, n := range l.acknowledged {
		item, err := s.Get(context.Background(), part, []byte(key))
		require.NoError(t, err, key)
		var stored int
		_, err = fmt.Sscan(string(item.Value), &stored)
		require.NoError(t, err)
		require.GreaterOrEqual(t, stored, n, key)
		require.LessOrEqual(t, stored, l.tried[key], key)
	}
}

// TestAFullDiskStopsWritesAndNothingElse lets the file system refuse every change from the n-th on:
// of the log, of a table being flushed or compacted, of the manifest, of the directory.
func TestAFullDiskStopsWritesAndNothingElse(t *testing.T) {
	for name, only := range map[string]func(errorfs.Op) bool{
		"anything": nil,
		"log":      func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") },
		"tables":   func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".sst") },
		"manifest": func(op errorfs.Op) bool { return strings.Contains(op.Path, "MANIFEST") },
	} {
		t.Run(name, func(t *testing.T) {
			failed := 0
			for n := range 20 {
				failed += failAt(t, &faults{failAt: n * n / 4, only: only})
			}
			require.GreaterOrEqual(t, failed, 5)
		})
	}
}

func failAt(t *testing.T, f *faults) int {
	t.Helper()
	mem := newMem(t)
	s := openMem(t, mem)
	require.NoError(t, s.Set(t.Context(), []byte("before"), []byte("k"), []byte("v")))
	require.NoError(t, s.Close())

	s, err := open(t.Context(), f.wrap(mem), memDir, false, testMemTable)
	if err != nil {
		require.ErrorIs(t, err, errInjected)
		s = openMem(t, mem)
		_, err := s.Get(t.Context(), []byte("before"), []byte("k"))
		require.NoError(t, err)
		require.NoError(t, s.Close())
		return 1
	}
	var l load
	l.run(s, 4, 80)
	for _, err := range l.errs {
		require.ErrorIs(t, err, errFailed)
		require.ErrorIs(t, err, errInjected)
	}
	failed := s.disk.failure() != nil
	if failed {
		requireFailed(t, s)
		l.readAcknowledged(t, s)
	} else {
		require.Empty(t, l.errs)
		l.check(t, s)
	}
	crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(1, uint64(f.failAt)))})
	if err := s.Close(); failed || err != nil { // closing syncs, too
		require.ErrorIs(t, err, errInjected)
	}
	for _, fs := range []vfs.FS{crashed, mem} {
		s = openMem(t, fs)
		l.check(t, s)
		require.NoError(t, s.Set(t.Context(), part, []byte("again"), []byte("v")))
		require.NoError(t, s.Close())
	}
	if failed {
		return 1
	}
	return 0
}

// requireFailed makes sure that a store refuses writes, before it does anything, and still reads.
func requireFailed(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	for name, err := range map[string]error{
		"Set":           s.Set(ctx, part, []byte("late"), []byte("v")),
		"SetIf":         s.SetIf(ctx, part, []byte("late"), []byte("v"), kv.Absent),
		"Delete":        s.Delete(ctx, []byte("before"), []byte("k")),
		"DeleteIf":      s.DeleteIf(ctx, []byte("before"), []byte("k"), kv.Present),
		"Apply":         s.Apply(ctx, part, []kv.Write{{Key: []byte("late"), Value: []byte("v")}}, nil),
		"SetMany":       s.SetMany(ctx, part, []kv.Write{{Key: []byte("late"), Value: []byte("v")}}),
		"DropPartition": s.DropPartition(ctx, []byte("before")),
	} {
		require.ErrorIs(t, err, errFailed, name)
	}
	item, err := s.Get(ctx, []byte("before"), []byte("k"))
	require.NoError(t, err)
	require.Equal(t, "v", string(item.Value))
	it, err := s.Scan(ctx, []byte("before"), kv.ScanOptions{})
	require.NoError(t, err)
	require.True(t, it.Next())
	require.False(t, it.Next())
	require.NoError(t, it.Close())
	_, err = s.Get(ctx, part, []byte("late"))
	require.ErrorIs(t, err, kv.ErrNotFound)
}

// readAcknowledged reads from a store that has failed: what was acknowledged, or that it is in doubt, or what was tried after
// that, if a later write has made it durable; who has seen that relies on it.
func (l *load) readAcknowledged(t *testing.T, s *Store) {
	t.Helper()
	for key, n := range l.acknowledged {
		item, err := s.Get(context.Background(), part, []byte(key))
		if err != nil && l.tried[key] != n {
			require.ErrorIs(t, err, errFailed, key)
			continue
		}
		require.NoError(t, err, key)
		var stored int
		_, err = fmt.Sscan(string(item.Value), &stored)
		require.NoError(t, err)
		require.Contains(t, []int{n, l.tried[key]}, stored, key)
		l.acknowledged[key] = stored
	}
	it, err := s.Scan(context.Background(), part, kv.ScanOptions{})
	require.NoError(t, err)
	seen := make(map[string]bool)
	for it.Next() {
		seen[string(it.Key())] = true
	}
	if err := it.Close(); err != nil {
		require.ErrorIs(t, err, errFailed)
		require.NotEmpty(t, l.errs)
		return
	}
	require.GreaterOrEqual(t, len(seen), len(l.acknowledged))
	require.LessOrEqual(t, len(seen), len(l.tried))
}

// TestAFailureInTheBackgroundStopsWrites is what pebble calls when it would end the process, or when a
// compaction meets a damaged table.
func TestAFailureInTheBackgroundStopsWrites(t *testing.T) {
	for _, cause := range []func(*Store, error){
		func(s *Store, err error) { logger{s.disk}.Fatalf("assertion: %w", err) },
		func(s *Store, err error) { s.disk.fail(err) },
	} {
		s := openMem(t, newMem(t))
		require.NoError(t, s.Set(t.Context(), []byte("before"), []byte("k"), []byte("v")))
		broken := errors.New("broken")
		cause(s, broken)
		requireFailed(t, s)
		require.ErrorIs(t, s.Close(), broken)
		require.ErrorIs(t, s.Close(), broken)
	}
}

// TestDamageIsAnErrorOfWhoeverReadsIt flips a byte in every table.
func TestDamageIsAnErrorOfWhoeverReadsIt(t *testing.T) {
	mem := newMem(t)
	s := openMem(t, mem)
	require.NoError(t, s.Set(t.Context(), part, []byte("k"), bytes.Repeat([]byte("v"), 10_000)))
	require.NoError(t, s.db.Flush())
	require.NoError(t, s.Close())
	names, err := mem.List(memDir)
	require.NoError(t, err)
	damaged := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			f, err := mem.OpenReadWrite(mem.PathJoin(memDir, name), vfs.WriteCategoryUnspecified)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte{'x'}, 10)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			damaged++
		}
	}
	require.Positive(t, damaged)

	s = openMem(t, mem)
	_, err = s.Get(t.Context(), part, []byte("k"))
	require.ErrorContains(t, err, "corrupt")
	require.NotErrorIs(t, err, kv.ErrNotFound)
	require.ErrorContains(t, s.SetIf(t.Context(), part, []byte("k"), []byte("v"), kv.Present), "corrupt")
	it, err := s.Scan(t.Context(), part, kv.ScanOptions{})
	require.NoError(t, err)
	require.False(t, it.Next())
	require.ErrorContains(t, it.Close(), "corrupt")
	require.NoError(t, s.Set(t.Context(), part, []byte("other"), []byte("v")))
	requireValue(t, s, "other", "v")
	require.NoError(t, s.Close())
}

// TestACompactionWaitsForTheEndOfAFailedStore keeps it from being tried again and again.
func TestACompactionWaitsForTheEndOfAFailedStore(t *testing.T) {
	d := newDisk(newMem(t))
	d.opening.Store(false)
	d.fail(errInjected)
	f, err := d.Create("/meta/flushed.sst", flushed)
	require.NoError(t, err, "somebody may be waiting for the flush")
	require.NoError(t, f.Close())
	var released atomic.Bool
	var g errgroup.Group
	g.Go(func() error {
		_, err := d.Create("/meta/compacted.sst", compacted)
		if !released.Load() {
			return fmt.Errorf("did not wait, and returned %v", err)
		}
		return err
	})
	for range 1000 {
		runtime.Gosched()
	}
	released.Store(true)
	d.release()
	require.ErrorIs(t, g.Wait(), errInjected)
}

// noCompactions refuses to make the tables of compactions.
type noCompactions struct{ vfs.FS }

func (n noCompactions) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if category == compacted {
		return nil, errors.New("no space left on device")
	}
	return n.FS.Create(name, category)
}

// A compaction that Open begins itself, and for which it waits, fails on a full disk: Open must say so and not wait for ever.
func TestOpenOnAFullDiskReturnsWhereItHasSomethingToCompact(t *testing.T) {
	mem := newMem(t)
	full := func() error {
		s, err := open(t.Context(), noCompactions{mem}, memDir, false, testMemTable)
		if err != nil {
			return err
		}
		err = s.Set(t.Context(), part, []byte("k"), bytes.Repeat([]byte("x"), 1000))
		return errors.Join(err, s.Close())
	}
	failed := false
	for range 20 { // each leaves a table more
		failed = full() != nil || failed
	}
	require.True(t, failed, "nothing was ever compacted")
	s := openMem(t, mem) // with room on the disk everything is well
	item, err := s.Get(t.Context(), part, []byte("k"))
	require.NoError(t, err)
	require.Len(t, item.Value, 1000)
	require.NoError(t, s.Close())
}
