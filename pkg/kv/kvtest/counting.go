// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"context"
	"sync"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Counter is a store that counts the calls it passes on. It is safe for concurrent use.
type Counter struct {
	store kv.Store

	mu     sync.Mutex
	counts map[string]int
}

var (
	_ kv.ManySetter       = (*Counter)(nil)
	_ kv.PartitionDropper = (*Counter)(nil)
	_ kv.Publisher        = (*Counter)(nil)
)

// Counting wraps a store. A scan counts once, however many pages it reads; kv.SetMany,
// kv.DropPartition and kv.Publish count once too, whether or not the store is capable of them; Limits and Close,
// which reach no engine, do not count.
func Counting(s kv.Store) *Counter {
	return &Counter{store: s, counts: make(map[string]int)}
}

// Counts returns how often each method was called, by name, without those that were not.
func (c *Counter) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := make(map[string]int, len(c.counts))
	for name, n := range c.counts {
		counts[name] = n
	}
	return counts
}

// Total returns the number of calls.
func (c *Counter) Total() int {
	total := 0
	for _, n := range c.Counts() {
		total += n
	}
	return total
}

// Reset starts again from zero.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.counts)
}

func (c *Counter) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[name]++
}

func (c *Counter) Get(ctx context.Context, partition, key []byte) (kv.Item, error) {
	c.count("Get")
	return c.store.Get(ctx, partition, key)
}

func (c *Counter) Set(ctx context.Context, partition, key, value []byte) error {
	c.count("Set")
	return c.store.Set(ctx, partition, key, value)
}

func (c *Counter) SetIf(ctx context.Context, partition, key, value []byte, p kv.Predicate) error {
	c.count("SetIf")
	return c.store.SetIf(ctx, partition, key, value, p)
}

func (c *Counter) Delete(ctx context.Context, partition, key []byte) error {
	c.count("Delete")
	return c.store.Delete(ctx, partition, key)
}

func (c *Counter) DeleteIf(ctx context.Context, partition, key []byte, p kv.Predicate) error {
	c.count("DeleteIf")
	return c.store.DeleteIf(ctx, partition, key, p)
}

func (c *Counter) Scan(ctx context.Context, partition []byte, o kv.ScanOptions) (kv.Iterator, error) {
	c.count("Scan")
	return c.store.Scan(ctx, partition, o)
}

func (c *Counter) Apply(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) error {
	c.count("Apply")
	return c.store.Apply(ctx, partition, writes, fence)
}

func (c *Counter) SetMany(ctx context.Context, partition []byte, writes []kv.Write) error {
	c.count("SetMany")
	return kv.SetMany(ctx, c.store, partition, writes)
}

func (c *Counter) DropPartition(ctx context.Context, partition []byte) error {
	c.count("DropPartition")
	return kv.DropPartition(ctx, c.store, partition)
}

func (c *Counter) Publish(ctx context.Context, before []kv.Record, last kv.Record, p kv.Predicate) error {
	c.count("Publish")
	return kv.Publish(ctx, c.store, before, last, p)
}

func (c *Counter) Limits() kv.Limits { return c.store.Limits() }
func (c *Counter) Close() error      { return c.store.Close() }
