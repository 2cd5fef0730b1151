// SPDX-License-Identifier: Apache-2.0

// Package pgpool keeps the connections of a store to PostgreSQL. A call is repeated where that is certainly safe, with growing
// pauses, which in all are long enough for a server to restart.
package pgpool

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	attempts   = 10
	firstPause = 10 * time.Millisecond
	longPause  = time.Second
)

// Codes of errors, from appendix A of PostgreSQL's manual.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	tooManyConnections   = "53300"
)

// Pool is safe for concurrent use.
type Pool struct {
	*pgxpool.Pool
	freed chan struct{} // gets a token for each connection that is given back, while there is room
}

// New makes a pool by a URL, SCHEME://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETER=VALUE, with the parameters that libpq and pgx
// know; one that is malformed is kv.ErrInvalidURL. The sessions have the parameters in session besides, whatever the URL says. It
// does not connect yet. For writing it connects to a primary only.
func New(ctx context.Context, url string, readOnly bool, session map[string]string) (*Pool, error) {
	config, err := parse(url, readOnly, session)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, describe(ctx, err)
	}
	return &Pool{Pool: pool, freed: make(chan struct{}, config.MaxConns)}, nil
}

// Once runs f on a connection, and not again.
func (p *Pool) Once(ctx context.Context, f func(*pgx.Conn) error) error {
	return describe(ctx, p.once(ctx, f))
}

// Read runs f, which changes nothing, again if the connection is lost.
func (p *Pool) Read(ctx context.Context, f func(*pgx.Conn) error) error {
	return p.repeat(ctx, f, func(err error) bool { return notExecuted(err) || errors.As(err, &lost{}) })
}

// Write runs f, which is one transaction, again only if it certainly had no effect: no connection could be had, nothing was sent,
// or PostgreSQL broke it off as the victim of a deadlock.
func (p *Pool) Write(ctx context.Context, f func(*pgx.Conn) error) error {
	return p.repeat(ctx, f, notExecuted)
}

// notSent is an error that came before anything of the call was sent.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// lost is an error that ended the connection.
type lost struct{ error }

func (e lost) Unwrap() error { return e.error }

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

func (p *Pool) repeat(ctx context.Context, f func(*pgx.Conn) error, again func(error) bool) error {
	pause := firstPause
	for n := 1; ; n++ {
		err := p.once(ctx, f)
		var freed <-chan struct{}
		if p.mustShare(err) {
			freed = p.freed
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

// mustShare tells whether the server refused another connection while there are some, one of which will do. The pool itself waits
// for one only when it has as many as it may.
func (p *Pool) mustShare(err error) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &notSent{}) || !errors.As(err, &pgErr) || pgErr.Code != tooManyConnections {
		return false
	}
	stat := p.Stat()
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

// once runs f on a connection. One that breaks for another reason than our own is a sign that the server went away, and then all
// of them are broken; dropping them spares the next calls.
func (p *Pool) once(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := p.Acquire(ctx)
	if err != nil {
		return notSent{err}
	}
	defer p.release(conn)
	err = f(conn.Conn())
	if err == nil || !conn.Conn().IsClosed() {
		return err
	}
	if ctx.Err() == nil {
		p.Reset()
	}
	return lost{err}
}

func (p *Pool) release(conn *pgxpool.Conn) {
	conn.Release()
	select {
	case p.freed <- struct{}{}:
	default:
	}
}
