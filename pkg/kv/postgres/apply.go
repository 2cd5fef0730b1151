// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Apply performs all writes or none. It takes one round trip; without predicates and deletes it
// shares that, and the commit, with other calls under the same fence.
func (s *Store) Apply(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) error {
	if err := s.Limits().CheckApply(partition, writes, fence); err != nil {
		return kv.Wrap("apply", partition, nil, err)
	}
	if unconditionalSets(writes) {
		return kv.Wrap("apply", partition, nil, s.group(ctx, lane{fence: laneFenceOf(fence)}, partition, writes))
	}
	var failed []byte
	err := s.change(ctx, func() (err error) {
		var queries []query
		if fence != nil {
			queries = append(queries, hold(fence))
		}
		if len(writes) == 1 {
			failed, err = s.applyOne(ctx, queries, partition, writes[0], fence)
		} else {
			failed, err = s.applyMany(ctx, queries, partition, writes, fence)
		}
		return err
	})
	return kv.Wrap("apply", partition, failed, err)
}

func unconditionalSets(writes []kv.Write) bool {
	return !slices.ContainsFunc(writes, func(w kv.Write) bool { return w.Value == nil || w.If != nil })
}

// changeIf is SetIf and DeleteIf. The key may be a fence, so whoever relies on it is kept out.
func (s *Store) changeIf(ctx context.Context, partition []byte, w kv.Write) error {
	return s.change(ctx, func() error {
		lock := query{lockExclusive, []any{lockOf(partition, w.Key)}}
		_, err := s.applyOne(ctx, []query{lock}, partition, w, nil)
		return err
	})
}

// applyOne performs one write behind the queries that take its lock, and returns its key if the
// predicate failed.
func (s *Store) applyOne(ctx context.Context, queries []query, partition []byte, w kv.Write, fence *kv.Fence) ([]byte, error) {
	var held, written bool
	err := s.transact(ctx, append(queries, conditional(partition, w, fence)), &held, &written)
	switch {
	case err != nil:
		return nil, err
	case !held:
		return nil, kv.ErrFenceFailed
	case !written && w.If != nil:
		return w.Key, kv.ErrPredicateFailed
	default:
		return nil, nil
	}
}

// conditional returns the statement that performs one write, which is not an unconditional set.
func conditional(partition []byte, w kv.Write, fence *kv.Fence) query {
	condition, expected := conditionOf(w.If)
	arguments := append(fenceArguments(fence), partition, w.Key)
	switch {
	case w.Value == nil && condition == absent:
		return query{checkAbsent, arguments}
	case w.Value == nil:
		return query{deleteIfPresent, append(arguments, expected)}
	case condition == absent:
		return query{setIfAbsent, append(arguments, w.Value)}
	default:
		return query{setIfPresent, append(arguments, w.Value, expected)}
	}
}

// applyMany claims all keys and then settles what becomes of them.
func (s *Store) applyMany(ctx context.Context, queries []query, partition []byte, writes []kv.Write, fence *kv.Fence) ([]byte, error) {
	writes = slices.SortedFunc(slices.Values(writes), func(a, b kv.Write) int { return bytes.Compare(a.Key, b.Key) })
	keys, values := make([][]byte, len(writes)), make([][]byte, len(writes))
	conditions, expected := make([]int16, len(writes)), make([][]byte, len(writes))
	for i, w := range writes {
		keys[i], values[i] = w.Key, w.Value
		conditions[i], expected[i] = conditionOf(w.If)
	}
	var held bool
	var failed []byte
	err := s.transact(ctx, append(queries,
		query{claim, append(fenceArguments(fence), partition, keys)},
		query{settle, append(fenceArguments(fence), partition, keys, values, conditions, expected)},
	), &held, &failed)
	switch {
	case err != nil:
		return nil, err
	case !held:
		return nil, kv.ErrFenceFailed
	case failed != nil:
		return failed, kv.ErrPredicateFailed
	default:
		return nil, nil
	}
}

// query is a statement with its arguments.
type query struct {
	sql       string
	arguments []any
}

// hold keeps the key of a fence from changing until the end of the transaction.
func hold(f *kv.Fence) query {
	return query{lockShared, []any{lockOf(f.Partition, f.Key)}}
}

// transact runs queries in one round trip, which PostgreSQL takes for one transaction, and stores
// the row that the last one returns.
func (s *Store) transact(ctx context.Context, queries []query, row ...any) error {
	return s.pool.Write(ctx, func(conn *pgx.Conn) error {
		var batch pgx.Batch
		for _, q := range queries {
			batch.Queue(q.sql, q.arguments...)
		}
		results := conn.SendBatch(ctx, &batch)
		for range queries[:len(queries)-1] {
			if _, err := results.Exec(); err != nil {
				_ = results.Close() // says the same
				return err
			}
		}
		err := results.QueryRow().Scan(row...)
		// Only after this is it committed.
		if closed := results.Close(); err == nil {
			err = closed
		}
		return err
	})
}

func laneFenceOf(f *kv.Fence) laneFence {
	if f == nil {
		return laneFence{}
	}
	return laneFence{string(f.Partition), string(f.Key), f.Predicate}
}
