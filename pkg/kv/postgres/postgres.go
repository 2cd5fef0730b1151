// SPDX-License-Identifier: Apache-2.0

// Package postgres is the key/value engine on a PostgreSQL database, for any number of processes on
// any number of machines. It needs no extension and no rights but those to its own schema, and is
// tested with version 15.
//
// The URL is postgres://USER:PASSWORD@HOST:PORT/DATABASE, with the parameters that libpq and pgx
// know (sslmode, connect_timeout, target_session_attrs, pool_max_conns, several hosts, ...); the
// environment (PGPASSWORD, PGSSLROOTCERT, ...) and the password file count too. A store has up to 16
// connections unless pool_max_conns says otherwise. A pooler in between must keep session settings,
// as PgBouncer does in session mode only.
//
// # Tables
//
// Everything is in the schema moraine: the table kv, hash-partitioned by partition key, and the
// table layout, which holds the version of this. Other tables of the database are left alone. The
// tables are made by the first Open for writing; any number of processes may do so at once.
//
// # Writes
//
// Sets that wait at the same moment travel as one statement, and so do deletes of one partition, unconditional Apply calls under
// one fence, and other batches of Apply of one partition under one fence: while two groups are under way, the next one gathers
// (decision 0014). There is no timer, and a lone call goes at once, so that it costs one round trip and one commit, and the
// throughput of many grows with their number. A group lands as a whole or not at all, except that each batch with conditions has a
// verdict of its own, and that each call has its own context: one that ends withdraws the call if it is still waiting.
//
// SetIf, DeleteIf and groups of batches are one round trip each: two or three statements in one transaction, READ COMMITTED, so
// that each statement sees all that was committed before it began. The first takes an advisory lock on the key that is the fence,
// shared, or, for SetIf and DeleteIf, on the key itself, exclusive; so while a fence is being changed, those who rely on it wait,
// and then see the change; and otherwise any number of them go on side by side, since none touches the row of the fence. All locks
// on rows are taken in the order of keys, so they cannot cross.
//
// A write is repeated only where it is certain that it was not executed: no connection could be had,
// nothing was sent, or PostgreSQL broke it off as the victim of a deadlock. Reads are repeated when a
// connection is lost. Both give up after some seconds. Where the server grants no more connections, calls
// share those that the store has, and wait for one as long as their context allows.
//
// synchronous_commit is on, unless the URL says otherwise, which is then the operator's decision.
//
// # Reads
//
// Gets that wait at the same moment travel as one statement, as sets do; each begins after the call did. Each page of a scan is a
// statement of its own; nothing is held between two pages. For writing, a store connects to a primary only, so that reads are never
// stale; a store that is opened read-only may use a standby, and is then as late as that.
package postgres

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/internal/pgpool"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Store is a store in a database. It implements kv.Store, kv.ManySetter, kv.PartitionDropper and kv.Publisher.
type Store struct {
	pool     *pgpool.Pool
	readOnly bool
	groups   groups

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // calls in progress, and groups that are under way
}

var (
	_ kv.ManySetter       = (*Store)(nil)
	_ kv.PartitionDropper = (*Store)(nil)
	_ kv.Publisher        = (*Store)(nil)
)

// Open is the kv.Opener of postgres://... It connects, and creates the tables unless the store is
// opened read-only. It does not wait for a server that is not there. A database without our tables,
// or with other ones in their place, is kv.ErrNotAStore.
func Open(ctx context.Context, url string, o kv.OpenOptions) (kv.Store, error) {
	pool, err := pgpool.New(ctx, url, o.ReadOnly, nil)
	if err != nil {
		return nil, err
	}
	s := &Store{pool: pool, readOnly: o.ReadOnly}
	s.groups.run = s.runGroup
	err = pool.Once(ctx, func(conn *pgx.Conn) error { return ensureLayout(ctx, conn, o.ReadOnly) })
	if err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// Limits returns what the store accepts.
func (s *Store) Limits() kv.Limits {
	return kv.Limits{
		KeyBytes:    kv.MaxKeyBytes,
		ValueBytes:  kv.MaxValueBytes,
		ApplyWrites: 1000,
		ApplyBytes:  4 << 20,
		CheapFences: true,
	}
}

// Close waits for the calls in progress and closes the connections.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	s.pool.Close()
	return nil
}

// begin admits a call; if it returns nil, the caller must call s.calls.Done.
func (s *Store) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return kv.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.Add(1)
	return nil
}

// call runs one call of the store.
func (s *Store) call(ctx context.Context, run func() error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return run()
}

// change runs one call that writes.
func (s *Store) change(ctx context.Context, run func() error) error {
	return s.call(ctx, func() error {
		if s.readOnly {
			return kv.ErrReadOnly
		}
		return run()
	})
}
