// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"

	"github.com/cockroachdb/pebble/v2"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Bounds of one batch of SetMany: large enough that its sync does not matter, small enough that other
// writes need not wait long, and that it does not displace all recent writes from memory.
const (
	bulkWrites = 10_000
	bulkBytes  = 4 << 20
)

// SetMany performs the writes in large batches, each synced.
func (s *Store) SetMany(ctx context.Context, partition []byte, writes []kv.Write) error {
	err := s.Limits().CheckSetMany(partition, writes)
	if err == nil {
		err = s.setMany(ctx, partition, writes)
	}
	return kv.Wrap("set many", partition, nil, err)
}

func (s *Store) setMany(ctx context.Context, partition []byte, writes []kv.Write) error {
	for {
		n := bulkLen(writes)
		if _, err := s.write(ctx, partition, writes[:n], nil); err != nil {
			return err
		}
		if writes = writes[n:]; len(writes) == 0 {
			return nil
		}
	}
}

// bulkLen returns how many of the writes go into the next batch.
func bulkLen(writes []kv.Write) int {
	size := 0
	for i, w := range writes {
		if i == bulkWrites || size >= bulkBytes {
			return i
		}
		size += len(w.Key) + len(w.Value)
	}
	return len(writes)
}

// DropPartition removes a partition with one record, whatever its size. Dropping what is empty writes
// nothing. It excludes all other writes for as long as it takes to make that record visible.
func (s *Store) DropPartition(ctx context.Context, partition []byte) error {
	err := s.Limits().CheckPartition(partition)
	if err == nil {
		err = s.drop(ctx, partition)
	}
	return kv.Wrap("drop", partition, nil, err)
}

func (s *Store) drop(ctx context.Context, partition []byte) error {
	if err := s.enterWrite(ctx); err != nil {
		return err
	}
	defer s.leave()
	all := wholePartition(partition)
	c, err := s.beginDrop(ctx, partition, all)
	switch {
	case err != nil:
		return err
	case c == nil:
		return s.settleSpan(ctx, partition, all) // who emptied it may be under way
	}
	return s.finish(c)
}

func (s *Store) beginDrop(ctx context.Context, partition []byte, all span) (*commit, error) {
	h := s.stripes.lockAll()
	defer h.unlock()
	found, _, err := s.collect(ctx, all, kv.PageRequest{Partition: partition, Limit: 1})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return s.begin(h, [][]byte{partition}, []span{all}, func(b *pebble.Batch) error {
		return b.DeleteRange(all.low, all.high, nil)
	})
}
