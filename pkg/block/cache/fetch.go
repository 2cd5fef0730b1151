// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"slices"

	"github.com/moraine-store/moraine/pkg/block"
)

// fetch brings one file from the storage to all who wait for it. It belongs to none of them, so that
// it goes on when the one who began it gives up; when all have given up it is cancelled.
type fetch struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{} // closed when the three below are set

	data  []byte
	large bool // it cannot be kept, so nothing was fetched
	err   error

	waiters int  // needs the lock of the cache
	stale   bool // likewise; what it brings must not be kept
}

// await joins or begins the fetch of a file.
func (c *Cache) await(ctx context.Context, name string, want span) ([]byte, error) {
	f, err := c.join(name)
	if err != nil {
		return nil, err
	}
	defer c.leave(f)
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case f.err != nil:
		return nil, f.err
	case f.large && want.whole:
		return c.storage.Get(ctx, name)
	case f.large:
		return c.storage.GetRange(ctx, name, want.offset, want.length)
	}
	from, to, err := want.in(int64(len(f.data)))
	if err != nil {
		return nil, err
	}
	return slices.Clone(f.data[from:to]), nil
}

func (c *Cache) join(name string) (*fetch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, block.ErrClosed
	}
	f, ok := c.fetches[name]
	if !ok {
		ctx, cancel := context.WithCancel(c.life)
		f = &fetch{name: name, cancel: cancel, done: make(chan struct{})}
		c.fetches[name] = f
		c.work.Go(func() { c.run(ctx, f) })
	}
	f.waiters++
	return f, nil
}

// leave cancels a fetch that nobody waits for any more. One that has ended may still be keeping what
// it has brought; it goes on with that.
func (c *Cache) leave(f *fetch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.waiters--
	select {
	case <-f.done:
	default:
		if f.waiters == 0 {
			f.cancel()
			c.detach(f)
		}
	}
}

// detach keeps newcomers from joining. It needs the lock.
func (c *Cache) detach(f *fetch) {
	if c.fetches[f.name] == f {
		delete(c.fetches, f.name)
	}
}

// run answers those who wait as soon as the file is here. Who comes while it is written to the disk
// is answered too.
func (c *Cache) run(ctx context.Context, f *fetch) {
	defer f.cancel()
	f.data, f.large, f.err = c.fetch(ctx, f.name)
	if f.err != nil && c.life.Err() != nil {
		f.err = block.ErrClosed
	}
	close(f.done)
	if f.err == nil && !f.large {
		c.keep(f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.detach(f)
}

func (c *Cache) fetch(ctx context.Context, name string) (data []byte, large bool, err error) {
	info, err := c.storage.Stat(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if diskSize(info.Size) > c.bound {
		return nil, true, nil
	}
	data, err = c.storage.Get(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if int64(len(data)) != info.Size {
		return nil, false, fmt.Errorf("fetched %d bytes of a file of %d", len(data), info.Size)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Fetches++
	return data, false, nil
}
