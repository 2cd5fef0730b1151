// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/moraine-store/moraine/pkg/block"
)

// meddler stands between a process and its storage.
type meddler struct {
	block.Storage
	put     func(ctx context.Context, name string, data []byte) error
	stat    func(ctx context.Context, name string) (block.Info, error)
	list    func(ctx context.Context, prefix string) iter.Seq2[block.Info, error]
	remove  func(ctx context.Context, name string) error
	refresh func(ctx context.Context, name string) error
	sync    func(ctx context.Context, names []string) error
}

func meddle(s block.Storage) *meddler {
	return &meddler{s, s.Put, s.Stat, s.List, s.Delete, s.Refresh, s.Sync}
}

func (m *meddler) Put(ctx context.Context, name string, data []byte) error {
	return m.put(ctx, name, data)
}
func (m *meddler) Stat(ctx context.Context, name string) (block.Info, error) {
	return m.stat(ctx, name)
}
func (m *meddler) List(ctx context.Context, prefix string) iter.Seq2[block.Info, error] {
	return m.list(ctx, prefix)
}
func (m *meddler) Delete(ctx context.Context, name string) error  { return m.remove(ctx, name) }
func (m *meddler) Refresh(ctx context.Context, name string) error { return m.refresh(ctx, name) }
func (m *meddler) Sync(ctx context.Context, names []string) error { return m.sync(ctx, names) }

func unmarked(s block.Storage) block.Storage {
	m := meddle(s)
	m.put = func(ctx context.Context, name string, data []byte) error {
		if isMarker(name) {
			return nil
		}
		return s.Put(ctx, name, data)
	}
	return m
}

// markedLate puts a marker when the age of the files has been looked at, before the first deletion.
func markedLate(s block.Storage) block.Storage {
	m := meddle(s)
	var late func() error
	m.put = func(ctx context.Context, name string, data []byte) error {
		if isMarker(name) {
			late = func() error { return s.Put(ctx, name, data) }
			return nil
		}
		return s.Put(ctx, name, data)
	}
	m.remove = func(ctx context.Context, name string) error {
		if do := late; do != nil && !isSweepFile(name) {
			late = nil
			if err := do(); err != nil {
				return err
			}
		}
		return s.Delete(ctx, name)
	}
	return m
}

// unmarkedEarly takes the marker away before the last deletions.
func unmarkedEarly(s block.Storage) block.Storage {
	m := meddle(s)
	marker := ""
	m.put = func(ctx context.Context, name string, data []byte) error {
		if isMarker(name) {
			marker = name
		}
		return s.Put(ctx, name, data)
	}
	m.remove = func(ctx context.Context, name string) error {
		if marker != "" && !isSweepFile(name) {
			if err := s.Delete(ctx, marker); err != nil {
				return err
			}
		}
		return s.Delete(ctx, name)
	}
	return m
}

// stopped has each of its deletions take effect at any time after it was sent.
func stopped(s block.Storage) block.Storage {
	m := meddle(s)
	m.remove = func(ctx context.Context, name string) error { return s.Delete(context.WithoutCancel(ctx), name) }
	return m
}

// ageless takes all files of trees for old.
func ageless(s block.Storage) block.Storage {
	m := meddle(s)
	m.stat = func(ctx context.Context, name string) (block.Info, error) {
		info, err := s.Stat(ctx, name)
		if !isSweepFile(name) {
			info.ModTime = time.Time{}
		}
		return info, err
	}
	return m
}

func blind(s block.Storage) block.Storage {
	m := meddle(s)
	m.list = func(ctx context.Context, prefix string) iter.Seq2[block.Info, error] {
		if prefix == runPrefix {
			return func(func(block.Info, error) bool) {}
		}
		return s.List(ctx, prefix)
	}
	return m
}

// impatient does not wait for a sweep that it has seen.
func impatient(s block.Storage) block.Storage {
	m := meddle(s)
	m.stat = func(ctx context.Context, name string) (block.Info, error) {
		if isMarker(name) {
			return block.Info{}, block.ErrNotFound
		}
		return s.Stat(ctx, name)
	}
	return m
}

// fast takes leases by a clock that is ahead of the one that stamps the markers.
func fast(s block.Storage) block.Storage {
	m := meddle(s)
	m.stat = func(ctx context.Context, name string) (block.Info, error) {
		info, err := s.Stat(ctx, name)
		if strings.HasPrefix(name, clockPrefix) {
			info.ModTime = info.ModTime.Add(2 * sweepLease)
		}
		return info, err
	}
	return m
}

func deaf(s block.Storage) block.Storage {
	m := meddle(s)
	m.sync = func(ctx context.Context, names []string) error {
		if err := s.Sync(ctx, names); !errors.Is(err, block.ErrNotFound) {
			return err
		}
		return nil
	}
	return m
}

func unrefreshing(s block.Storage) block.Storage {
	m := meddle(s)
	m.refresh = func(ctx context.Context, name string) error {
		_, err := s.Stat(ctx, name)
		return err
	}
	return m
}

// Each part of the protocol is needed: without it there is a run, soon found, in which a tree loses a file.
func TestEachPartOfASweepIsNeeded(t *testing.T) {
	for name, plant := range map[string]planting{
		"no marker":                          {sweeper: unmarked},
		"files looked at before the marker":  {sweeper: markedLate},
		"marker gone before the deletions":   {sweeper: unmarkedEarly},
		"deletions without a limit":          {sweeper: stopped},
		"age of the files not looked at":     {sweeper: ageless},
		"no look for markers":                {builder: blind},
		"no wait for a sweep":                {builder: impatient},
		"leases by another clock":            {builder: fast},
		"missing files not noticed":          {builder: deaf},
		"files found in place not refreshed": {builder: unrefreshing},
	} {
		t.Run(name, func(t *testing.T) {
			var total sweepCounts
			for seed := range uint64(50_000) {
				if problem := exploreSweeps(t, seed, 0, plant, &total); problem != "" {
					found, _, _ := strings.Cut(problem, "\n")
					t.Logf("found by run %d: %s", seed+1, found)
					return
				}
			}
			t.Fatal("not found")
		})
	}
}
