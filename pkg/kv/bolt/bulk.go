// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"context"
	"slices"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Bounds of one transaction of SetMany: large enough that its syncs do not matter, small enough that
// other writes need not wait long.
const (
	bulkWrites = 10_000
	bulkBytes  = 8 << 20
)

// SetMany performs the writes in the order of their keys, since neighbours share pages, in several
// transactions.
func (s *Store) SetMany(ctx context.Context, partition []byte, writes []kv.Write) error {
	err := s.Limits().CheckSetMany(partition, writes)
	if err == nil {
		err = s.setMany(ctx, partition, inKeyOrder(writes))
	}
	return kv.Wrap("set many", partition, nil, err)
}

func (s *Store) setMany(ctx context.Context, partition []byte, writes []kv.Write) error {
	for {
		n := bulkLen(writes)
		b := &batch{partition: partition, writes: writes[:n]}
		if err := s.write(ctx, b.run); err != nil {
			return err
		}
		if writes = writes[n:]; len(writes) == 0 {
			return nil
		}
	}
}

// inKeyOrder sorts a copy if it must. Writes to the same key stay in their order: the last one wins.
func inKeyOrder(writes []kv.Write) []kv.Write {
	byKey := func(a, b kv.Write) int { return bytes.Compare(a.Key, b.Key) }
	if slices.IsSortedFunc(writes, byKey) {
		return writes
	}
	sorted := slices.Clone(writes)
	slices.SortStableFunc(sorted, byKey)
	return sorted
}

// bulkLen returns how many of the writes go into the next transaction.
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
