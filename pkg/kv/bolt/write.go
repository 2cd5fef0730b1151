// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/moraine-store/moraine/pkg/kv"
)

// perform does writes for kv.Writer.
func (s *Store) perform(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) (failed []byte, err error) {
	b := &batch{partition: partition, writes: writes, fence: fence}
	err = s.write(ctx, b.run)
	return b.failed, err
}

func (s *Store) write(ctx context.Context, run func(tx *bbolt.Tx) (changed bool, err error)) error {
	if s.committer == nil {
		return s.refuse(ctx)
	}
	return s.committer.do(ctx, run)
}

// refuse answers a write to a file that is open for reading only: closed comes before read-only.
func (s *Store) refuse(ctx context.Context) error {
	if err := s.view(ctx, func(*bbolt.Tx) error { return nil }); err != nil {
		return err
	}
	return kv.ErrReadOnly
}

// batch is a set of writes that land together or not at all.
type batch struct {
	partition []byte
	writes    []kv.Write
	fence     *kv.Fence
	failed    []byte // the key whose predicate did not hold
}

// run checks everything before it changes anything.
func (b *batch) run(tx *bbolt.Tx) (changed bool, err error) {
	if err := b.check(tx); err != nil {
		return false, err
	}
	for _, w := range b.writes {
		did, err := b.perform(tx, w)
		if err != nil {
			return true, err
		}
		changed = changed || did
	}
	return changed, nil
}

func (b *batch) check(tx *bbolt.Tx) error {
	if f := b.fence; f != nil && !f.Predicate.Holds(lookup(tx, f.Partition, f.Key)) {
		return kv.ErrFenceFailed
	}
	for _, w := range b.writes {
		if w.If != nil && !w.If.Holds(lookup(tx, b.partition, w.Key)) {
			b.failed = w.Key
			return kv.ErrPredicateFailed
		}
	}
	return nil
}

func (b *batch) perform(tx *bbolt.Tx, w kv.Write) (changed bool, err error) {
	if w.Value == nil {
		if _, found := lookup(tx, b.partition, w.Key); !found {
			return false, nil
		}
		return true, tx.Bucket(bucketName(b.partition)).Delete(w.Key)
	}
	return true, put(tx, b.partition, w.Key, w.Value)
}

func put(tx *bbolt.Tx, partition, key, value []byte) error {
	bucket, err := tx.CreateBucketIfNotExists(bucketName(partition))
	if err != nil {
		return err
	}
	return bucket.Put(key, value)
}

// Publish performs all writes in one transaction, or none.
func (s *Store) Publish(ctx context.Context, before []kv.Record, last kv.Record, p kv.Predicate) error {
	err := s.Limits().CheckPublish(before, last, p)
	if err == nil {
		final := &batch{partition: last.Partition, writes: []kv.Write{{Key: last.Key, Value: last.Value, If: &p}}}
		err = s.write(ctx, func(tx *bbolt.Tx) (bool, error) {
			if err := final.check(tx); err != nil {
				return false, err
			}
			for _, r := range before {
				if err := put(tx, r.Partition, r.Key, r.Value); err != nil {
					return true, err
				}
			}
			return final.run(tx)
		})
	}
	return kv.Wrap("publish", last.Partition, last.Key, err)
}

// DropPartition removes a partition in one transaction. It reads all pages of the partition.
func (s *Store) DropPartition(ctx context.Context, partition []byte) error {
	err := s.Limits().CheckPartition(partition)
	if err == nil {
		err = s.write(ctx, func(tx *bbolt.Tx) (bool, error) {
			err := tx.DeleteBucket(bucketName(partition))
			if errors.Is(err, berrors.ErrBucketNotFound) {
				return false, nil
			}
			return true, err
		})
	}
	return kv.Wrap("drop", partition, nil, err)
}
