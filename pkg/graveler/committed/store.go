// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

const (
	// DefaultCacheBytes is the size of the caches where Config does not say.
	DefaultCacheBytes = 64 << 20
	// minWriters lets a slow storage work on several files also where there are few processors.
	minWriters = 4
	// refreshAfter is the age from which a file that a build finds in place is refreshed; see sweep.go.
	refreshAfter = graveler.FileGrace / 4
)

// Config is what a Store needs.
type Config struct {
	// Storage gives the block storage of a namespace. It is called often, from many goroutines, and what it returns is
	// not closed.
	Storage func(ctx context.Context, ns string) (block.Storage, error)
	// CacheBytes bounds the memory of the caches: a quarter for metaranges and the indexes of ranges, the rest for decoded
	// blocks. 0 means DefaultCacheBytes.
	CacheBytes int64
	// Writers is how many files one Apply builds and puts at a time; each takes a few MiB of memory. 0 means one per
	// processor, at least four.
	Writers int
}

// Store keeps trees on block storage. It is safe for concurrent use.
type Store struct {
	storage func(ctx context.Context, ns string) (block.Storage, error)
	caches  caches
	writers int
	shapes  shapes
	now     func() time.Time
	spare   sync.Pool // memory of writers
}

var _ graveler.Trees = (*Store)(nil)

// New returns a store that must be closed.
func New(c Config) (*Store, error) {
	if c.CacheBytes == 0 {
		c.CacheBytes = DefaultCacheBytes
	}
	if c.Writers == 0 {
		c.Writers = max(minWriters, runtime.GOMAXPROCS(0))
	}
	if c.Storage == nil || c.CacheBytes < 0 || c.Writers < 0 {
		return nil, fmt.Errorf("committed: storage set: %t, cache of %d bytes, %d writers", c.Storage != nil, c.CacheBytes, c.Writers)
	}
	caches, err := newCaches(c.CacheBytes)
	if err != nil {
		return nil, fmt.Errorf("committed: %w", err)
	}
	return &Store{storage: c.Storage, caches: caches, writers: c.Writers, shapes: version1(), now: time.Now}, nil
}

// Close empties the caches. No other call may be running or follow.
func (s *Store) Close() error {
	s.caches.close()
	return nil
}

// EmptyTree is the ID of the tree without entries, which has no file.
func (s *Store) EmptyTree() graveler.MetaRangeID {
	return graveler.MetaRangeID(rangefile.EmptyID().String())
}

// CheckNamespace opens the namespace and looks for a file in it, which need not be there.
func (s *Store) CheckNamespace(ctx context.Context, ns string) error {
	f, err := s.open(ctx, ns)
	if err != nil {
		return err
	}
	if _, err := f.storage.Stat(ctx, fileName(rangefile.EmptyID())); err != nil && !errors.Is(err, block.ErrNotFound) {
		return fmt.Errorf("namespace %s: %w", ns, err)
	}
	return nil
}

// Drop removes all ranges and metaranges of a namespace, and what sweeps have left there. Anything else there, a namespace below
// for one, is left alone.
func (s *Store) Drop(ctx context.Context, ns string) error {
	f, err := s.open(ctx, ns)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(s.writers)
	for info, err := range f.storage.List(gctx, "") {
		if err != nil {
			g.Go(func() error { return err })
			break
		}
		if id, err := rangefile.ParseID(path.Base(info.Name)); err == nil && info.Name == fileName(id) || isSweepFile(info.Name) {
			g.Go(func() error { return f.storage.Delete(gctx, info.Name) })
		}
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("drop namespace %s: %w", ns, err)
	}
	return nil
}
