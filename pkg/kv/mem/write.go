// SPDX-License-Identifier: Apache-2.0

package mem

import (
	"context"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Set stores a value.
func (s *Store) Set(ctx context.Context, partition, key, value []byte) error {
	err := s.limits.CheckSet(partition, key, value)
	if err == nil {
		_, err = s.apply(ctx, partition, []kv.Write{{Key: key, Value: value}}, nil)
	}
	return kv.Wrap("set", partition, key, err)
}

// SetIf stores a value if the predicate holds.
func (s *Store) SetIf(ctx context.Context, partition, key, value []byte, p kv.Predicate) error {
	err := s.limits.CheckSetIf(partition, key, value, p)
	if err == nil {
		_, err = s.apply(ctx, partition, []kv.Write{{Key: key, Value: value, If: &p}}, nil)
	}
	return kv.Wrap("set if", partition, key, err)
}

// Delete removes a key.
func (s *Store) Delete(ctx context.Context, partition, key []byte) error {
	err := s.limits.CheckKey(partition, key)
	if err == nil {
		_, err = s.apply(ctx, partition, []kv.Write{{Key: key}}, nil)
	}
	return kv.Wrap("delete", partition, key, err)
}

// DeleteIf removes a key if the predicate holds.
func (s *Store) DeleteIf(ctx context.Context, partition, key []byte, p kv.Predicate) error {
	err := s.limits.CheckDeleteIf(partition, key, p)
	if err == nil {
		_, err = s.apply(ctx, partition, []kv.Write{{Key: key, If: &p}}, nil)
	}
	return kv.Wrap("delete if", partition, key, err)
}

// Apply performs all writes or none.
func (s *Store) Apply(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) error {
	if err := s.limits.CheckApply(partition, writes, fence); err != nil {
		return kv.Wrap("apply", partition, nil, err)
	}
	failed, err := s.apply(ctx, partition, writes, fence)
	return kv.Wrap("apply", partition, failed, err)
}

// SetMany performs all writes in one step.
func (s *Store) SetMany(ctx context.Context, partition []byte, writes []kv.Write) error {
	err := s.limits.CheckSetMany(partition, writes)
	if err == nil {
		_, err = s.apply(ctx, partition, writes, nil)
	}
	return kv.Wrap("set many", partition, nil, err)
}

// DropPartition removes a partition in one step.
func (s *Store) DropPartition(ctx context.Context, partition []byte) error {
	err := s.limits.CheckPartition(partition)
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

// apply is every other write. It returns the key whose predicate failed.
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
	list, ok := s.partitions[string(partition)]
	if !ok {
		list = newSkipList()
		s.partitions[string(partition)] = list
	}
	for _, w := range writes {
		if w.Value == nil {
			list.delete(w.Key)
		} else {
			list.set(w.Key, w.Value)
		}
	}
	return nil, nil
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
