// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/moraine-store/moraine/pkg/kv"
)

// write performs all writes or none. It returns the key whose predicate does not hold.
func (s *Store) write(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) (failed []byte, err error) {
	if err := s.enterWrite(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	c, refused, err := s.evaluate(partition, writes, fence)
	switch {
	case err != nil:
		return nil, err
	case refused != nil:
		// What it was refused for must not be taken back by a crash.
		if err := s.settleKey(ctx, refused.partition, refused.key); err != nil {
			return nil, err
		}
		return refused.write, refused.why
	case c != nil:
		return nil, s.finish(c)
	case fence != nil:
		// Nothing to write: the answer is that the fence holds.
		return nil, s.settleKey(ctx, fence.Partition, encode(fence.Partition, fence.Key))
	}
	return nil, nil
}

func (s *Store) enterWrite(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	err := s.disk.failure()
	if s.readOnly {
		err = kv.ErrReadOnly
	}
	if err != nil {
		s.leave()
	}
	return err
}

// refusal is a predicate that does not hold.
type refusal struct {
	partition, key []byte // where, and pebble's key for it
	write          []byte // the key of the write, nil for the fence
	why            error
}

// evaluate does what needs the locks: it makes the writes visible, unless they are refused.
func (s *Store) evaluate(partition []byte, writes []kv.Write, fence *kv.Fence) (*commit, *refusal, error) {
	var fenceKey []byte
	if fence != nil {
		fenceKey = encode(fence.Partition, fence.Key)
	}
	keys := make([][]byte, len(writes))
	for i, w := range writes {
		keys[i] = encode(partition, w.Key)
	}
	h := s.stripes.lock(keys, fenceKey)
	defer h.unlock()

	if fence != nil {
		if holds, err := s.holds(fenceKey, fence.Predicate); err != nil || !holds {
			return nil, &refusal{fence.Partition, fenceKey, nil, kv.ErrFenceFailed}, err
		}
	}
	for i, w := range writes {
		if w.If == nil {
			continue
		}
		if holds, err := s.holds(keys[i], *w.If); err != nil || !holds {
			return nil, &refusal{partition, keys[i], w.Key, kv.ErrPredicateFailed}, err
		}
	}
	if len(writes) == 0 {
		return nil, nil, nil
	}
	c, err := s.begin(h, [][]byte{partition}, spansOf(keys), func(b *pebble.Batch) error { return fill(b, keys, writes) })
	return c, nil, err
}

func spansOf(keys [][]byte) []span {
	spans := make([]span, len(keys))
	for i, k := range keys {
		spans[i] = oneKey(k)
	}
	return spans
}

func (s *Store) holds(k []byte, p kv.Predicate) (bool, error) {
	value, found, err := s.lookup(k)
	return err == nil && p.Holds(value, found), err
}

func fill(b *pebble.Batch, keys [][]byte, writes []kv.Write) error {
	for i, w := range writes {
		var err error
		if w.Value == nil {
			err = b.Delete(keys[i], nil)
		} else {
			err = b.Set(keys[i], w.Value, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin makes a batch visible and starts to make it durable. The stripes of all that it changes are
// held exclusively.
func (s *Store) begin(h held, partitions [][]byte, changes []span, fill func(*pebble.Batch) error) (*commit, error) {
	b := s.db.NewBatch()
	if err := fill(b); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	c := &commit{partitions: partitions, batch: b, changes: changes, settled: make(chan struct{})}
	s.unsettled.add(c)
	h.announce(c)
	if err := s.db.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		s.unsettled.settle(c, err)
		return nil, err
	}
	return c, nil
}

// finish waits until a commit is durable. It needs no lock.
func (s *Store) finish(c *commit) error {
	b := c.batch
	err := b.SyncWait()
	if err == nil {
		err = s.disk.failure() // pebble is not told of an error of its log
	}
	s.unsettled.settle(c, err)
	return errors.Join(err, b.Close())
}
