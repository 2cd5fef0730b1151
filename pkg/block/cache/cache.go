// SPDX-License-Identifier: Apache-2.0

// Package cache keeps whole files of a remote block storage in a bounded directory of the local disk.
//
// A [Cache] is a [block.Storage] in front of another one. A file that is read, wholly or in part, is
// fetched whole, by one fetch for all who wait for it, checked against the size that the storage
// states, and kept until the room is needed for others: the least recently used go first. What is
// written goes to the storage alone; Stat, List, Refresh and Sync ask nobody else.
//
// # What it promises
//
//   - The disk can only make reads slower, never fail them or change what they return: each kept file
//     carries checksums, and one that is damaged, cut short or gone is fetched again. If it cannot be
//     kept, because the disk is full perhaps, [Cache.Stats] says so.
//   - All files together take no more than the bound, those that are being written included.
//   - The directory outlives the process: the next one finds what was kept, with the order in which
//     it was fetched for its order of use. Files are made with mode 0600, the directory with 0700.
//   - Close waits for everything that was begun.
//
// Files being immutable, a kept file is served without asking the storage. One that another process
// has deleted is thus read until it leaves the cache; a deletion that goes through the cache takes
// effect at once. Processes may share a directory, but each counts only the files that it has found
// or fetched, so the bound is for each of them.
package cache

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"github.com/moraine-store/moraine/pkg/block"
)

// Cache is a storage whose files are kept on the local disk. It is safe for concurrent use.
type Cache struct {
	storage block.Storage
	dir     string
	bound   int64

	life context.Context // of fetches
	end  context.CancelFunc
	work sync.WaitGroup // fetches under way

	mu      sync.Mutex
	closed  bool
	entries map[string]*list.Element // of *entry, by its name on disk
	recent  *list.List               // the most recently used first
	bytes   int64                    // of the entries and of files being written
	fetches map[string]*fetch        // that can be joined, by the name of the file
	stats   Stats
}

// entry is a file on disk.
type entry struct {
	disk string // its name there
	size int64  // what it takes there
}

// Stats says what a cache has done since it was opened, and what it holds.
type Stats struct {
	Hits    int   // reads answered from the disk
	Fetches int   // files fetched from the storage
	Evicted int   // files dropped for want of room
	Damaged int   // files on disk that were gone or could not be read as they were written
	Failed  int   // files that could not be kept or removed
	Err     error // why the last of those could not
	Files   int   // on disk now
	Bytes   int64 // on disk now
}

// New puts a cache in front of a storage. The directory is created if it is missing; no more than
// maxBytes are kept there, and a file larger than that is passed through. Closing the cache closes
// the storage.
func New(storage block.Storage, dir string, maxBytes int64) (*Cache, error) {
	if maxBytes <= 0 {
		return nil, fmt.Errorf("cache in %s: the size must be positive, not %d", dir, maxBytes)
	}
	life, end := context.WithCancel(context.Background())
	c := &Cache{
		storage: storage,
		dir:     dir,
		bound:   maxBytes,
		life:    life,
		end:     end,
		entries: make(map[string]*list.Element),
		recent:  list.New(),
		fetches: make(map[string]*fetch),
	}
	if err := c.load(); err != nil {
		end()
		return nil, fmt.Errorf("cache in %s: %w", dir, err)
	}
	return c, nil
}

// Stats returns the counts so far.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Files, s.Bytes = len(c.entries), c.bytes
	return s
}

func (c *Cache) check(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return block.ErrClosed
	}
	return ctx.Err()
}

// Get implements [block.Storage].
func (c *Cache) Get(ctx context.Context, name string) ([]byte, error) {
	return c.read(ctx, name, span{whole: true})
}

// GetRange implements [block.Storage].
func (c *Cache) GetRange(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	return c.read(ctx, name, span{offset: offset, length: length})
}

// span is the part of a file that is wanted.
type span struct {
	whole          bool
	offset, length int64 // unless whole
}

// in returns the bounds of the span in a file of that size.
func (s span) in(size int64) (from, to int64, err error) {
	if s.whole {
		return 0, size, nil
	}
	return s.offset, s.offset + s.length, block.CheckRange(size, s.offset, s.length)
}

func (c *Cache) read(ctx context.Context, name string, want span) ([]byte, error) {
	data, err := c.tryRead(ctx, name, want)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", name, err)
	}
	return data, nil
}

func (c *Cache) tryRead(ctx context.Context, name string, want span) ([]byte, error) {
	if err := block.CheckName(name); err != nil {
		return nil, err
	}
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	if data, err := c.lookup(name, want); !errors.Is(err, errNotKept) {
		return data, err
	}
	return c.await(ctx, name, want)
}

// errNotKept says that only the storage has the answer.
var errNotKept = errors.New("not kept")

func (c *Cache) lookup(name string, want span) ([]byte, error) {
	disk := diskName(name)
	c.mu.Lock()
	found, ok := c.entries[disk]
	if ok {
		c.recent.MoveToFront(found)
	}
	c.mu.Unlock()
	if !ok {
		return nil, errNotKept
	}
	data, err := readFile(filepath.Join(c.dir, disk), name, want)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil || errors.Is(err, block.ErrShort) || errors.Is(err, block.ErrInvalidRange) {
		c.stats.Hits++
		return data, err
	}
	if c.entries[disk] == found { // or else it was evicted meanwhile, and maybe fetched again
		c.stats.Damaged++
		c.remove(found)
	}
	return nil, errNotKept
}

// remove needs the lock.
func (c *Cache) remove(e *list.Element) {
	gone := c.recent.Remove(e).(*entry)
	delete(c.entries, gone.disk)
	c.bytes -= gone.size
	if err := os.Remove(filepath.Join(c.dir, gone.disk)); err != nil && !errors.Is(err, os.ErrNotExist) {
		c.failed(err)
	}
}

// failed needs the lock.
func (c *Cache) failed(err error) {
	c.stats.Failed++
	c.stats.Err = err
}

// forget drops a file, and keeps a fetch that is under way from bringing back what it was.
func (c *Cache) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.fetches[name]; ok {
		f.stale = true
		delete(c.fetches, name)
	}
	if e, ok := c.entries[diskName(name)]; ok {
		c.remove(e)
	}
}

// Put implements [block.Storage]. What is written is not kept, because it may never be read.
func (c *Cache) Put(ctx context.Context, name string, data []byte) error {
	err := c.storage.Put(ctx, name, data)
	c.forget(name) // a damaged file may have been replaced, even if Put says that it has failed
	return err
}

// Delete implements [block.Storage].
func (c *Cache) Delete(ctx context.Context, name string) error {
	err := c.storage.Delete(ctx, name)
	c.forget(name)
	return err
}

// Stat implements [block.Storage].
func (c *Cache) Stat(ctx context.Context, name string) (block.Info, error) {
	return c.storage.Stat(ctx, name)
}

// List implements [block.Storage].
func (c *Cache) List(ctx context.Context, prefix string) iter.Seq2[block.Info, error] {
	return c.storage.List(ctx, prefix)
}

// Refresh implements [block.Storage].
func (c *Cache) Refresh(ctx context.Context, name string) error {
	return c.storage.Refresh(ctx, name)
}

// Sync implements [block.Storage].
func (c *Cache) Sync(ctx context.Context, names []string) error {
	return c.storage.Sync(ctx, names)
}

// Close ends the fetches, waits for them, and closes the storage. Kept files stay.
func (c *Cache) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.work.Wait()
	return c.storage.Close()
}
