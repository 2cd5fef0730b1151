// SPDX-License-Identifier: Apache-2.0

// Package mem is a block storage in memory, for tests: its files are gone when it is closed.
// It copies on the way in and out, and keeps every promise of package block but durability.
package mem

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moraine-store/moraine/pkg/block"
)

// Open is the [block.Opener] of the URL "mem:". Each call gives another, empty storage.
func Open(_ context.Context, url string, o block.OpenOptions) (block.Storage, error) {
	if !strings.EqualFold(url, "mem:") {
		return nil, fmt.Errorf("%w %q: nothing may follow the scheme", block.ErrInvalidURL, url)
	}
	if o.ReadOnly {
		return block.ReadOnly(New()), nil
	}
	return New(), nil
}

// New gives an empty storage.
func New() *Storage { return &Storage{files: map[string]file{}} }

// Storage keeps files in a map.
type Storage struct {
	mu     sync.RWMutex
	files  map[string]file
	closed bool
}

type file struct {
	data    []byte // never changed once it is here
	modTime time.Time
}

// check refuses a call that must not go ahead. The caller holds the lock.
func (s *Storage) check(ctx context.Context, name string) error {
	if err := block.CheckName(name); err != nil {
		return err
	}
	return s.usable(ctx)
}

func (s *Storage) usable(ctx context.Context) error {
	if s.closed {
		return block.ErrClosed
	}
	return ctx.Err()
}

func (s *Storage) find(ctx context.Context, op, name string) (file, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.check(ctx, name); err != nil {
		return file{}, wrap(op, name, err)
	}
	f, ok := s.files[name]
	if !ok {
		return file{}, wrap(op, name, block.ErrNotFound)
	}
	return f, nil
}

// Put implements [block.Storage].
func (s *Storage) Put(ctx context.Context, name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx, name); err != nil {
		return wrap("put", name, err)
	}
	if f, ok := s.files[name]; !ok || len(f.data) != len(data) {
		s.files[name] = file{slices.Clone(data), time.Now()}
	}
	return nil
}

// Get implements [block.Storage].
func (s *Storage) Get(ctx context.Context, name string) ([]byte, error) {
	f, err := s.find(ctx, "get", name)
	if err != nil {
		return nil, err
	}
	return slices.Clone(f.data), nil
}

// GetRange implements [block.Storage].
func (s *Storage) GetRange(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	f, err := s.find(ctx, "get", name)
	if err != nil {
		return nil, err
	}
	if err := block.CheckRange(int64(len(f.data)), offset, length); err != nil {
		return nil, wrap("get", name, err)
	}
	return slices.Clone(f.data[offset : offset+length]), nil
}

// Stat implements [block.Storage].
func (s *Storage) Stat(ctx context.Context, name string) (block.Info, error) {
	f, err := s.find(ctx, "stat", name)
	if err != nil {
		return block.Info{}, err
	}
	return f.info(name), nil
}

func (f file) info(name string) block.Info {
	return block.Info{Name: name, Size: int64(len(f.data)), ModTime: f.modTime}
}

// List implements [block.Storage]. It shows the files of one instant.
func (s *Storage) List(ctx context.Context, prefix string) iter.Seq2[block.Info, error] {
	return func(yield func(block.Info, error) bool) {
		infos, err := s.snapshot(ctx, prefix)
		if err != nil {
			yield(block.Info{}, wrap("list", prefix, err))
			return
		}
		for _, info := range infos {
			if err := ctx.Err(); err != nil {
				yield(block.Info{}, wrap("list", prefix, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (s *Storage) snapshot(ctx context.Context, prefix string) ([]block.Info, error) {
	if err := block.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var infos []block.Info
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if strings.HasPrefix(name, prefix) {
			infos = append(infos, s.files[name].info(name))
		}
	}
	return infos, nil
}

// Delete implements [block.Storage].
func (s *Storage) Delete(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx, name); err != nil {
		return wrap("delete", name, err)
	}
	delete(s.files, name)
	return nil
}

// Refresh implements [block.Storage].
func (s *Storage) Refresh(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx, name); err != nil {
		return wrap("refresh", name, err)
	}
	f, ok := s.files[name]
	if !ok {
		return wrap("refresh", name, block.ErrNotFound)
	}
	s.files[name] = file{f.data, time.Now()}
	return nil
}

// Sync implements [block.Storage]: there is nothing to do but to look for the files.
func (s *Storage) Sync(ctx context.Context, names []string) error {
	s.mu.RLock()
	err := s.usable(ctx)
	s.mu.RUnlock()
	if err != nil {
		return fmt.Errorf("sync %d files: %w", len(names), err)
	}
	for _, name := range names {
		if _, err := s.find(ctx, "sync", name); err != nil {
			return err
		}
	}
	return nil
}

// Close implements [block.Storage] and drops all files.
func (s *Storage) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files, s.closed = nil, true
	return nil
}

func wrap(op, name string, err error) error { return fmt.Errorf("%s %s: %w", op, name, err) }
