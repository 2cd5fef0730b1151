// SPDX-License-Identifier: Apache-2.0

// Package cutover keeps the marker on the SQL side which says that it has been left for the key/value store: that this program
// must not write there any more. The marker is the row of a side table, moraine_cutover, that an old database lacks.
package cutover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

var (
	// ErrCutOver: the SQL side is read-only to this program.
	ErrCutOver = errors.New("the tables were cut over to the key/value store, and are read-only")
	// ErrNotCutOver: the marker that is to be added to is not set.
	ErrNotCutOver = errors.New("the tables are not cut over")
	// ErrTakenOver: the range files that the tables refer to belong to a target, which removes what it needs no more.
	ErrTakenOver = errors.New("the files of the tables belong to another store")
)

// lockKey is that of the advisory lock which writers share, and which whoever sets the marker has alone.
const lockKey = "moraine cutover"

// Marker says since when the tables are read-only.
type Marker struct {
	At time.Time
	// By is the UID of the migration that has taken over the range files; "" where none has.
	By string
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
	err := q.QueryRow(ctx, "SELECT at, taken_over_by FROM moraine_cutover").Scan(&m.At, &m.By)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap("read the cutover marker", err)
	}
	return m, nil
}

// Guard returns ErrCutOver where the marker is set, and otherwise keeps it from being set until the transaction ends. Every
// transaction that writes calls it first; its isolation must be read committed.
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
	return change(ctx, conn, func(tx pgx.Tx, _ *Marker) error {
		_, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS moraine_cutover (one boolean PRIMARY KEY DEFAULT true CHECK (one), at timestamptz NOT NULL DEFAULT now(),
			taken_over_by text NOT NULL DEFAULT '');
			INSERT INTO moraine_cutover DEFAULT VALUES ON CONFLICT DO NOTHING`)
		return err
	})
}

// TakeOver notes in the marker that a migration, by its UID, is about to make the range files those of its target: there is no
// way back then, not even if it stops half way. It may be repeated. It returns [ErrNotCutOver], or [ErrTakenOver] where another
// migration has them.
func TakeOver(ctx context.Context, conn *pgx.Conn, by string) error {
	return change(ctx, conn, func(tx pgx.Tx, m *Marker) error {
		switch {
		case by == "":
			return errors.New("no UID of a migration")
		case m == nil:
			return ErrNotCutOver
		case m.By != "" && m.By != by:
			return fmt.Errorf("%w, by migration %s", ErrTakenOver, m.By)
		}
		_, err := tx.Exec(ctx, "UPDATE moraine_cutover SET taken_over_by = $1", by)
		return err
	})
}

// Back takes the marker away. It may be repeated. Where the range files were taken over it returns [ErrTakenOver]: the tables
// refer to files that may go any time.
func Back(ctx context.Context, conn *pgx.Conn) error {
	return change(ctx, conn, func(tx pgx.Tx, m *Marker) error {
		if m != nil && m.By != "" {
			return fmt.Errorf("%w, by migration %s", ErrTakenOver, m.By)
		}
		_, err := tx.Exec(ctx, "DROP TABLE IF EXISTS moraine_cutover")
		return err
	})
}

// change changes the marker while nobody else does, and nobody writes.
func change(ctx context.Context, conn *pgx.Conn, how func(pgx.Tx, *Marker) error) error {
	return wrap("change the cutover marker", pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", lockKey); err != nil {
			return err
		}
		m, err := Read(ctx, tx)
		if err != nil {
			return err
		}
		return how(tx, m)
	}))
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
