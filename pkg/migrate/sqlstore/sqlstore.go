// SPDX-License-Identifier: Apache-2.0

// Package sqlstore is the SQL side: the tables in which older deployments keep graveler metadata, as a working back end of the
// versioned store. A [Store] implements [graveler.Refs] and [graveler.Staging] on them, for any number of processes on any number
// of machines.
//
// # Tables
//
// The old tables (tables.sql) hold what they can: repositories, branches with their heads and staging tokens, commits, tags and
// staged entries. What they cannot hold is in tables moraine_* of our own (side), which Open makes where they are missing. A row
// of an old table that has no counterpart there was written by the old program. It reads as what [RepositoryRow], [BranchRow] and
// [CommitRow] make of it, with the ancestors of a commit, always the same, and gets its counterpart with the first write. So a
// database of the old program can be opened read-only as it is, and opened for writing while that program is stopped.
//
// Texts that PostgreSQL's text cannot hold, those with a zero byte, are graveler.ErrInvalidValue, and so are texts that are not UTF-8.
//
// # Concurrency
//
// A conditional write is one round trip: a lock on the row, and then a statement that compares the row with the stamp and writes.
// Stamps are what the row held, or, for settings, drawn anew with each write. Everything within a repository is written while the
// repository's row is locked against removal, so that what a late writer leaves can never come to belong to a new repository of
// the same name: he gets graveler.ErrRepositoryNotFound.
//
// Staged writes rely on the branch's record, and share a lock on it with each other. That is an advisory lock, which the branch's
// writers take too, and not a row lock: PostgreSQL lets sharers of a row overtake whoever waits to change it, so a commit might
// wait for as long as others write. Locks of advisory kind are granted in turn.
//
// A write is repeated only where it certainly had no effect, and reads where the connection was lost; see package
// internal/pgpool. Each page of a scan is a statement of its own, and nothing is held between two pages.
package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/internal/pgpool"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Scheme is that of the URLs that Open takes.
const Scheme = "sql+postgres"

var (
	_ graveler.Refs    = (*Store)(nil)
	_ graveler.Staging = (*Store)(nil)
)

// Store is a store in the tables of a database. It is safe for concurrent use.
type Store struct {
	pool     *pgpool.Pool
	readOnly bool
	tables   *strings.Replacer // {NAME} in a statement that reads: our table moraine_NAME

	writes atomic.Int64

	histories sync.Map      // *history of the repositories that have commits of the old program and were read, by partition
	reading   chan struct{} // full while one is read

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // in progress
}

// Open opens the store at sql+postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETER=VALUE; parameters are those of libpq and pgx.
// Where the database has none of the tables, Open makes them, unless it is to be read-only: then that is kv.ErrNotAStore. Tables
// of another version are [ErrUnknownTables], [ErrDirtyTables] or kv.ErrSchemaNewer. It does not wait for a server that is not
// there.
func Open(ctx context.Context, url string, o kv.OpenOptions) (*Store, error) {
	s, err := open(ctx, url, o)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", kv.Redact(url), err)
	}
	return s, nil
}

func open(ctx context.Context, url string, o kv.OpenOptions) (*Store, error) {
	pool, err := openPool(ctx, url, o.ReadOnly)
	if err != nil {
		return nil, err
	}
	s := &Store{pool: pool, readOnly: o.ReadOnly, reading: make(chan struct{}, 1)}
	err = pool.Once(ctx, func(conn *pgx.Conn) error {
		plain, err := ensureTables(ctx, conn, o.ReadOnly)
		s.tables = tableNames(plain)
		return err
	})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// tableNames puts our tables into statements; in a plain old database, empty ones in their place.
func tableNames(plain bool) *strings.Replacer {
	var pairs []string
	for table, columns := range ownTables {
		name := table
		if plain {
			name = "(SELECT * FROM json_to_recordset('[]') AS none(" + columns + "))"
		}
		pairs = append(pairs, "{"+strings.TrimPrefix(table, "moraine_")+"}", name)
	}
	return strings.NewReplacer(pairs...)
}

// Close waits for the calls in progress and closes the connections. It may be repeated.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	s.pool.Close()
	return nil
}

// Writes is how many calls that write there were so far, each of which waits for one commit, for those who measure.
func (s *Store) Writes() int64 { return s.writes.Load() }

// call runs one call of the store.
func (s *Store) call(ctx context.Context, run func() error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return run()
}

// begin admits a call; if it returns nil, the caller must call s.calls.Done.
func (s *Store) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return graveler.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.Add(1)
	return nil
}

// change runs one call that writes.
func (s *Store) change(ctx context.Context, run func() error) error {
	return s.call(ctx, func() error {
		if s.readOnly {
			return graveler.ErrReadOnly
		}
		s.writes.Add(1)
		return run()
	})
}
