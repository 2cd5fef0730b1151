// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Apply performs all writes or none. It takes one round trip, and shares that, and the commit, with other calls under the same
// fence: with sets without predicates, or else with other batches of the partition.
func (s *Store) Apply(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) error {
	if err := s.Limits().CheckApply(partition, writes, fence); err != nil {
		return kv.Wrap("apply", partition, nil, err)
	}
	if unconditionalSets(writes) {
		return kv.Wrap("apply", partition, nil, s.group(ctx, lane{fence: laneFenceOf(fence)}, partition, writes))
	}
	r := newRequest(rowsOf(partition, writes)...)
	err := s.change(ctx, func() error {
		return s.groups.do(ctx, &s.calls, lane{batches, string(partition), laneFenceOf(fence)}, r)
	})
	var failed []byte
	if errors.Is(err, kv.ErrPredicateFailed) {
		failed = r.failed
	}
	return kv.Wrap("apply", partition, failed, err)
}

func unconditionalSets(writes []kv.Write) bool {
	return !slices.ContainsFunc(writes, func(w kv.Write) bool { return w.Value == nil || w.If != nil })
}

// changeIf is SetIf and DeleteIf. The key may be a fence, so whoever relies on it is kept out.
func (s *Store) changeIf(ctx context.Context, partition []byte, w kv.Write) error {
	return s.change(ctx, func() error {
		lock := query{lockExclusive, []any{lockOf(partition, w.Key)}}
		return s.applyOne(ctx, []query{lock}, partition, w, nil)
	})
}

// applyOne performs one write behind the queries that take its lock.
func (s *Store) applyOne(ctx context.Context, queries []query, partition []byte, w kv.Write, fence *kv.Fence) error {
	var held, written bool
	err := s.transact(ctx, append(queries, conditional(partition, w, fence)), &held, &written)
	switch {
	case err != nil:
		return err
	case !held:
		return kv.ErrFenceFailed
	case !written && w.If != nil:
		return kv.ErrPredicateFailed
	default:
		return nil
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

// applyAll performs batches that have no key in common, each as a whole or not at all. The error is that of all whose predicates
// held.
func (s *Store) applyAll(ctx context.Context, partition []byte, batches []*request, fence *kv.Fence) error {
	var queries []query
	if fence != nil {
		queries = append(queries, hold(fence))
	}
	if rows := batches[0].rows; len(batches) == 1 && len(rows) == 1 {
		err := s.applyOne(ctx, queries, partition, kv.Write{Key: rows[0].key, Value: rows[0].value, If: rows[0].condition}, fence)
		if errors.Is(err, kv.ErrPredicateFailed) {
			batches[0].failed = rows[0].key
		}
		return err
	}
	return s.applyMany(ctx, queries, partition, batches, fence)
}

// applyMany claims all keys and then settles what becomes of them.
func (s *Store) applyMany(ctx context.Context, queries []query, partition []byte, batches []*request, fence *kv.Fence) error {
	type member struct {
		row
		batch int32
	}
	var members []member
	for i, b := range batches {
		for _, r := range b.rows {
			members = append(members, member{r, int32(i)})
		}
	}
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	n := len(members)
	keys, values, of := make([][]byte, n), make([][]byte, n), make([]int32, n)
	conditions, expected := make([]int16, n), make([][]byte, n)
	for i, m := range members {
		keys[i], values[i], of[i] = m.key, m.value, m.batch
		conditions[i], expected[i] = conditionOf(m.condition)
	}
	var held bool
	var failed []int32
	err := s.transact(ctx, append(queries,
		query{claim, append(fenceArguments(fence), partition, keys)},
		query{settle, append(fenceArguments(fence), partition, keys, values, conditions, expected, of)},
	), &held, &failed)
	switch {
	case err != nil:
		return err
	case !held:
		return kv.ErrFenceFailed
	}
	for _, position := range failed {
		m := members[position-1]
		if b := batches[m.batch]; b.err == nil {
			b.err, b.failed = kv.ErrPredicateFailed, m.key
		}
	}
	return nil
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
