// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// What a plan asks the database that has the tables.

func (t tables) countStaged(ctx context.Context, tokens []string) (n int64, err error) {
	err = t.conn.QueryRow(ctx, "SELECT count(*) FROM graveler_staging_kv WHERE staging_token = ANY($1)", tokens).Scan(&n)
	return n, wrapf(err, "count %s", stagingTable)
}

// suspects need not unpack large values.
func (t tables) suspects(ctx context.Context, owned func(string) bool, valueBytes int) iter.Seq2[suspectRow, error] {
	scan := func(rows pgx.Rows) (v suspectRow, err error) {
		return v, rows.Scan(&v.token, &v.key, &v.identity, &v.data)
	}
	sql := fmt.Sprintf(`SELECT staging_token, key, identity, data FROM graveler_staging_kv WHERE octet_length(key) = 0 OR substring(key FROM 1 FOR 1) = '\x00' OR octet_length(key) > %d OR octet_length(identity) = 0
		OR coalesce(octet_length(identity), 0) + coalesce(octet_length(data), 0) > %d OR identity IS NULL AND octet_length(data) > 0`, graveler.MaxKeyBytes, valueBytes)
	return ownedRows(rowsOf(ctx, t.connection, stagingTable, scan, sql), owned)
}

// ownedRows leaves out rows under tokens that no branch has.
func ownedRows(rows iter.Seq2[suspectRow, error], owned func(string) bool) iter.Seq2[suspectRow, error] {
	return func(yield func(suspectRow, error) bool) {
		for v, err := range rows {
			if (err != nil || owned(v.token)) && !yield(v, err) {
				return
			}
		}
	}
}

func (t tables) hasKey(ctx context.Context, tokens []string, key []byte) (has bool, err error) {
	err = t.conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM graveler_staging_kv WHERE staging_token = ANY($1) AND key = $2)", tokens, key).Scan(&has)
	return has, wrapf(err, "look into %s", stagingTable)
}

// leftBehind counts what nothing refers to, and what the SQL store of this program keeps in tables of its own, which a migration
// does not carry over (a copy does).
func (t tables) leftBehind(ctx context.Context, _ func(string) bool) iter.Seq2[LeftBehind, error] {
	return func(yield func(LeftBehind, error) bool) {
		type counted struct{ table, what, sql string }
		counts := []counted{{stagingTable, "no branch has this staging token", `SELECT staging_token, count(*) FROM graveler_staging_kv s WHERE NOT EXISTS (SELECT 1 FROM graveler_branches b JOIN graveler_repositories r ON r.id = b.repository_id
			WHERE b.staging_token = s.staging_token) GROUP BY 1 ORDER BY 1`}}
		for _, table := range []string{branchesTable, commitsTable, tagsTable} {
			counts = append(counts, counted{table, "there is no such repository", `SELECT repository_id, count(*) FROM ` + table + ` t WHERE NOT EXISTS (SELECT 1 FROM graveler_repositories r WHERE r.id = t.repository_id) GROUP BY 1 ORDER BY 1`})
		}
		for _, c := range counts {
			scan := func(rows pgx.Rows) (v LeftBehind, err error) {
				v.Table, v.What = c.table, c.what
				return v, rows.Scan(&v.Owner, &v.Rows)
			}
			for l, err := range rowsOf(ctx, t.connection, c.table, scan, c.sql) {
				if !yield(l, err) {
					return
				}
			}
		}
		names, err := t.sideTables(ctx)
		for _, name := range names {
			l := LeftBehind{Table: name}
			if err = t.conn.QueryRow(ctx, "SELECT count(*) FROM "+pgx.Identifier{name}.Sanitize()).Scan(&l.Rows); err != nil {
				err = fmt.Errorf("count %s: %w", name, err)
				break
			}
			if l.Rows > 0 && !yield(l, nil) {
				return
			}
		}
		if err != nil {
			yield(LeftBehind{}, err)
		}
	}
}

// sideTables names the tables in which this program's own SQL store keeps what the old ones cannot hold.
func (t tables) sideTables(ctx context.Context) (names []string, err error) {
	const side = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'moraine\_%' AND tablename <> 'moraine_cutover' ORDER BY 1`
	scan := func(rows pgx.Rows) (text string, err error) { return text, rows.Scan(&text) }
	for name, err := range rowsOf(ctx, t.connection, "pg_tables", scan, side) {
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// sideBranches has beside each branch what its row cannot hold, as JSON.
const sideBranches = "moraine_branches"

// unreadable: what a branch shows must not depend on the tables beside.
func (t tables) unreadable(ctx context.Context) iter.Seq2[*RowError, error] {
	return func(yield func(*RowError, error) bool) {
		exists, err := t.hasTable(ctx, sideBranches)
		if err != nil {
			yield(nil, err)
		}
		if err != nil || !exists {
			return
		}
		const sealed = `SELECT b.repository_id, b.id FROM moraine_branches s JOIN graveler_branches b USING (repository_id, id)
			WHERE s.record::jsonb ?| ARRAY['items', 'base'] ORDER BY 1, 2`
		scan := func(rows pgx.Rows) (*RowError, error) {
			e := &RowError{Table: sideBranches, Reason: ErrSealed}
			return e, rows.Scan(&e.Repository, &e.Key)
		}
		for e, err := range rowsOf(ctx, t.connection, sideBranches, scan, sealed) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// shownTrees returns the metaranges that branches and tags of a repository show, but for the empty one, and anyTree some
// metarange of it, "" where it has none.
func (t tables) shownTrees(ctx context.Context, repo string) (trees []string, err error) {
	const shown = `SELECT DISTINCT c.meta_range_id FROM graveler_commits c WHERE c.repository_id = $1 AND c.meta_range_id <> '' AND c.id IN (
		SELECT commit_id FROM graveler_branches WHERE repository_id = $1 UNION SELECT commit_id FROM graveler_tags WHERE repository_id = $1) ORDER BY 1`
	scan := func(rows pgx.Rows) (text string, err error) { return text, rows.Scan(&text) }
	for tree, err := range rowsOf(ctx, t.connection, commitsTable, scan, shown, repo) {
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

func (t tables) anyTree(ctx context.Context, repo string) (tree string, err error) {
	const some = `SELECT coalesce((SELECT meta_range_id FROM graveler_commits WHERE repository_id = $1 AND meta_range_id <> '' LIMIT 1), '')`
	err = t.conn.QueryRow(ctx, some, repo).Scan(&tree)
	return tree, wrapf(err, "read %s", commitsTable)
}

func (t tables) bytes(ctx context.Context) (all int64, err error) {
	for _, table := range tableNames() {
		n, err := t.tableBytes(ctx, table)
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}
