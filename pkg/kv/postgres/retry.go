// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A call that may be repeated is, with growing pauses: long enough in all for a server to restart.
const (
	attempts   = 10
	firstPause = 10 * time.Millisecond
	longPause  = time.Second
)

// notSent is an error that came before anything of the call was sent.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// lost is an error that ended the connection.
type lost struct{ error }

func (e lost) Unwrap() error { return e.error }

// read runs f, which changes nothing, again if the connection is lost.
func (s *Store) read(ctx context.Context, f func(*pgx.Conn) error) error {
	return s.repeat(ctx, f, func(err error) bool {
		return notExecuted(err) || errors.As(err, &lost{})
	})
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
		var freed <-chan struct{}
		if s.mustShare(err) {
			freed = s.freed
			n-- // as in a full pool, it is no failure to wait
		}
		if err == nil || ctx.Err() != nil || n == attempts || !again(err) {
			return describe(ctx, err)
		}
		if err := wait(ctx, rand.N(pause)+pause/2, freed); err != nil {
			return err
		}
		pause = min(2*pause, longPause)
	}
}

// mustShare tells whether the server refused another connection while there are some, one of which
// will do. The pool itself waits for one only when it has as many as it may.
func (s *Store) mustShare(err error) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &notSent{}) || !errors.As(err, &pgErr) || pgErr.Code != tooManyConnections {
		return false
	}
	stat := s.pool.Stat()
	return stat.AcquiredConns()+stat.IdleConns() > 0
}

// wait waits for some time, or until it gets a token, or until the context ends.
func wait(ctx context.Context, d time.Duration, token <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-token:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// once runs f on a connection. One that breaks for another reason than our own is a sign that the
// server went away, and then all of them are broken; dropping them spares the next calls.
func (s *Store) once(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return notSent{err}
	}
	defer s.release(conn)
	err = f(conn.Conn())
	if err == nil || !conn.Conn().IsClosed() {
		return err
	}
	if ctx.Err() == nil {
		s.pool.Reset()
	}
	return lost{err}
}

func (s *Store) release(conn *pgxpool.Conn) {
	conn.Release()
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// describe makes an error fit for the caller: that of his context if it has ended, and without the
// configuration, which holds the password, that the client library puts into a failure to connect.
func describe(ctx context.Context, err error) error {
	var connect *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return errors.New("the server accepts no writes: it is a standby or set to read-only; " +
			"name the primary, or open the store read-only")
	case errors.As(err, &connect):
		return connectError{connect.Unwrap()}
	default:
		return err
	}
}

// connectError joins what went wrong with each host, and with and without TLS, which may be the same.
type connectError struct{ error }

func (e connectError) Unwrap() error { return e.error }

func (e connectError) Error() string {
	var said []string
	for line := range strings.SplitSeq(e.error.Error(), "\n") {
		// The client library puts a prefix before the first of several.
		if !slices.ContainsFunc(said, func(s string) bool { return s == line || strings.HasSuffix(s, ": "+line) }) {
			said = append(said, line)
		}
	}
	return "connect: " + strings.Join(said, "; ")
}
