// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/cutover"
)

// Defaults for what the URL does not say.
const (
	maxConns       = 16
	connectTimeout = 10 * time.Second
)

// errURL does not wrap what the client library says, which may quote a malformed URL with its password.
var errURL = fmt.Errorf("%w: malformed, or an unknown value of a parameter: write %s://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETER=VALUE", kv.ErrInvalidURL, Scheme)

func parseURL(url string, readOnly bool) (*pgxpool.Config, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	if !strings.EqualFold(scheme, Scheme) || !strings.HasPrefix(rest, "//") {
		return nil, errURL
	}
	config, err := pgxpool.ParseConfig("postgres:" + rest)
	if err != nil {
		return nil, errURL
	}
	if !strings.Contains(rest, "pool_max_conns=") {
		config.MaxConns = maxConns
	}
	conn := config.ConnConfig
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectTimeout
	}
	// Statements that are prepared go in a pipeline.
	conn.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	if !readOnly {
		// Also after a failover, and with several hosts: reads from a standby would be stale.
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	setParameters(conn.RuntimeParams, readOnly)
	return config, nil
}

// setParameters gives every session what the statements count on, whatever is set for the database or the user.
func setParameters(p map[string]string, readOnly bool) {
	for name, value := range map[string]string{"application_name": "moraine", "synchronous_commit": "on"} {
		if _, chosen := p[name]; !chosen {
			p[name] = value
		}
	}
	// Each statement must see what was committed while the one before it waited for a lock.
	p["default_transaction_isolation"] = "read committed"
	p["statement_timeout"] = "0"
	p["lock_timeout"] = "0"
	// A plan is made once per connection, when tables may be empty, and must still be right when they are large: by index, and from the few rows that are asked for to those beside them.
	p["plan_cache_mode"] = "force_generic_plan"
	for _, method := range []string{"enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit"} {
		p[method] = "off"
	}
	if readOnly {
		p["default_transaction_read_only"] = "on"
	}
}

// A call that may be repeated is, with growing pauses: long enough in all for a server to restart.
const (
	attempts   = 10
	firstPause = 10 * time.Millisecond
	longPause  = time.Second
)

// Codes of errors, from appendix A of PostgreSQL's manual.
const (
	serializationFailure = "40001"
	cutOver              = "MC001" // what moraine_guard raises
	deadlockDetected     = "40P01"
)

// notSent is an error that came before anything of the call was sent.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// lost is an error that ended the connection.
type lost struct{ error }

func (e lost) Unwrap() error { return e.error }

// read runs f, which changes nothing, again if the connection is lost.
func (s *Store) read(ctx context.Context, f func(*pgx.Conn) error) error {
	return s.repeat(ctx, f, func(err error) bool { return notExecuted(err) || errors.As(err, &lost{}) })
}

// write runs f, which is one transaction, again only if it certainly had no effect.
func (s *Store) write(ctx context.Context, f func(*pgx.Conn) error) error {
	return s.repeat(ctx, f, notExecuted)
}

func notExecuted(err error) bool {
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &notSent{}), pgconn.SafeToRetry(err):
		return true
	case errors.As(err, &pgErr):
		return pgErr.Code == deadlockDetected || pgErr.Code == serializationFailure
	default:
		return false
	}
}

func (s *Store) repeat(ctx context.Context, f func(*pgx.Conn) error, again func(error) bool) error {
	pause := firstPause
	for n := 1; ; n++ {
		err := s.once(ctx, f)
		if err == nil || ctx.Err() != nil || n == attempts || !again(err) {
			return describe(ctx, err)
		}
		t := time.NewTimer(rand.N(pause) + pause/2)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
		pause = min(2*pause, longPause)
	}
}

// once runs f on a connection. One that breaks for another reason than our own is a sign that the server went away, and then all of them are broken; dropping them spares the next calls.
func (s *Store) once(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return notSent{err}
	}
	defer conn.Release()
	err = f(conn.Conn())
	if err == nil || !conn.Conn().IsClosed() {
		return err
	}
	if ctx.Err() == nil {
		s.pool.Reset()
	}
	return lost{err}
}

// describe makes an error fit for the caller: that of his context if it has ended, and without the configuration, which holds the password, that the client library puts into a failure to connect.
func describe(ctx context.Context, err error) error {
	var connect *pgconn.ConnectError
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &pgErr) && pgErr.Code == cutOver:
		return cutover.ErrCutOver
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return errors.New("the server accepts no writes: it is a standby or set to read-only; name the primary, or open the store read-only")
	case errors.As(err, &connect):
		return fmt.Errorf("connect: %w", connect.Unwrap())
	default:
		return err
	}
}
