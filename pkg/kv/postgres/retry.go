// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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
		if err == nil || ctx.Err() != nil || n == attempts || !again(err) {
			return describe(ctx, err)
		}
		if err := wait(ctx, rand.N(pause)+pause/2); err != nil {
			return err
		}
		pause = min(2*pause, longPause)
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
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
		return fmt.Errorf("connect: %w", connect.Unwrap())
	default:
		return err
	}
}
