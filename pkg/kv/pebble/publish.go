// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Publish performs all writes in one batch, or none.
func (s *Store) Publish(ctx context.Context, before []kv.Record, last kv.Record, p kv.Predicate) error {
	err := s.Limits().CheckPublish(before, last, p)
	if err == nil {
		err = s.publish(ctx, append(slices.Clip(before), last), p)
	}
	return kv.Wrap("publish", last.Partition, last.Key, err)
}

// publish writes the records if the predicate holds for the key of the last one.
func (s *Store) publish(ctx context.Context, records []kv.Record, p kv.Predicate) error {
	if err := s.enterWrite(ctx); err != nil {
		return err
	}
	defer s.leave()
	partitions, keys := make([][]byte, len(records)), make([][]byte, len(records))
	for i, r := range records {
		partitions[i], keys[i] = r.Partition, encode(r.Partition, r.Key)
	}
	c, err := s.beginPublish(partitions, keys, records, p)
	switch {
	case err != nil:
		return err
	case c != nil:
		return s.finish(c)
	}
	// What it was refused for must not be taken back by a crash.
	n := len(records) - 1
	if err := s.settleKey(ctx, partitions[n], keys[n]); err != nil {
		return err
	}
	return kv.ErrPredicateFailed
}

// beginPublish returns no commit where the predicate does not hold.
func (s *Store) beginPublish(partitions, keys [][]byte, records []kv.Record, p kv.Predicate) (*commit, error) {
	h := s.stripes.lock(keys, nil)
	defer h.unlock()
	if holds, err := s.holds(keys[len(keys)-1], p); err != nil || !holds {
		return nil, err
	}
	return s.begin(h, partitions, spansOf(keys), func(b *pebble.Batch) error {
		for i, r := range records {
			if err := b.Set(keys[i], r.Value, nil); err != nil {
				return err
			}
		}
		return nil
	})
}
