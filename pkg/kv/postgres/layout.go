// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/moraine-store/moraine/pkg/kv"
)

// layout is the version of our tables that this program works with. Each version has a file that
// makes it from the one before.
const layout = 1

//go:embed layout/*.sql
var layoutFiles embed.FS

// layoutLock is the advisory lock of whoever creates or upgrades the tables.
const layoutLock = 0x6d6f7261696e65 // "moraine"

// ensureLayout makes sure that the tables are there and of the right version. It may be called by
// many processes at once. A user who may not create anything can open what exists.
func ensureLayout(ctx context.Context, conn *pgx.Conn, readOnly bool) error {
	version, err := layoutVersion(ctx, conn)
	switch {
	case err != nil:
		return err
	case version > layout:
		return fmt.Errorf("%w: tables have layout %d, this program knows up to %d", kv.ErrSchemaNewer, version, layout)
	case version == layout:
		return nil
	case readOnly && version == 0:
		return fmt.Errorf("%w: the database has no table moraine.layout", kv.ErrNotAStore)
	case readOnly:
		return fmt.Errorf("tables have layout %d, this program needs %d: open the store for writing once", version, layout)
	default:
		return upgrade(ctx, conn)
	}
}

// layoutVersion returns 0 if there are no tables. It asks the catalogue, since to_regclass may
// remember an earlier answer for as long as a transaction lasts.
func layoutVersion(ctx context.Context, conn *pgx.Conn) (version int, err error) {
	var exists bool
	err = conn.QueryRow(ctx, `
		select exists (select from pg_catalog.pg_tables where schemaname = 'moraine' and tablename = 'layout')`,
	).Scan(&exists)
	if err != nil || !exists {
		return 0, err
	}
	err = conn.QueryRow(ctx, `select coalesce(max(version), 0) from moraine.layout`).Scan(&version)
	return version, err
}

func upgrade(ctx context.Context, conn *pgx.Conn) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Whoever waits here finds everything done.
		if _, err := tx.Exec(ctx, lockExclusive, int64(layoutLock)); err != nil {
			return err
		}
		version, err := layoutVersion(ctx, conn)
		if err != nil {
			return err
		}
		if version == 0 {
			err = runScript(ctx, conn, `create schema if not exists moraine;
				create table moraine.layout (version integer primary key)`)
			if err != nil {
				return err
			}
		}
		for version++; version <= layout; version++ {
			if err := upgradeTo(ctx, conn, version); err != nil {
				return err
			}
		}
		return nil
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == duplicateTable {
		return fmt.Errorf("%w: the schema moraine holds something else: %w", kv.ErrNotAStore, err)
	}
	if err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	return nil
}

func upgradeTo(ctx context.Context, conn *pgx.Conn, version int) error {
	sql, err := layoutFiles.ReadFile(fmt.Sprintf("layout/%04d.sql", version))
	if err != nil {
		return err
	}
	if err := runScript(ctx, conn, string(sql)); err != nil {
		return err
	}
	return runScript(ctx, conn, fmt.Sprintf(`insert into moraine.layout values (%d)`, version))
}

// runScript runs several statements without parameters.
func runScript(ctx context.Context, conn *pgx.Conn, sql string) error {
	_, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}
