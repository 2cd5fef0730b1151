// SPDX-License-Identifier: Apache-2.0

package mem

import (
	"context"
	"slices"

	"github.com/moraine-store/moraine/pkg/kv"
)

// SetMany performs all writes in one step.
func (s *Store) SetMany(ctx context.Context, partition []byte, writes []kv.Write) error {
	err := s.Bounds.CheckSetMany(partition, writes)
	if err == nil {
		_, err = s.apply(ctx, partition, writes, nil)
	}
	return kv.Wrap("set many", partition, nil, err)
}

// DropPartition removes a partition in one step.
func (s *Store) DropPartition(ctx context.Context, partition []byte) error {
	err := s.Bounds.CheckPartition(partition)
	if err == nil {
		err = s.drop(ctx, partition)
	}
	return kv.Wrap("drop", partition, nil, err)
}

func (s *Store) drop(ctx context.Context, partition []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(ctx); err != nil {
		return err
	}
	delete(s.partitions, string(partition))
	return nil
}

// apply does writes for kv.Writer, and those of SetMany. It returns the key whose predicate failed.
func (s *Store) apply(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) (failed []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(ctx); err != nil {
		return nil, err
	}
	if fence != nil && !fence.Predicate.Holds(s.lookup(fence.Partition, fence.Key)) {
		return nil, kv.ErrFenceFailed
	}
	for _, w := range writes {
		if w.If != nil && !w.If.Holds(s.lookup(partition, w.Key)) {
			return w.Key, kv.ErrPredicateFailed
		}
	}
	list := s.list(partition)
	for _, w := range writes {
		if w.Value == nil {
			list.delete(w.Key)
		} else {
			list.set(w.Key, w.Value)
		}
	}
	return nil, nil
}

// Publish performs all writes in one step, or none.
func (s *Store) Publish(ctx context.Context, before []kv.Record, last kv.Record, p kv.Predicate) error {
	err := s.Bounds.CheckPublish(before, last, p)
	if err == nil {
		err = s.publish(ctx, before, last, p)
	}
	return kv.Wrap("publish", last.Partition, last.Key, err)
}

func (s *Store) publish(ctx context.Context, before []kv.Record, last kv.Record, p kv.Predicate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(ctx); err != nil {
		return err
	}
	if !p.Holds(s.lookup(last.Partition, last.Key)) {
		return kv.ErrPredicateFailed
	}
	for _, r := range append(slices.Clip(before), last) {
		s.list(r.Partition).set(r.Key, r.Value)
	}
	return nil
}

// list returns the list of a partition, a new one if there is none. It needs the lock.
func (s *Store) list(partition []byte) *skipList {
	list, ok := s.partitions[string(partition)]
	if !ok {
		list = newSkipList()
		s.partitions[string(partition)] = list
	}
	return list
}

// writable needs the lock.
func (s *Store) writable(ctx context.Context) error {
	switch {
	case s.closed:
		return kv.ErrClosed
	case s.readOnly:
		return kv.ErrReadOnly
	default:
		return ctx.Err()
	}
}
