// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Publish performs all writes in one transaction and one round trip. Where the predicate does not hold, the records before the
// last are stored all the same.
func (s *Store) Publish(ctx context.Context, before []kv.Record, last kv.Record, p kv.Predicate) error {
	err := s.Limits().CheckPublish(before, last, p)
	if err == nil {
		err = s.change(ctx, func() error { return s.publish(ctx, before, last, p) })
	}
	return kv.Wrap("publish", last.Partition, last.Key, err)
}

// publish takes the lock of the last key first, as changeIf does, and then the rows of the others in the order in which everybody takes rows.
func (s *Store) publish(ctx context.Context, before []kv.Record, last kv.Record, p kv.Predicate) error {
	queries := []query{{lockExclusive, []any{lockOf(last.Partition, last.Key)}}}
	if len(before) > 0 {
		rows := make([]row, len(before))
		for i, r := range before {
			rows[i] = row{partition: r.Partition, key: r.Key, value: r.Value}
		}
		queries = append(queries, query{setAll, columns(inKeyOrder(rows))})
	}
	return s.applyOne(ctx, queries, last.Partition, kv.Write{Key: last.Key, Value: last.Value, If: &p}, nil)
}
