// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/block"
	blockmem "github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
)

func plainTrees(_ *rapid.T, clock func() time.Time) graveler.Trees {
	trees := memtrees.New()
	trees.Now = clock
	return trees
}

// fileTrees are trees in files whose ages a test decides about.
func fileTrees(t *rapid.T, clock func() time.Time) graveler.Trees {
	storages := map[string]block.Storage{}
	var mu sync.Mutex
	trees, err := committed.New(committed.Config{Storage: func(_ context.Context, ns string) (block.Storage, error) {
		mu.Lock()
		defer mu.Unlock()
		if storages[ns] == nil {
			storages[ns] = &agedStorage{Storage: blockmem.New(), clock: clock, put: map[string]time.Time{}}
		}
		return storages[ns], nil
	}})
	require.NoError(t, err)
	return agedTrees{trees, clock}
}

// agedStorage makes files as old, seen from the present, as they are by the test's clock.
type agedStorage struct {
	block.Storage
	clock func() time.Time

	mu  sync.Mutex
	put map[string]time.Time
}

func (s *agedStorage) stamp(name string, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.put[name]; !ok || again {
		s.put[name] = s.clock()
	}
}

func (s *agedStorage) aged(info block.Info) block.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	info.ModTime = time.Now().Add(-s.clock().Sub(s.put[info.Name]))
	return info
}

func (s *agedStorage) Put(ctx context.Context, name string, data []byte) error {
	err := s.Storage.Put(ctx, name, data)
	if err == nil {
		s.stamp(name, false)
	}
	return err
}

func (s *agedStorage) Refresh(ctx context.Context, name string) error {
	err := s.Storage.Refresh(ctx, name)
	if err == nil {
		s.stamp(name, true)
	}
	return err
}

func (s *agedStorage) Delete(ctx context.Context, name string) error {
	err := s.Storage.Delete(ctx, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.put, name)
	return err
}

func (s *agedStorage) Stat(ctx context.Context, name string) (block.Info, error) {
	info, err := s.Storage.Stat(ctx, name)
	return s.aged(info), err
}

func (s *agedStorage) List(ctx context.Context, prefix string) iter.Seq2[block.Info, error] {
	return func(yield func(block.Info, error) bool) {
		for info, err := range s.Storage.List(ctx, prefix) {
			if !yield(s.aged(info), err) {
				return
			}
		}
	}
}

// agedTrees tells the times of files by the test's clock.
type agedTrees struct {
	*committed.Store
	clock func() time.Time
}

func (a agedTrees) ahead() time.Duration { return time.Until(a.clock()) }

func (a agedTrees) FileTime(ctx context.Context, ns string) (time.Time, error) {
	at, err := a.Store.FileTime(ctx, ns)
	return at.Add(a.ahead()), err
}

func (a agedTrees) ListFiles(ctx context.Context, ns string) iter.Seq2[graveler.StoredFile, error] {
	return func(yield func(graveler.StoredFile, error) bool) {
		for f, err := range a.Store.ListFiles(ctx, ns) {
			f.ModTime = f.ModTime.Add(a.ahead())
			if !yield(f, err) {
				return
			}
		}
	}
}

func (a agedTrees) RemoveFiles(ctx context.Context, ns string, ids []string, before time.Time) ([]string, error) {
	return a.Store.RemoveFiles(ctx, ns, ids, before.Add(-a.ahead()))
}
