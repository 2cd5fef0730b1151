// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Set stores a value.
func (s *Store) Set(ctx context.Context, partition, key, value []byte) error {
	err := s.Limits().CheckSet(partition, key, value)
	if err == nil {
		err = s.group(ctx, lane{}, partition, []kv.Write{{Key: key, Value: value}})
	}
	return kv.Wrap("set", partition, key, err)
}

// Delete removes a key.
func (s *Store) Delete(ctx context.Context, partition, key []byte) error {
	err := s.Limits().CheckKey(partition, key)
	if err == nil {
		err = s.group(ctx, lane{kind: deletes, partition: string(partition)}, partition, []kv.Write{{Key: key}})
	}
	return kv.Wrap("delete", partition, key, err)
}

// SetIf stores a value if the predicate holds.
func (s *Store) SetIf(ctx context.Context, partition, key, value []byte, p kv.Predicate) error {
	err := s.Limits().CheckSetIf(partition, key, value, p)
	if err == nil {
		err = s.changeIf(ctx, partition, kv.Write{Key: key, Value: value, If: &p})
	}
	return kv.Wrap("set if", partition, key, err)
}

// DeleteIf removes a key if the predicate holds.
func (s *Store) DeleteIf(ctx context.Context, partition, key []byte, p kv.Predicate) error {
	err := s.Limits().CheckDeleteIf(partition, key, p)
	if err == nil {
		err = s.changeIf(ctx, partition, kv.Write{Key: key, If: &p})
	}
	return kv.Wrap("delete if", partition, key, err)
}

// group performs unconditional writes, all sets or all deletes, along with what else waits.
func (s *Store) group(ctx context.Context, l lane, partition []byte, writes []kv.Write) error {
	return s.change(ctx, func() error {
		return s.groups.do(ctx, &s.calls, l, newRequest(rowsOf(partition, writes)...))
	})
}

func rowsOf(partition []byte, writes []kv.Write) []row {
	rows := make([]row, len(writes))
	partition = bytes.Clone(partition)
	for i, w := range writes {
		rows[i] = row{partition: partition, key: bytes.Clone(w.Key), value: bytes.Clone(w.Value)}
		if w.If != nil {
			rows[i].condition = new(*w.If)
		}
	}
	return rows
}

func (s *Store) runGroup(ctx context.Context, l lane, requests []*request) error {
	switch l.kind {
	case reads:
		return s.getAll(ctx, requests)
	case batches:
		return s.applyAll(ctx, []byte(l.partition), requests, l.fence.fence())
	case deletes:
		return s.deleteAll(ctx, []byte(l.partition), merge(requests))
	default:
		return s.setAll(ctx, merge(requests), l.fence.fence())
	}
}

func (s *Store) setAll(ctx context.Context, rows []row, fence *kv.Fence) error {
	if fence == nil {
		return s.pool.Write(ctx, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, setAll, columns(rows)...)
			return err
		})
	}
	var held bool
	arguments := append(fenceArguments(fence), columns(rows)...)
	err := s.transact(ctx, []query{hold(fence), {setAllFenced, arguments}}, &held)
	if err == nil && !held {
		return kv.ErrFenceFailed
	}
	return err
}

// columns returns the arguments that hand rows to a statement.
func columns(rows []row) []any {
	partitions, keys, values := make([][]byte, len(rows)), make([][]byte, len(rows)), make([][]byte, len(rows))
	for i, r := range rows {
		partitions[i], keys[i], values[i] = r.partition, r.key, r.value
	}
	return []any{partitions, keys, values}
}

func (s *Store) deleteAll(ctx context.Context, partition []byte, rows []row) error {
	keys := make([][]byte, len(rows))
	for i, r := range rows {
		keys[i] = r.key
	}
	return s.pool.Write(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, deleteAll, partition, keys)
		return err
	})
}

// inKeyOrder sorts rows by partition and key. Of several with the same key the last one stays.
func inKeyOrder(rows []row) []row {
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(bytes.Compare(a.partition, b.partition), bytes.Compare(a.key, b.key))
	})
	kept := rows[:0]
	for i, r := range rows {
		if i+1 < len(rows) && bytes.Equal(r.partition, rows[i+1].partition) && bytes.Equal(r.key, rows[i+1].key) {
			continue
		}
		kept = append(kept, r)
	}
	return kept
}
