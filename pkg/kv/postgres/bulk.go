// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/kv"
)

// dropKeys is how many keys one statement of DropPartition removes.
const dropKeys = 5000

// SetMany performs the writes in the order of their keys, in several statements, each of which is
// its own transaction.
func (s *Store) SetMany(ctx context.Context, partition []byte, writes []kv.Write) error {
	err := s.Limits().CheckSetMany(partition, writes)
	if err == nil {
		err = s.change(ctx, func() error { return s.setMany(ctx, partition, writes) })
	}
	return kv.Wrap("set many", partition, nil, err)
}

func (s *Store) setMany(ctx context.Context, partition []byte, writes []kv.Write) error {
	rows := make([]row, len(writes))
	for i, w := range writes {
		rows[i] = row{partition: partition, key: w.Key, value: w.Value}
	}
	var sets, deletes []row
	for _, r := range inKeyOrder(rows) {
		if r.value == nil {
			deletes = append(deletes, r)
		} else {
			sets = append(sets, r)
		}
	}
	err := inChunks(sets, func(chunk []row) error { return s.setAll(ctx, chunk, nil) })
	if err != nil {
		return err
	}
	return inChunks(deletes, func(chunk []row) error { return s.deleteAll(ctx, partition, chunk) })
}

// inChunks calls f with as many rows as go into one statement.
func inChunks(rows []row, f func(chunk []row) error) error {
	for len(rows) > 0 {
		n, size := 0, 0
		for n < len(rows) && n < groupWrites && size < groupBytes {
			size += len(rows[n].key) + len(rows[n].value)
			n++
		}
		if err := f(rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// DropPartition removes the keys of a partition in ascending order, in many transactions; after an
// error the next call goes on with those that are left.
func (s *Store) DropPartition(ctx context.Context, partition []byte) error {
	err := s.Limits().CheckPartition(partition)
	if err == nil {
		err = s.change(ctx, func() error { return s.drop(ctx, partition) })
	}
	return kv.Wrap("drop", partition, nil, err)
}

func (s *Store) drop(ctx context.Context, partition []byte) error {
	for from := []byte{}; ; {
		var last [][]byte
		err := s.pool.Write(ctx, func(conn *pgx.Conn) error {
			rows, err := conn.Query(ctx, dropChunk, partition, from, dropKeys)
			if err != nil {
				return err
			}
			last, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
			return err
		})
		if err != nil || len(last) == 0 {
			return err
		}
		from = append(last[0], 0) // the key behind it
	}
}
