// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Why tables are not opened, beside [kv.ErrNotAStore] and [kv.ErrSchemaNewer].
var (
	// ErrUnknownTables: the tables are of another version than [TablesVersion], or do not say of which.
	ErrUnknownTables = errors.New("unknown version of the tables")
	// ErrDirtyTables: a change of the tables was cut off.
	ErrDirtyTables = errors.New("a change of the tables was cut off")
)

// sideVersion is the version of our own tables that this program works with. Each version has a file that makes it from the one before.
const sideVersion = 1

//go:embed side/*.sql
var sideFiles embed.FS

// sideLock is the advisory lock of whoever creates or upgrades the tables.
const sideLock = 0x6d6f7261696e6573 // "moraines"

// CheckTables makes sure that the old tables are there and of the version that this package knows. It returns kv.ErrNotAStore,
// [ErrUnknownTables] or [ErrDirtyTables], and changes nothing.
func CheckTables(ctx context.Context, conn *pgx.Conn) error {
	switch there, err := hasTable(ctx, conn, "graveler_repositories"); {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("%w: the database has no table graveler_repositories", kv.ErrNotAStore)
	}
	if there, err := hasTable(ctx, conn, "schema_migrations"); err != nil || !there {
		return errors.Join(err, fmt.Errorf("%w: the database has no table schema_migrations", ErrUnknownTables))
	}
	var version int64
	var dirty bool
	err := conn.QueryRow(ctx, "SELECT version, dirty FROM schema_migrations ORDER BY version DESC LIMIT 1").Scan(&version, &dirty)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%w: schema_migrations has no row", ErrUnknownTables)
	case err != nil:
		return fmt.Errorf("read schema_migrations: %w", err)
	case version != TablesVersion:
		return fmt.Errorf("%w: %d, this program knows %d", ErrUnknownTables, version, TablesVersion)
	case dirty:
		return fmt.Errorf("%w: schema_migrations says that version %d is dirty", ErrDirtyTables, version)
	}
	return nil
}

// ensureTables makes sure that all tables are there and of the right version. It may be called by many processes at once. plain
// says that our own are not, and are not to be made.
func ensureTables(ctx context.Context, conn *pgx.Conn, readOnly bool) (plain bool, err error) {
	version, err := versionOfSide(ctx, conn)
	switch {
	case err != nil:
		return false, err
	case version > sideVersion:
		return false, fmt.Errorf("%w: the tables moraine_* have version %d, this program knows up to %d", kv.ErrSchemaNewer, version, sideVersion)
	case version == sideVersion:
		return false, CheckTables(ctx, conn)
	case readOnly && version > 0:
		return false, fmt.Errorf("the tables moraine_* have version %d, this program needs %d: open the store for writing once", version, sideVersion)
	case readOnly:
		return true, CheckTables(ctx, conn)
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Whoever waits here finds everything done.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(sideLock)); err != nil {
			return err
		}
		return makeTables(ctx, conn)
	})
	if err != nil {
		return false, fmt.Errorf("create tables: %w", err)
	}
	return false, nil
}

// makeTables makes in the transaction of conn what is missing: everything in a database that has none of it, and our own tables beside old ones.
func makeTables(ctx context.Context, conn *pgx.Conn) error {
	var nothing bool
	err := conn.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_tables
		WHERE schemaname = current_schema() AND (tablename = 'schema_migrations' OR tablename LIKE 'graveler\_%'))`).Scan(&nothing)
	if err == nil && nothing {
		err = CreateTables(ctx, conn)
	}
	if err == nil {
		err = CheckTables(ctx, conn)
	}
	if err != nil {
		return err
	}
	version, err := versionOfSide(ctx, conn)
	if err == nil && version == 0 {
		err = runScript(ctx, conn, "CREATE TABLE moraine_side (version integer PRIMARY KEY)")
	}
	for version++; err == nil && version <= sideVersion; version++ {
		err = upgradeSide(ctx, conn, version)
	}
	return err
}

func upgradeSide(ctx context.Context, conn *pgx.Conn, version int) error {
	sql, err := sideFiles.ReadFile(fmt.Sprintf("side/%04d.sql", version))
	if err != nil {
		return err
	}
	if err := runScript(ctx, conn, string(sql)); err != nil {
		return err
	}
	return runScript(ctx, conn, fmt.Sprintf("INSERT INTO moraine_side VALUES (%d)", version))
}

// versionOfSide returns 0 where there are none of our tables.
func versionOfSide(ctx context.Context, conn *pgx.Conn) (version int, err error) {
	there, err := hasTable(ctx, conn, "moraine_side")
	if err != nil || !there {
		return 0, err
	}
	err = conn.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM moraine_side").Scan(&version)
	return version, err
}

func hasTable(ctx context.Context, conn *pgx.Conn, name string) (there bool, err error) {
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = $1)", name).Scan(&there)
	return there, err
}

// runScript runs several statements without parameters.
func runScript(ctx context.Context, conn *pgx.Conn, sql string) error {
	_, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// ownTables are ours, with their columns.
var ownTables = map[string]string{
	"moraine_repositories": "id text, uid text, record text",
	"moraine_branches":     "repository_id text, id text, record text",
	"moraine_commits":      "repository_id text, id text, record text",
	"moraine_moves":        "partition text, branch_uid text, at bigint, record text",
	"moraine_log_names":    "partition text, branch text, branch_uid text",
	"moraine_log_bounds":   "partition text, branch_uid text, start bigint, intent bigint",
	"moraine_pins":         "partition text, owner text, record text",
	"moraine_expirations":  "partition text, commit_id text, at bigint, pending boolean",
	"moraine_settings":     "partition text, name text, stamp text, document bytea",
	"moraine_cleanups":     "partition text, record text",
	"moraine_clock":        "one boolean, watermark bigint",
}
