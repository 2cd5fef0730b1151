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
	return kv.NewIterator(ctx, partition, o, s.readPage), nil
}

func (s *Store) readPage(ctx context.Context, r kv.PageRequest) (entries []kv.Entry, more bool, err error) {
	if r.From == nil {
		r.From = []byte{} // nil would be null
	}
	sql, arguments := page, []any{r.Partition, r.From, r.Limit, kv.PageBytes}
	if r.End != nil {
		sql, arguments = pageUntil, append(arguments, r.End)
	}
	err = s.call(ctx, func() error {
		return s.read(ctx, func(conn *pgx.Conn) error {
			rows, err := conn.Query(ctx, sql, arguments...)
			if err != nil {
				return err
			}
			entries, err = pgx.CollectRows(rows, pgx.RowToStructByPos[kv.Entry])
			return err
		})
	})
	if err != nil {
		return nil, false, err
	}
	return entries, len(entries) == r.Limit || size(entries) >= kv.PageBytes, nil
}

func size(entries []kv.Entry) (n int) {
	for _, e := range entries {
		n += len(e.Key) + len(e.Value)
	}
	return n
}
