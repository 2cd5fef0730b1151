// SPDX-License-Identifier: Apache-2.0

// Package cutover keeps the marker on the SQL side which says that it has been left for the key/value store: that this program must not write there any more. The marker is the row of a side table, moraine_cutover, that an old database lacks.
package cutover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrCutOver: the SQL side is read-only to this program.
var ErrCutOver = errors.New("the tables were cut over to the key/value store, and are read-only")

// lockKey is that of the advisory lock which writers share, and which whoever sets the marker has alone.
const lockKey = "moraine cutover"

// Marker says since when the tables are read-only.
type Marker struct {
	At time.Time
}

// Read returns the marker, nil where there is none.
func Read(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (*Marker, error) {
	var exists bool
	if err := q.QueryRow(ctx, "SELECT to_regclass('moraine_cutover') IS NOT NULL").Scan(&exists); err != nil || !exists {
		return nil, wrap("look for the cutover marker", err)
	}
	m := &Marker{}
	err := q.QueryRow(ctx, "SELECT at FROM moraine_cutover").Scan(&m.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap("read the cutover marker", err)
	}
	return m, nil
}

// Guard returns ErrCutOver where the marker is set, and otherwise keeps it from being set until the transaction ends. Every transaction that writes calls it first; its isolation must be read committed.
func Guard(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))", lockKey); err != nil {
		return wrap("share the cutover lock", err)
	}
	m, err := Read(ctx, tx)
	if err == nil && m != nil {
		err = fmt.Errorf("%w since %s", ErrCutOver, m.At.UTC().Format(time.RFC3339))
	}
	return err
}

// Set sets the marker, once the writers under way have ended. Where it is set already it stays as it is.
func Set(ctx context.Context, conn *pgx.Conn) error {
	return change(ctx, conn, `CREATE TABLE IF NOT EXISTS moraine_cutover (one boolean PRIMARY KEY DEFAULT true CHECK (one), at timestamptz NOT NULL DEFAULT now());
		INSERT INTO moraine_cutover DEFAULT VALUES ON CONFLICT DO NOTHING`)
}

// Back takes the marker away. It may be repeated.
func Back(ctx context.Context, conn *pgx.Conn) error {
	return change(ctx, conn, "DROP TABLE IF EXISTS moraine_cutover")
}

func change(ctx context.Context, conn *pgx.Conn, sql string) error {
	return wrap("change the cutover marker", pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", lockKey); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sql)
		return err
	}))
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
