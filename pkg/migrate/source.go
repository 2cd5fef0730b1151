// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/cutover"
)

// lakeFSPrefix stands before the URL of a database that lakeFS keeps.
const lakeFSPrefix = "lakefs+"

// source is a database at one instant. Its own connection keeps the snapshot that all readers share.
type source struct {
	config  *pgx.ConnConfig
	lakeFS  bool // it is one that lakeFS keeps
	main    *reader
	on      func(connection) layout // how the rows are laid out
	version int64                   // of that
	name    string                  // of the layout, for people
	id      string                  // which database it is
	snap    string
	trees   *lakeFSTrees // nil: not of lakeFS
}

// openSource connects, makes sure that what is there is of a known version, and takes the snapshot.
func (m *Migration) openSource(ctx context.Context) (*source, error) {
	if err := m.checkSourceBlocks(); err != nil {
		return nil, err
	}
	s, err := connectSource(ctx, m.Source)
	if err != nil {
		return nil, err
	}
	if s.lakeFS {
		s.trees = newLakeFSTrees(m.SourceBlocks, m.BlockEngines)
	}
	if err = s.checkSchema(ctx); err == nil {
		err = s.takeSnapshot(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("source %s: %w", kv.Redact(m.Source), err), s.close(ctx))
	}
	return s, nil
}

func connectSource(ctx context.Context, url string) (*source, error) {
	bare, lakeFS := strings.CutPrefix(url, lakeFSPrefix)
	if !lakeFS {
		bare = strings.TrimPrefix(url, "sql+")
	}
	if url == "" {
		return nil, fmt.Errorf("source: %w: it is empty", ErrInvalidSource)
	}
	if scheme, _, _ := strings.Cut(bare, ":"); scheme != "postgres" && scheme != "postgresql" {
		return nil, fmt.Errorf("source %s: %w: it begins neither with postgres:// nor with lakefs+postgres://", kv.Redact(url), ErrInvalidSource)
	}
	config, err := pgx.ParseConfig(bare)
	if err != nil { // whose text may have the password
		return nil, fmt.Errorf("source %s: %w: a sign such as %%, @, : or / in a name or password is written as %%25, %%40, %%3A or %%2F", kv.Redact(url), ErrInvalidSource)
	}
	s := &source{config: config, lakeFS: lakeFS}
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", kv.Redact(url), err)
	}
	s.main = &reader{connection: conn}
	return s, nil
}

func (s *source) connect(ctx context.Context) (connection, error) {
	conn, err := pgx.ConnectConfig(ctx, s.config)
	if err != nil {
		return connection{}, unreachable(ctx, err)
	}
	c := connection{conn}
	// A snapshot is held for as long as the copy takes.
	if err := c.exec(ctx, "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET client_encoding = 'UTF8'; SET timezone = 'UTC'"); err != nil {
		return c, errors.Join(err, c.close(ctx))
	}
	return c, nil
}

// unreachable says why there is no connection: of all that was tried, with and without encryption, what the server or the network said last.
func unreachable(ctx context.Context, err error) error {
	pg, network, dns := (*pgconn.PgError)(nil), (*net.OpError)(nil), (*net.DNSError)(nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &pg):
		return fmt.Errorf("%w: %s", ErrUnreachable, pg.Message)
	case errors.As(err, &dns):
		return fmt.Errorf("%w: %w", ErrUnreachable, dns)
	case errors.As(err, &network):
		return fmt.Errorf("%w: %w", ErrUnreachable, network)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: no answer within connect_timeout", ErrUnreachable)
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return fmt.Errorf("%w: %s", ErrUnreachable, strings.TrimSpace(lines[len(lines)-1]))
}

func (s *source) close(ctx context.Context) error {
	err := s.main.close(ctx)
	if s.trees != nil {
		err = errors.Join(err, s.trees.close())
	}
	return err
}

// checkSchema finds out how the rows are laid out, and whether this program knows that.
func (s *source) checkSchema(ctx context.Context) error {
	layouts := []func(context.Context, connection) (*foundLayout, error){findTables}
	if s.lakeFS {
		layouts = []func(context.Context, connection) (*foundLayout, error){findKeyValue, findTables}
	}
	for _, find := range layouts {
		found, err := find(ctx, s.main.connection)
		if s.lakeFS && errors.Is(err, ErrMissingTable) {
			err = fmt.Errorf("%w: %w", ErrNoLakeFS, err)
		}
		if err != nil {
			return err
		}
		if found == nil {
			continue
		}
		s.on, s.version, s.main.layout = found.on, found.version, found.on(s.main.connection)
		s.name = "tables"
		if found.table == kvTable {
			s.name = "table " + kvTable
		}
		prefix := ""
		if s.lakeFS {
			prefix, s.name = "lakefs:", "lakeFS, "+s.name // the same tables become something else
		}
		// The server, the database and the table in it. A name alone could be that of another, and numbers those of another
		// server that was set up by the same script.
		const which = `SELECT format('%s%s:%s:%s:%s', $1::text, current_database(), (SELECT system_identifier FROM pg_control_system()),
			(SELECT oid FROM pg_database WHERE datname = current_database()), to_regclass($2)::oid)`
		return wrapf(s.main.conn.QueryRow(ctx, which, prefix, found.table).Scan(&s.id), "ask which database it is")
	}
	return nil // findTables has said what is missing
}

// takeSnapshot begins the transaction whose view of the rows all readers get.
func (s *source) takeSnapshot(ctx context.Context) error {
	if err := s.main.begin(ctx); err != nil {
		return err
	}
	return wrapf(s.main.conn.QueryRow(ctx, "SELECT pg_export_snapshot()").Scan(&s.snap), "export a snapshot")
}

// reader opens another connection on the snapshot.
func (s *source) reader(ctx context.Context) (*reader, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect a reader: %w", err)
	}
	err = c.begin(ctx)
	if err == nil {
		err = c.exec(ctx, "SET TRANSACTION SNAPSHOT '"+strings.ReplaceAll(s.snap, "'", "''")+"'")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("share the snapshot: %w", err), c.close(ctx))
	}
	return &reader{c, s.on(c)}, nil
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

// takeOver notes in the cutover marker that the files are about to become the target's, over a connection of its own: the main one only reads.
func (s *source) takeOver(ctx context.Context, uid string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect to mark the files as taken over: %w", err)
	}
	return errors.Join(cutover.TakeOver(ctx, c.conn, uid), c.close(ctx))
}

// reader is one connection, and the rows as they are laid out there. It reads one thing at a time.
type reader struct {
	connection
	layout
}

// connection is one to the database.
type connection struct{ conn *pgx.Conn }

func (c connection) close(ctx context.Context) error {
	return c.conn.Close(context.WithoutCancel(ctx))
}

func (c connection) exec(ctx context.Context, sql string) error {
	_, err := c.conn.Exec(ctx, sql)
	return err
}

func (c connection) begin(ctx context.Context) error {
	return wrapf(c.exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"), "begin to read")
}

func (c connection) hasTable(ctx context.Context, table string) (exists bool, err error) {
	err = c.conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", table).Scan(&exists)
	return exists, wrapf(err, "look for table %s", table)
}

// tableBytes is what a table takes, with its indexes and partitions.
func (c connection) tableBytes(ctx context.Context, table string) (bytes int64, err error) {
	const sql = `SELECT greatest(pg_total_relation_size($1::regclass), (SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint FROM pg_partition_tree($1::regclass)))`
	err = c.conn.QueryRow(ctx, sql, table).Scan(&bytes)
	return bytes, wrapf(err, "size of %s", table)
}

func wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
