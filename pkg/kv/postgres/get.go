// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Get returns the value of a key. It takes one round trip, which it shares with others that wait at the same moment.
func (s *Store) Get(ctx context.Context, partition, key []byte) (item kv.Item, err error) {
	err = s.Limits().CheckKey(partition, key)
	if err == nil {
		err = s.call(ctx, func() error {
			r := newRequest(row{partition: bytes.Clone(partition), key: bytes.Clone(key)})
			if err := s.groups.do(ctx, &s.calls, lane{kind: reads}, r); err != nil {
				return err
			}
			value := r.rows[0].value
			if value == nil {
				return kv.ErrNotFound
			}
			item = kv.Item{Value: value, Predicate: kv.Equals(value)}
			return nil
		})
	}
	return item, kv.Wrap("get", partition, key, err)
}

// getAll answers requests of one row each.
func (s *Store) getAll(ctx context.Context, requests []*request) error {
	if len(requests) == 1 {
		return s.getOne(ctx, &requests[0].rows[0])
	}
	partitions, keys := make([][]byte, len(requests)), make([][]byte, len(requests))
	for i, r := range requests {
		partitions[i], keys[i] = r.rows[0].partition, r.rows[0].key
	}
	return s.pool.Read(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, getAll, partitions, keys)
		if err != nil {
			return err
		}
		var position int
		var value []byte
		_, err = pgx.ForEachRow(rows, []any{&position, &value}, func() error {
			requests[position-1].rows[0].value = value
			return nil
		})
		return err
	})
}

// getOne is getAll for a lone row, in a statement that costs the server less.
func (s *Store) getOne(ctx context.Context, r *row) error {
	return s.pool.Read(ctx, func(conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, get, r.partition, r.key).Scan(&r.value)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
}
