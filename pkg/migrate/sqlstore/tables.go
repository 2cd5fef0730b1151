// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// TablesVersion is the version of the tables that this package knows, as schema_migrations has it.
const TablesVersion = 38

//go:embed tables.sql
var tables string

// CreateTables makes the tables in an empty database, or completes them, and notes their version.
func CreateTables(ctx context.Context, conn *pgx.Conn) error {
	if err := runScript(ctx, conn, tables); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	if _, err := conn.Exec(ctx, "INSERT INTO schema_migrations (version, dirty) VALUES ($1, false) ON CONFLICT DO NOTHING", TablesVersion); err != nil {
		return fmt.Errorf("note the version of the tables: %w", err)
	}
	return nil
}
