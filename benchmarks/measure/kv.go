// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Store counts the calls that pass through to an engine, and the bytes of keys and values that they write. A scan counts once,
// however many pages it reads, and so do kv.SetMany, kv.DropPartition and kv.Publish.
type Store struct {
	kv.Store
	get, set, setIf, delete, deleteIf, scan, apply, setMany, dropPartition, publish atomic.Int64

	bytes  atomic.Int64
	failed atomic.Int64 // writes whose fence or predicate did not hold
}

var (
	_ kv.ManySetter       = (*Store)(nil)
	_ kv.PartitionDropper = (*Store)(nil)
	_ kv.Publisher        = (*Store)(nil)
)

// Counts returns what was counted so far, by name.
func (s *Store) Counts() map[string]int64 {
	return map[string]int64{
		"kv.get": s.get.Load(), "kv.set": s.set.Load(), "kv.set_if": s.setIf.Load(), "kv.delete": s.delete.Load(), "kv.delete_if": s.deleteIf.Load(),
		"kv.scan": s.scan.Load(), "kv.apply": s.apply.Load(), "kv.set_many": s.setMany.Load(), "kv.drop_partition": s.dropPartition.Load(), "kv.publish": s.publish.Load(),
		"kv.bytes_written": s.bytes.Load(), "kv.conditions_failed": s.failed.Load(),
	}
}

// Writes returns how many calls wrote something, or tried to: each waits until it is durable.
func (s *Store) Writes() int64 {
	return s.set.Load() + s.setIf.Load() + s.delete.Load() + s.deleteIf.Load() + s.apply.Load() + s.setMany.Load() + s.dropPartition.Load() + s.publish.Load()
}

// Calls returns how many calls there were, reads and writes.
func (s *Store) Calls() int64 { return s.get.Load() + s.scan.Load() + s.Writes() }

type retriesKey struct{}

// CountRetries returns a context for one call after another: each write whose fence did not hold, and which is therefore repeated, adds to n.
func CountRetries(ctx context.Context, n *int64) context.Context {
	return context.WithValue(ctx, retriesKey{}, n)
}

func (s *Store) outcome(ctx context.Context, err error) error {
	if errors.Is(err, kv.ErrFenceFailed) || errors.Is(err, kv.ErrPredicateFailed) {
		s.failed.Add(1)
		if n, ok := ctx.Value(retriesKey{}).(*int64); ok {
			atomic.AddInt64(n, 1)
		}
	}
	return err
}

// Get implements [kv.Store].
func (s *Store) Get(ctx context.Context, partition, key []byte) (kv.Item, error) {
	s.get.Add(1)
	return s.Store.Get(ctx, partition, key)
}

// Set implements [kv.Store].
func (s *Store) Set(ctx context.Context, partition, key, value []byte) error {
	s.set.Add(1)
	s.bytes.Add(int64(len(key) + len(value)))
	return s.Store.Set(ctx, partition, key, value)
}

// SetIf implements [kv.Store].
func (s *Store) SetIf(ctx context.Context, partition, key, value []byte, p kv.Predicate) error {
	s.setIf.Add(1)
	s.bytes.Add(int64(len(key) + len(value)))
	return s.outcome(ctx, s.Store.SetIf(ctx, partition, key, value, p))
}

// Delete implements [kv.Store].
func (s *Store) Delete(ctx context.Context, partition, key []byte) error {
	s.delete.Add(1)
	return s.Store.Delete(ctx, partition, key)
}

// DeleteIf implements [kv.Store].
func (s *Store) DeleteIf(ctx context.Context, partition, key []byte, p kv.Predicate) error {
	s.deleteIf.Add(1)
	return s.outcome(ctx, s.Store.DeleteIf(ctx, partition, key, p))
}

// Scan implements [kv.Store].
func (s *Store) Scan(ctx context.Context, partition []byte, o kv.ScanOptions) (kv.Iterator, error) {
	s.scan.Add(1)
	return s.Store.Scan(ctx, partition, o)
}

// Apply implements [kv.Store].
func (s *Store) Apply(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) error {
	s.apply.Add(1)
	s.addBytes(writes)
	return s.outcome(ctx, s.Store.Apply(ctx, partition, writes, fence))
}

// SetMany implements [kv.ManySetter].
func (s *Store) SetMany(ctx context.Context, partition []byte, writes []kv.Write) error {
	s.setMany.Add(1)
	s.addBytes(writes)
	return kv.SetMany(ctx, s.Store, partition, writes)
}

func (s *Store) addBytes(writes []kv.Write) {
	for _, w := range writes {
		s.bytes.Add(int64(len(w.Key) + len(w.Value)))
	}
}

// DropPartition implements [kv.PartitionDropper].
func (s *Store) DropPartition(ctx context.Context, partition []byte) error {
	s.dropPartition.Add(1)
	return kv.DropPartition(ctx, s.Store, partition)
}

// Publish implements [kv.Publisher].
func (s *Store) Publish(ctx context.Context, before []kv.Record, last kv.Record, p kv.Predicate) error {
	s.publish.Add(1)
	for _, r := range before {
		s.bytes.Add(int64(len(r.Key) + len(r.Value)))
	}
	s.bytes.Add(int64(len(last.Key) + len(last.Value)))
	return s.outcome(ctx, kv.Publish(ctx, s.Store, before, last, p))
}
