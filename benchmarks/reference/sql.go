// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// SQL is a table in a schema of its own of a PostgreSQL database.
type SQL struct{ pool *pgxpool.Pool }

// OpenSQL makes the schema and the table. Up to connections writes can be under way at a time.
func OpenSQL(ctx context.Context, url string, connections int) (*SQL, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open the table of references: %w", err)
	}
	config.MaxConns = int32(connections)
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the table of references: %w", err)
	}
	for _, statement := range []string{
		"create schema moraine_bench", // one that is there already is somebody's
		"create table moraine_bench.records (partition_key bytea, key bytea, value bytea not null, primary key (partition_key, key))",
	} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			pool.Close()
			return nil, fmt.Errorf("make the table of references: %w", err)
		}
	}
	return &SQL{pool}, nil
}

// Set writes one record with one statement.
func (s *SQL) Set(ctx context.Context, key, value []byte) error {
	_, err := s.pool.Exec(ctx, `insert into moraine_bench.records (partition_key, key, value) values ('bench', $1, $2)
		on conflict (partition_key, key) do update set value = excluded.value`, key, value)
	return err
}

// Close removes the schema with all that is in it.
func (s *SQL) Close() error {
	defer s.pool.Close()
	if _, err := s.pool.Exec(context.Background(), "drop schema moraine_bench cascade"); err != nil {
		return fmt.Errorf("remove the table of references: %w", err)
	}
	return nil
}

// Settings returns what a PostgreSQL server says about its version and about how durable a commit is.
func Settings(ctx context.Context, url string) (version string, durability map[string]string, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", nil, fmt.Errorf("ask the server for its settings: %w", err)
	}
	defer conn.Close(ctx)
	durability = map[string]string{}
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes", "wal_sync_method"} {
		var value string
		if err := conn.QueryRow(ctx, "show "+name).Scan(&value); err != nil {
			return "", nil, fmt.Errorf("ask the server for %s: %w", name, err)
		}
		durability[name] = value
	}
	return conn.PgConn().ParameterStatus("server_version"), durability, nil
}
