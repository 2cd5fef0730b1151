// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// The tables that are read.
const (
	repositoriesTable = "graveler_repositories"
	branchesTable     = "graveler_branches"
	commitsTable      = "graveler_commits"
	tagsTable         = "graveler_tags"
	stagingTable      = "graveler_staging_kv"
	schemaTable       = "schema_migrations"
)

func tables() []string {
	return []string{repositoriesTable, branchesTable, commitsTable, tagsTable, stagingTable}
}

// source is the SQL side at one instant. Its own connection keeps the snapshot that all readers share.
type source struct {
	config *pgx.ConnConfig
	main   *reader
	id     string // which database it is
	snap   string
}

// openSource connects, makes sure that the tables are there and of the known version, and takes the snapshot.
func openSource(ctx context.Context, url string) (*source, error) {
	s, err := connectSource(ctx, url)
	if err != nil {
		return nil, err
	}
	err = s.checkSchema(ctx)
	if err == nil {
		err = s.takeSnapshot(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("source %s: %w", kv.Redact(url), err), s.close(ctx))
	}
	return s, nil
}

func connectSource(ctx context.Context, url string) (*source, error) {
	url = strings.TrimPrefix(url, "sql+")
	if scheme, _, _ := strings.Cut(url, ":"); scheme != "postgres" && scheme != "postgresql" {
		return nil, fmt.Errorf("source %s: %w", kv.Redact(url), ErrInvalidSource)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", kv.Redact(url), ErrInvalidSource) // without the text, which may be shown with a password
	}
	s := &source{config: config}
	if s.main, err = s.connect(ctx); err != nil {
		return nil, fmt.Errorf("source %s: %w", kv.Redact(url), err)
	}
	return s, nil
}

func (s *source) connect(ctx context.Context) (*reader, error) {
	conn, err := pgx.ConnectConfig(ctx, s.config)
	if err != nil {
		return nil, err
	}
	r := &reader{conn}
	// A snapshot is held for as long as the copy takes.
	if err := r.exec(ctx, "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET client_encoding = 'UTF8'; SET timezone = 'UTC'"); err != nil {
		return nil, errors.Join(err, r.close(ctx))
	}
	return r, nil
}

func (s *source) close(ctx context.Context) error { return s.main.close(ctx) }

// checkSchema looks for the tables and their version.
func (s *source) checkSchema(ctx context.Context) error {
	for _, table := range append(tables(), schemaTable) {
		exists, err := s.main.hasTable(ctx, table)
		if err != nil {
			return err
		}
		if !exists {
			return fmt.Errorf("%w %s", ErrMissingTable, table)
		}
	}
	version, dirty, err := s.main.schema(ctx)
	switch {
	case err != nil:
		return err
	case version != sqlstore.TablesVersion:
		return fmt.Errorf("%w: %d, this program reads version %d", ErrUnknownSchema, version, sqlstore.TablesVersion)
	case dirty:
		return fmt.Errorf("%w (version %d)", ErrDirtySchema, version)
	}
	// The database and the table in it; a name alone could be that of another.
	err = s.main.conn.QueryRow(ctx, "SELECT format('%s:%s:%s', current_database(), (SELECT oid FROM pg_database WHERE datname = current_database()), to_regclass($1)::oid)", repositoriesTable).Scan(&s.id)
	return wrapf(err, "ask which database it is")
}

// takeSnapshot begins the transaction whose view of the tables all readers get.
func (s *source) takeSnapshot(ctx context.Context) error {
	if err := s.main.begin(ctx); err != nil {
		return err
	}
	return wrapf(s.main.conn.QueryRow(ctx, "SELECT pg_export_snapshot()").Scan(&s.snap), "export a snapshot")
}

// reader opens another connection on the snapshot.
func (s *source) reader(ctx context.Context) (*reader, error) {
	r, err := s.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect a reader: %w", err)
	}
	err = r.begin(ctx)
	if err == nil {
		err = r.exec(ctx, "SET TRANSACTION SNAPSHOT '"+strings.ReplaceAll(s.snap, "'", "''")+"'")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("share the snapshot: %w", err), r.close(ctx))
	}
	return r, nil
}

// lockNotAvailable is how PostgreSQL says that it has waited for a lock for long enough.
const lockNotAvailable = "55P03"

// lock keeps other processes from running the migration with this UID until the connection ends, however it does.
func (s *source) lock(ctx context.Context, uid string) error {
	// The server may take a moment to notice that a process which had the lock has died.
	if err := s.main.exec(ctx, "SET lock_timeout = '3s'"); err != nil {
		return wrapf(err, "lock the migration")
	}
	_, err := s.main.conn.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended($1, 0))", "moraine migrate "+uid)
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == lockNotAvailable {
		err = ErrRunning
	}
	return wrapf(err, "lock the migration")
}

// reader is one connection. It reads one thing at a time.
type reader struct{ conn *pgx.Conn }

func (r *reader) close(ctx context.Context) error {
	return r.conn.Close(context.WithoutCancel(ctx))
}

func (r *reader) exec(ctx context.Context, sql string) error {
	_, err := r.conn.Exec(ctx, sql)
	return err
}

func (r *reader) begin(ctx context.Context) error {
	return wrapf(r.exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"), "begin to read")
}

func (r *reader) hasTable(ctx context.Context, table string) (exists bool, err error) {
	err = r.conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", table).Scan(&exists)
	return exists, wrapf(err, "look for table %s", table)
}

// schema returns the version of the tables, 0 where none is noted.
func (r *reader) schema(ctx context.Context) (version int64, dirty bool, err error) {
	err = r.conn.QueryRow(ctx, "SELECT coalesce(max(version), 0), coalesce(bool_or(dirty), false) FROM schema_migrations").Scan(&version, &dirty)
	return version, dirty, wrapf(err, "read the version of the tables")
}

// rowsOf yields the rows of a query as they come. An error, also one in the middle of the rows, is the last thing that it yields.
func rowsOf[T any](ctx context.Context, r *reader, table string, scan func(pgx.Rows) (T, error), sql string, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		rows, err := r.conn.Query(ctx, sql, args...)
		if err != nil {
			yield(none, fmt.Errorf("read %s: %w", table, err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			v, err := scan(rows)
			if err != nil {
				yield(none, fmt.Errorf("read %s: %w", table, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(none, fmt.Errorf("read %s: %w", table, err))
		}
	}
}

func wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
