// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/kv"
)

// TestWhatIsAcknowledgedSurvivesACrash takes copies of the file system, as a loss of power may leave
// it, while writers are at work.
func TestWhatIsAcknowledgedSurvivesACrash(t *testing.T) {
	mem := newMem(t)
	s := openMem(t, mem)
	type crash struct {
		before map[string]int
		fs     *vfs.MemFS
	}
	var crashes []crash
	var l load
	l.acknowledged, l.tried = make(map[string]int), make(map[string]int)
	var g errgroup.Group
	for w := range 4 {
		g.Go(func() error {
			for n := 1; n <= 300; n++ {
				if !l.write(s, fmt.Sprintf("%d-%d", w, n%7), n) {
					return errors.Join(l.errs...)
				}
				if w > 0 || n%15 != 0 {
					continue
				}
				c := crash{before: make(map[string]int)}
				l.mu.Lock()
				for key, n := range l.acknowledged {
					c.before[key] = n
				}
				l.mu.Unlock()
				// From everything that was not synced to nothing of it.
				c.fs = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100 - n/3, RNG: rand.New(rand.NewPCG(1, uint64(n)))})
				crashes = append(crashes, c)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.NoError(t, s.Close())
	require.Len(t, crashes, 20)
	for _, c := range crashes {
		s := openMem(t, c.fs)
		(&load{acknowledged: c.before, tried: l.tried}).check(t, s)
		require.NoError(t, s.Close())
	}
}

// TestWhatIsAcknowledgedSurvivesAKill kills a process, this test binary, that writes and says so.
func TestWhatIsAcknowledgedSurvivesAKill(t *testing.T) {
	if dir := os.Getenv("PEBBLE_TEST_WRITE"); dir != "" {
		s := openDir(t, dir, kv.OpenOptions{})
		var mu sync.Mutex
		var g errgroup.Group
		for w := range 8 {
			g.Go(func() error {
				for n := 0; ; n++ {
					key := fmt.Sprintf("%d-%d", w, n)
					if err := s.Set(context.Background(), part, []byte(key), []byte("v")); err != nil {
						return err
					}
					mu.Lock()
					_, err := fmt.Println("wrote", key)
					mu.Unlock()
					if err != nil {
						return err
					}
				}
			})
		}
		require.NoError(t, g.Wait())
		return
	}
	dir := newDir(t)
	writer := exec.Command(os.Args[0], "-test.run=^TestWhatIsAcknowledgedSurvivesAKill$")
	writer.Env = append(os.Environ(), "PEBBLE_TEST_WRITE="+dir)
	out, err := writer.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, writer.Start())
	var said strings.Builder
	buf := make([]byte, 4096)
	for strings.Count(said.String(), "\n") < 500 {
		n, err := out.Read(buf)
		require.NoError(t, err)
		said.Write(buf[:n])
	}
	require.NoError(t, writer.Process.Kill())
	require.Error(t, writer.Wait())

	s := openDir(t, dir, kv.OpenOptions{})
	lines := strings.Split(said.String(), "\n")
	for _, line := range lines[:len(lines)-1] {
		key, ok := strings.CutPrefix(line, "wrote ")
		require.True(t, ok, line)
		requireValue(t, s, key, "v")
	}
}

// underWay returns the number of commits that are visible and not yet settled.
func (s *Store) underWay() int {
	commits := map[*commit]struct{}{}
	for i := range s.unsettled.table {
		slot := &s.unsettled.table[i]
		slot.Lock()
		maps.Copy(commits, slot.commits)
		slot.Unlock()
	}
	return len(commits)
}

func TestWaitingWritesShareASync(t *testing.T) {
	var g gate
	s := openMem(t, g.wrap(newMem(t)))
	const writers = 64
	before := g.count()
	open := g.shut()
	var writes errgroup.Group
	for w := range writers {
		writes.Go(func() error { return s.Set(context.Background(), part, []byte{byte(w)}, []byte("v")) })
	}
	for s.underWay() != writers {
		runtime.Gosched()
	}
	open()
	require.NoError(t, writes.Wait())
	require.LessOrEqual(t, g.count()-before, 3, "of 64 writes, one to three were in the sync that was held up")
	require.NoError(t, s.Close())
}

// TestWritesOfOneKeyShareASync is what releasing locks before the sync is for.
func TestWritesOfOneKeyShareASync(t *testing.T) {
	var g gate
	s, ctx := openMem(t, g.wrap(newMem(t))), context.Background()
	const writers = 16
	require.NoError(t, s.SetIf(ctx, part, []byte("fence"), []byte("0"), kv.Absent))
	before := g.count()
	open := g.shut()
	var writes errgroup.Group
	for w := range writers {
		writes.Go(func() error { return s.Set(ctx, part, []byte("k"), []byte{byte(w)}) })
		writes.Go(func() error {
			fence := &kv.Fence{Partition: part, Key: []byte("fence"), Predicate: kv.Equals([]byte("0"))}
			return s.Apply(ctx, part, []kv.Write{{Key: fmt.Append(nil, w), Value: []byte("v")}}, fence)
		})
	}
	for s.underWay() != 2*writers {
		runtime.Gosched()
	}
	writes.Go(func() error { return s.SetIf(ctx, part, []byte("fence"), []byte("1"), kv.Equals([]byte("0"))) })
	for s.underWay() != 2*writers+1 {
		runtime.Gosched()
	}
	open()
	require.NoError(t, writes.Wait())
	require.LessOrEqual(t, g.count()-before, 3)
	require.NoError(t, s.Close())
}

// TestNothingIsReadBeforeItIsDurable holds up the sync of some writes and looks at what they touched.
func TestNothingIsReadBeforeItIsDurable(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(ctx context.Context, s *Store) error
		reads map[string]func(ctx context.Context, s *Store) (string, error)
	}{
		"set": {
			func(ctx context.Context, s *Store) error { return s.Set(ctx, part, []byte("k"), []byte("new")) },
			map[string]func(context.Context, *Store) (string, error){"get": get, "scan": scan, "refused": refused, "fence failed": fenceFailed, "fence holds": fenceHolds},
		},
		"apply": {
			func(ctx context.Context, s *Store) error {
				return s.Apply(ctx, part, []kv.Write{{Key: []byte("k"), Value: []byte("new")}, {Key: []byte("l"), Value: []byte("new")}}, nil)
			},
			map[string]func(context.Context, *Store) (string, error){"get": get, "scan": scan, "refused": refused, "fence failed": fenceFailed},
		},
		"publish before": {
			func(ctx context.Context, s *Store) error {
				return s.Publish(ctx, []kv.Record{{Partition: part, Key: []byte("k"), Value: []byte("new")}}, kv.Record{Partition: []byte("last"), Key: []byte("l"), Value: []byte("new")}, kv.Absent)
			},
			map[string]func(context.Context, *Store) (string, error){"get": get, "scan": scan, "refused": refused, "fence failed": fenceFailed},
		},
		"publish last": {
			func(ctx context.Context, s *Store) error {
				return s.Publish(ctx, []kv.Record{{Partition: []byte("before"), Key: []byte("l"), Value: []byte("new")}}, kv.Record{Partition: part, Key: []byte("k"), Value: []byte("new")}, kv.Present)
			},
			map[string]func(context.Context, *Store) (string, error){"get": get, "scan": scan, "refused": refused, "publish refused": publishRefused, "fence failed": fenceFailed, "fence holds": fenceHolds},
		},
		"delete": {
			func(ctx context.Context, s *Store) error { return s.Delete(ctx, part, []byte("k")) },
			map[string]func(context.Context, *Store) (string, error){"get": get, "scan": scan, "drop": drop},
		},
		"drop": {
			func(ctx context.Context, s *Store) error { return s.DropPartition(ctx, part) },
			map[string]func(context.Context, *Store) (string, error){"get": get, "scan": scan, "drop": drop},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var g gate
			s := openMem(t, g.wrap(newMem(t)))
			ctx := context.Background()
			require.NoError(t, s.Set(ctx, part, []byte("k"), []byte("old")))
			require.NoError(t, s.Set(ctx, []byte("other"), []byte("k"), []byte("v")))
			open := g.shut()
			var opened atomic.Bool
			var calls, impatientCalls errgroup.Group
			calls.Go(func() error { return tt.write(ctx, s) })
			<-g.entered
			for s.underWay() != 1 {
				runtime.Gosched()
			}

			for name, read := range tt.reads {
				calls.Go(func() error {
					got, err := read(ctx, s)
					if !opened.Load() {
						return fmt.Errorf("%s returned %q, %v before it was durable", name, got, err)
					}
					return err
				})
				// One that does not want to wait gets no answer.
				impatient, cancel := context.WithCancel(ctx)
				impatientCalls.Go(func() error {
					_, err := read(impatient, s)
					if !errors.Is(err, context.Canceled) {
						return fmt.Errorf("%s: %w, want that the context has ended", name, err)
					}
					return nil
				})
				runtime.Gosched()
				cancel()
			}
			require.NoError(t, impatientCalls.Wait())
			if name != "drop" {
				_, err := s.Get(ctx, []byte("other"), []byte("k"))
				require.NoError(t, err, "what is durable is read at once")
			}
			for range 1000 {
				runtime.Gosched()
			}
			opened.Store(true)
			open()
			require.NoError(t, calls.Wait())
			require.NoError(t, s.Close())
		})
	}
}

func get(ctx context.Context, s *Store) (string, error) {
	item, err := s.Get(ctx, part, []byte("k"))
	if errors.Is(err, kv.ErrNotFound) {
		return "nothing", nil
	}
	return string(item.Value), err
}

func scan(ctx context.Context, s *Store) (string, error) {
	it, err := s.Scan(ctx, part, kv.ScanOptions{})
	if err != nil {
		return "", err
	}
	n := 0
	for it.Next() {
		n++
	}
	return fmt.Sprint(n, " keys"), it.Close()
}

func refused(ctx context.Context, s *Store) (string, error) {
	err := s.SetIf(ctx, part, []byte("k"), []byte("mine"), kv.Equals([]byte("old")))
	if errors.Is(err, kv.ErrPredicateFailed) {
		return "refused", nil
	}
	return "", err
}

func publishRefused(ctx context.Context, s *Store) (string, error) {
	err := s.Publish(ctx, nil, kv.Record{Partition: part, Key: []byte("k"), Value: []byte("mine")}, kv.Equals([]byte("old")))
	if errors.Is(err, kv.ErrPredicateFailed) {
		return "refused", nil
	}
	return "", err
}

func fenceFailed(ctx context.Context, s *Store) (string, error) {
	fence := &kv.Fence{Partition: part, Key: []byte("k"), Predicate: kv.Equals([]byte("old"))}
	err := s.Apply(ctx, part, []kv.Write{{Key: []byte("x"), Value: []byte("mine")}}, fence)
	if errors.Is(err, kv.ErrFenceFailed) {
		return "fence failed", nil
	}
	return "", err
}

func fenceHolds(ctx context.Context, s *Store) (string, error) {
	fence := &kv.Fence{Partition: part, Key: []byte("k"), Predicate: kv.Equals([]byte("new"))}
	return "fence holds", s.Apply(ctx, part, nil, fence)
}

func drop(ctx context.Context, s *Store) (string, error) {
	return "dropped", s.DropPartition(ctx, part)
}

func TestDroppingNothingWritesNothing(t *testing.T) {
	s := openMem(t, newMem(t))
	before := s.db.Metrics().WAL.BytesIn
	require.NoError(t, s.DropPartition(t.Context(), part))
	require.NoError(t, s.Apply(t.Context(), part, nil, nil))
	require.NoError(t, s.SetMany(t.Context(), part, nil))
	require.ErrorIs(t, s.SetIf(t.Context(), part, []byte("k"), []byte("v"), kv.Present), kv.ErrPredicateFailed)
	require.Equal(t, before, s.db.Metrics().WAL.BytesIn)
	require.NoError(t, s.Close())
}
