// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// pageRows is how many records one statement of a scan reads. A record is no larger than a value of a key/value store, and nearly always small.
const pageRows = 256

// query is a statement with its arguments.
type query struct {
	sql       string
	arguments []any
}

// rows reads what a statement returns.
func rows[T any](ctx context.Context, s *Store, q query, scan pgx.RowToFunc[T]) (all []T, err error) {
	sql := s.tables.Replace(q.sql)
	err = s.call(ctx, func() error {
		return s.pool.Read(ctx, func(conn *pgx.Conn) error {
			r, err := conn.Query(ctx, sql, q.arguments...)
			if err == nil {
				all, err = pgx.CollectRows(r, scan)
			}
			return err
		})
	})
	return all, err
}

// row reads the one row that a statement returns, and returns notFound where it returns none.
func row[T any](ctx context.Context, s *Store, q query, notFound error, scan pgx.RowToFunc[T]) (T, error) {
	all, err := rows(ctx, s, q, scan)
	if err == nil && len(all) == 0 {
		err = notFound
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

// pages yields what one statement after another reads. read gets the last record of the page before, nil at first, and reads at
// most pageRows behind it. what names the records in errors.
func pages[T any](what string, read func(last *T) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last *T
		for {
			page, err := read(last)
			if err != nil {
				var none T
				yield(none, fmt.Errorf("scan %s: %w", what, err))
				return
			}
			for _, record := range page {
				if !yield(record, nil) {
					return
				}
			}
			if len(page) < pageRows {
				return
			}
			last = &page[len(page)-1]
		}
	}
}

// guard comes first in every transaction that writes.
const guard = "SELECT moraine_guard()"

// exec runs one statement that writes, as a transaction of its own.
func (s *Store) exec(ctx context.Context, sql string, arguments ...any) (changed int64, err error) {
	err = s.change(ctx, func() error {
		return s.write(ctx, func(conn *pgx.Conn) error {
			var batch pgx.Batch
			batch.Queue(guard)
			batch.Queue(s.tables.Replace(sql), arguments...)
			results := conn.SendBatch(ctx, &batch)
			if _, err := results.Exec(); err != nil {
				_ = results.Close() // says the same
				return err
			}
			tag, err := results.Exec()
			changed = tag.RowsAffected()
			// Only after this is it committed.
			if closed := results.Close(); err == nil {
				err = closed
			}
			return err
		})
	})
	return changed, err
}

// conditionally runs a statement that writes one row if that is as its stamp says, and returns ErrChanged where it was not.
func (s *Store) conditionally(ctx context.Context, sql string, arguments ...any) error {
	changed, err := s.exec(ctx, sql, arguments...)
	if err == nil && changed == 0 {
		err = graveler.ErrChanged
	}
	return err
}

// transact runs queries in one round trip, which PostgreSQL takes for one transaction, and stores the row that the last one returns.
func (s *Store) transact(ctx context.Context, queries []query, into ...any) error {
	return s.change(ctx, func() error {
		return s.write(ctx, func(conn *pgx.Conn) error {
			var batch pgx.Batch
			batch.Queue(guard)
			for _, q := range queries {
				batch.Queue(s.tables.Replace(q.sql), q.arguments...)
			}
			results := conn.SendBatch(ctx, &batch)
			for range queries { // the guard, and all but the last
				if _, err := results.Exec(); err != nil {
					_ = results.Close() // says the same
					return err
				}
			}
			err := results.QueryRow().Scan(into...)
			// Only after this is it committed.
			if closed := results.Close(); err == nil {
				err = closed
			}
			return err
		})
	})
}

// lockBranch keeps a branch's record from changing while staged writes that rely on it land, or them from landing while it changes.
func lockBranch(shared bool, repo *graveler.Repository, branch graveler.BranchID) query {
	h := fnv.New64a()
	_, _ = h.Write([]byte(repo.Partition() + "/" + string(branch))) // cannot fail
	if shared {
		return query{"SELECT pg_advisory_xact_lock_shared($1)", []any{int64(h.Sum64())}}
	}
	return query{"SELECT pg_advisory_xact_lock($1)", []any{int64(h.Sum64())}}
}

// wrap says what was being done, and keeps nil as nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

func corrupt(table string, key any, problem error) error {
	return fmt.Errorf("%w: table %s, row %q: %w", graveler.ErrCorrupt, table, key, problem)
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", graveler.ErrInvalidValue, fmt.Sprintf(format, args...))
}
