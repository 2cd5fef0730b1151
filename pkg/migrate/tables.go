// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// The tables that are read.
const (
	repositoriesTable = "graveler_repositories"
	branchesTable     = "graveler_branches"
	commitsTable      = "graveler_commits"
	tagsTable         = "graveler_tags"
	stagingTable      = "graveler_staging_kv"
	schemaTable       = "schema_migrations"
)

func tableNames() []string {
	return []string{repositoriesTable, branchesTable, commitsTable, tagsTable, stagingTable}
}

// tables is the layout of the time before key/value stores.
type tables struct{ connection }

func findTables(ctx context.Context, c connection) (*foundLayout, error) {
	for _, table := range append(tableNames(), schemaTable) {
		exists, err := c.hasTable(ctx, table)
		if err != nil {
			return nil, err
		}
		if !exists {
			return nil, fmt.Errorf("%w %s", ErrMissingTable, table)
		}
	}
	version, dirty, err := tables{c}.schema(ctx)
	switch {
	case err != nil:
		return nil, err
	case version != sqlstore.TablesVersion:
		return nil, fmt.Errorf("%w: %d, this program reads version %d", ErrUnknownSchema, version, sqlstore.TablesVersion)
	case dirty:
		return nil, fmt.Errorf("%w (version %d)", ErrDirtySchema, version)
	}
	return &foundLayout{func(c connection) layout { return tables{c} }, version, repositoriesTable}, nil
}

// schema returns the version of the tables, 0 where none is noted.
func (t tables) schema(ctx context.Context) (version int64, dirty bool, err error) {
	err = t.conn.QueryRow(ctx, "SELECT coalesce(max(version), 0), coalesce(bool_or(dirty), false) FROM schema_migrations").Scan(&version, &dirty)
	return version, dirty, wrapf(err, "read the version of the tables")
}

func (tables) table(k kind) string {
	return [...]string{repositoriesTable, tagsTable, commitsTable, branchesTable, commitsTable, stagingTable}[k]
}

func (t tables) repositories(ctx context.Context) iter.Seq2[repositoryRow, error] {
	return rowsOf(ctx, t.connection, repositoriesTable, func(rows pgx.Rows) (v repositoryRow, err error) {
		var created pgtype.Timestamptz
		err = rows.Scan(&v.id, &v.namespace, &v.defaultBranch, &created)
		v.created = instant(created)
		return v, err
	}, `SELECT id, storage_namespace, default_branch, creation_date FROM graveler_repositories ORDER BY id COLLATE "C"`)
}

// settings: the tables have none.
func (tables) settings(context.Context, repositoryRow) (settingsRow, error) {
	return settingsRow{}, nil
}

func (t tables) branches(ctx context.Context, repo repositoryRow) iter.Seq2[branchRow, error] {
	return rowsOf(ctx, t.connection, branchesTable, func(rows pgx.Rows) (v branchRow, err error) {
		var token, commit *string
		err = rows.Scan(&v.id, &token, &commit)
		if token != nil && *token != "" {
			v.tokens = []string{*token}
		}
		if commit != nil {
			v.commit = *commit
		}
		return v, err
	}, `SELECT id, staging_token, commit_id FROM graveler_branches WHERE repository_id = $1 ORDER BY id COLLATE "C"`, repo.id)
}

func (t tables) tags(ctx context.Context, repo repositoryRow) iter.Seq2[tagRow, error] {
	return rowsOf(ctx, t.connection, tagsTable, func(rows pgx.Rows) (v tagRow, err error) {
		return v, rows.Scan(&v.id, &v.commit)
	}, `SELECT id, coalesce(commit_id, '') FROM graveler_tags WHERE repository_id = $1 ORDER BY id COLLATE "C"`, repo.id)
}

func (t tables) commitLinks(ctx context.Context, repo repositoryRow) iter.Seq2[commitRow, error] {
	return rowsOf(ctx, t.connection, commitsTable, func(rows pgx.Rows) (v commitRow, err error) {
		var created pgtype.Timestamptz
		var parents pgtype.FlatArray[pgtype.Text]
		err = rows.Scan(&v.id, &v.tree, &created, &parents, &v.version)
		v.created = instant(created)
		v.parents, v.badParents = parentsOf(parents)
		return v, err
	}, `SELECT id, meta_range_id, creation_date, parents, version FROM graveler_commits WHERE repository_id = $1`, repo.id)
}

const selectCommits = `SELECT id, committer, message, meta_range_id, creation_date, metadata, parents, version FROM graveler_commits WHERE repository_id = $1`

func scanCommit(rows pgx.Rows) (v commitRow, err error) {
	var created pgtype.Timestamptz
	var metadata []byte
	var parents pgtype.FlatArray[pgtype.Text]
	err = rows.Scan(&v.id, &v.committer, &v.message, &v.tree, &created, &metadata, &parents, &v.version)
	v.created = instant(created)
	v.metadata, v.badMetadata = pairsOf(metadata)
	v.parents, v.badParents = parentsOf(parents)
	return v, err
}

func (t tables) commits(ctx context.Context, repo repositoryRow) iter.Seq2[commitRow, error] {
	return rowsOf(ctx, t.connection, commitsTable, scanCommit, selectCommits+` ORDER BY id COLLATE "C"`, repo.id)
}

func (t tables) unsortedCommits(ctx context.Context, repo repositoryRow) iter.Seq2[commitRow, error] {
	return rowsOf(ctx, t.connection, commitsTable, scanCommit, selectCommits, repo.id)
}

// staged: a branch of the tables has one token.
func (t tables) staged(ctx context.Context, tokens []string) iter.Seq2[stagedRow, error] {
	return rowsOf(ctx, t.connection, stagingTable, func(rows pgx.Rows) (v stagedRow, err error) {
		return v, rows.Scan(&v.key, &v.identity, &v.data)
	}, `SELECT key, identity, data FROM graveler_staging_kv WHERE staging_token = ANY($1) ORDER BY key`, tokens)
}

// instant is the zero time where there is none that a program can use.
func instant(t pgtype.Timestamptz) time.Time {
	if !t.Valid || t.InfinityModifier != pgtype.Finite {
		return time.Time{}
	}
	return t.Time
}

func parentsOf(parents pgtype.FlatArray[pgtype.Text]) ([]string, error) {
	var ids []string
	for _, p := range parents {
		if !p.Valid {
			return nil, errors.New("a parent is NULL")
		}
		ids = append(ids, p.String)
	}
	return ids, nil
}

// pairsOf decodes metadata: SQL NULL and JSON null are none.
func pairsOf(text []byte) (map[string]string, error) {
	var pairs map[string]*string
	if text == nil {
		return nil, nil
	}
	if err := json.Unmarshal(text, &pairs); err != nil {
		return nil, errors.New("its metadata is not an object of strings")
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(pairs))
	for k, v := range pairs {
		if v == nil {
			return nil, fmt.Errorf("its metadata has null for %s", quoted(k))
		}
		m[k] = *v
	}
	return m, nil
}

// rowsOf yields the rows of a query as they come. An error, also one in the middle of the rows, is the last thing that it yields.
func rowsOf[T any](ctx context.Context, c connection, table string, scan func(pgx.Rows) (T, error), sql string, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		rows, err := c.conn.Query(ctx, sql, args...)
		if err != nil {
			yield(none, fmt.Errorf("read %s: %w", table, err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			v, err := scan(rows)
			if err != nil {
				yield(none, fmt.Errorf("read %s: %w", table, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(none, fmt.Errorf("read %s: %w", table, err))
		}
	}
}
