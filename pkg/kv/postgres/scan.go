// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Scan reads a partition in key order, in pages.
func (s *Store) Scan(ctx context.Context, partition []byte, o kv.ScanOptions) (kv.Iterator, error) {
	err := s.Limits().CheckPartition(partition)
	if err == nil {
		err = s.call(ctx, func() error { return nil })
	}
	if err != nil {
		return nil, kv.Wrap("scan", partition, nil, err)
	}
	return kv.NewIteratorAhead(ctx, partition, o, s.readPage), nil
}

// inBinary asks for rows as the server has them: bytea in text would be twice as long.
var inBinary = pgx.QueryResultFormats{pgx.BinaryFormatCode}

func (s *Store) readPage(ctx context.Context, r kv.PageRequest) (entries []kv.Entry, more bool, err error) {
	if r.From == nil {
		r.From = []byte{} // nil would be null
	}
	sql, arguments := page, []any{inBinary, r.Partition, r.From, r.Limit, kv.PageBytes}
	if r.End != nil {
		sql, arguments = pageUntil, append(arguments, r.End)
	}
	var b *kv.PageBuilder
	err = s.call(ctx, func() error {
		return s.pool.Read(ctx, func(conn *pgx.Conn) error {
			b = kv.NewPage(r) // an attempt that failed may have begun one
			rows, err := conn.Query(ctx, sql, arguments...)
			if err != nil {
				return err
			}
			for rows.Next() {
				row := rows.RawValues() // the memory is that of the connection
				b.Add(row[0], row[1])
			}
			return rows.Err()
		})
	})
	if err != nil {
		return nil, false, err
	}
	return b.Entries(), b.Full(), nil
}
