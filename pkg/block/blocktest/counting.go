// SPDX-License-Identifier: Apache-2.0

package blocktest

import (
	"context"
	"iter"
	"sync"

	"github.com/moraine-store/moraine/pkg/block"
)

// Counter is a storage that counts what goes through it. It is safe for concurrent use.
type Counter struct {
	storage block.Storage

	mu     sync.Mutex
	counts Counts
}

// Counts says how often each method was called, and with how much.
type Counts struct {
	Put, Get, GetRange, Stat, List, Delete, Refresh, Sync Count
}

// Count belongs to one method. Failed calls count as calls, without files and bytes.
type Count struct {
	Calls int
	Files int   // named by the call, or yielded by List so far
	Bytes int64 // passed or returned
}

// Counting wraps a storage. Closing the counter closes the storage.
func Counting(s block.Storage) *Counter { return &Counter{storage: s} }

// Counts returns what was counted since the start or the last Reset.
func (c *Counter) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// Reset starts again from zero.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = Counts{}
}

func (c *Counter) add(to *Count, files, size int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to.Calls++
	if err == nil {
		to.Files += files
		to.Bytes += int64(size)
	}
}

// Put implements [block.Storage].
func (c *Counter) Put(ctx context.Context, name string, data []byte) error {
	err := c.storage.Put(ctx, name, data)
	c.add(&c.counts.Put, 1, len(data), err)
	return err
}

// Get implements [block.Storage].
func (c *Counter) Get(ctx context.Context, name string) ([]byte, error) {
	data, err := c.storage.Get(ctx, name)
	c.add(&c.counts.Get, 1, len(data), err)
	return data, err
}

// GetRange implements [block.Storage].
func (c *Counter) GetRange(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	data, err := c.storage.GetRange(ctx, name, offset, length)
	c.add(&c.counts.GetRange, 1, len(data), err)
	return data, err
}

// Stat implements [block.Storage].
func (c *Counter) Stat(ctx context.Context, name string) (block.Info, error) {
	info, err := c.storage.Stat(ctx, name)
	c.add(&c.counts.Stat, 1, 0, err)
	return info, err
}

// List implements [block.Storage].
func (c *Counter) List(ctx context.Context, prefix string) iter.Seq2[block.Info, error] {
	return func(yield func(block.Info, error) bool) {
		c.add(&c.counts.List, 0, 0, nil)
		for info, err := range c.storage.List(ctx, prefix) {
			if err == nil {
				c.mu.Lock()
				c.counts.List.Files++
				c.mu.Unlock()
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Delete implements [block.Storage].
func (c *Counter) Delete(ctx context.Context, name string) error {
	err := c.storage.Delete(ctx, name)
	c.add(&c.counts.Delete, 1, 0, err)
	return err
}

// Refresh implements [block.Storage].
func (c *Counter) Refresh(ctx context.Context, name string) error {
	err := c.storage.Refresh(ctx, name)
	c.add(&c.counts.Refresh, 1, 0, err)
	return err
}

// Sync implements [block.Storage].
func (c *Counter) Sync(ctx context.Context, names []string) error {
	err := c.storage.Sync(ctx, names)
	c.add(&c.counts.Sync, len(names), 0, err)
	return err
}

// Close implements [block.Storage].
func (c *Counter) Close() error { return c.storage.Close() }
