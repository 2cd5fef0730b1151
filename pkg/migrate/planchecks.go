// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
)

func (p *planning) repository(ctx context.Context, row repositoryRow) error {
	bad := func(e *RowError) error {
		p.note(e)
		return nil
	}
	for _, err := range []error{graveler.ValidateRepositoryID(graveler.RepositoryID(row.id)), graveler.ValidateBranchID(graveler.BranchID(row.defaultBranch)), p.nameIsFree(ctx, row.id)} {
		if err != nil {
			p.note(&RowError{Table: repositoriesTable, Key: row.id, Reason: err})
		}
	}
	o, err := openOrigin(ctx, p.r, row, p.commits(ctx, row.id), p.began, p.emptyTree(), bad)
	if err != nil {
		return err
	}
	planned := PlannedRepository{Repository: row.id, Branches: int64(len(o.branches)), Commits: int64(len(o.history.commits))}
	if o.root != nil {
		p.Bare = append(p.Bare, row.id)
	}
	if planned.Tags, err = p.tags(ctx, o); err != nil {
		return err
	}
	if err := p.trees(ctx, o); err != nil {
		return err
	}
	const staged = `SELECT count(*) FROM graveler_staging_kv s JOIN graveler_branches b USING (staging_token) WHERE b.repository_id = $1`
	if err := p.r.conn.QueryRow(ctx, staged, row.id).Scan(&planned.Staged); err != nil {
		return fmt.Errorf("count %s: %w", stagingTable, err)
	}
	if len(o.history.commits) <= p.keep {
		p.keep -= len(o.history.commits)
		p.origins[row.id] = o
	}
	p.Repositories = append(p.Repositories, planned)
	p.Rows += planned.rows()
	return nil
}

// nameIsFree returns ErrTargetTaken where the target has a repository of that name which this migration did not bring there.
func (p *planning) nameIsFree(ctx context.Context, id string) error {
	stored, err := p.refs().GetRepository(ctx, graveler.RepositoryID(id))
	if errors.Is(err, graveler.ErrRepositoryNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	note, err := p.records().repository(ctx, id)
	if err == nil && (note == nil || note.Uid != stored.UID) {
		err = fmt.Errorf("%w: a repository of this name", ErrTargetTaken)
	}
	return err
}

func (p *planning) tags(ctx context.Context, o *origin) (n int64, err error) {
	for row, err := range o.tags(ctx, o.id) {
		if err != nil {
			return 0, err
		}
		n++
		if err := o.checkTag(row); err != nil {
			p.note(&RowError{Table: tagsTable, Repository: o.id, Key: row.id, Reason: err})
		}
	}
	return n, nil
}

// commits yields the commits of a repository, and looks at each on the way.
func (p *planning) commits(ctx context.Context, repo string) iter.Seq2[commitRow, error] {
	return func(yield func(commitRow, error) bool) {
		for row, err := range p.r.unsortedCommits(ctx, repo) {
			if err == nil {
				if _, err := row.checked(); err != nil {
					p.note(&RowError{Table: commitsTable, Repository: repo, Key: row.id, Reason: err})
				}
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// trees looks at the roots of the trees that branches and tags show, and at the namespace that they are in.
func (p *planning) trees(ctx context.Context, o *origin) error {
	const shown = `SELECT DISTINCT c.meta_range_id FROM graveler_commits c WHERE c.repository_id = $1 AND c.meta_range_id <> '' AND c.id IN (
		SELECT commit_id FROM graveler_branches WHERE repository_id = $1 UNION SELECT commit_id FROM graveler_tags WHERE repository_id = $1) ORDER BY 1`
	inPlace := false
	for tree, err := range rowsOf(ctx, p.r, commitsTable, scanText, shown, o.id) {
		if err != nil {
			return err
		}
		format, err := p.formatOf(ctx, o.namespace, tree)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			p.note(&RowError{Table: commitsTable, Repository: o.id, Reason: err})
			return nil // the others are hardly different
		}
		inPlace = inPlace || format == nil && p.InPlace
	}
	if !inPlace {
		return nil
	}
	place, _, _ := strings.Cut(o.namespace, "?")
	folder := path.Base(place)
	if other, taken := p.folders[folder]; taken {
		p.note(&RowError{Table: repositoriesTable, Key: o.id, Reason: fmt.Errorf("%w: repository %s has a folder %s, too (with copies of the files it is possible)", graveler.ErrNamespaceTaken, other, quoted(folder))})
	}
	p.folders[folder] = o.id
	return nil
}

func scanText(rows pgx.Rows) (text string, err error) { return text, rows.Scan(&text) }

// tokens looks for staging tokens of two branches.
func (p *planning) tokens(ctx context.Context) error {
	type shared struct{ token, first, last string }
	scan := func(rows pgx.Rows) (v shared, err error) { return v, rows.Scan(&v.token, &v.first, &v.last) }
	const twice = `SELECT staging_token, min(repository_id || '/' || id), max(repository_id || '/' || id) FROM graveler_branches
		WHERE staging_token <> '' GROUP BY 1 HAVING count(*) > 1 ORDER BY 1`
	for v, err := range rowsOf(ctx, p.r, branchesTable, scan, twice) {
		if err != nil {
			return err
		}
		p.note(&RowError{Table: branchesTable, Key: v.first, Reason: fmt.Errorf("it has the staging token %s, as %s has", quoted(v.token), quoted(v.last))})
	}
	return nil
}

// leftBehind counts what nothing refers to.
func (p *planning) leftBehind(ctx context.Context) error {
	count := func(table, sql string) error {
		scan := func(rows pgx.Rows) (v LeftBehind, err error) { return v, rows.Scan(&v.Owner, &v.Rows) }
		for v, err := range rowsOf(ctx, p.r, table, scan, sql) {
			if err != nil {
				return err
			}
			v.Table = table
			p.leave(v)
		}
		return nil
	}
	err := count(stagingTable, `SELECT staging_token, count(*) FROM graveler_staging_kv s WHERE NOT EXISTS (SELECT 1 FROM graveler_branches b JOIN graveler_repositories r ON r.id = b.repository_id
		WHERE b.staging_token = s.staging_token) GROUP BY 1 ORDER BY 1`)
	for _, table := range []string{branchesTable, commitsTable, tagsTable} {
		if err == nil {
			err = count(table, `SELECT repository_id, count(*) FROM `+table+` t WHERE NOT EXISTS (SELECT 1 FROM graveler_repositories r WHERE r.id = t.repository_id) GROUP BY 1 ORDER BY 1`)
		}
	}
	return err
}

// stagedRows has the database look for staged rows that cannot be carried over. It need not unpack large ones for that.
func (p *planning) stagedRows(ctx context.Context) error {
	type suspect struct {
		repository, branch string
		stagedRow
	}
	scan := func(rows pgx.Rows) (v suspect, err error) {
		return v, rows.Scan(&v.repository, &v.branch, &v.key, &v.identity, &v.data)
	}
	sql := fmt.Sprintf(`SELECT b.repository_id, b.id, s.key, s.identity, s.data FROM graveler_staging_kv s JOIN graveler_branches b USING (staging_token)
		JOIN graveler_repositories r ON r.id = b.repository_id WHERE octet_length(s.key) = 0 OR octet_length(s.key) > %d OR octet_length(s.identity) = 0
		OR coalesce(octet_length(s.identity), 0) + coalesce(octet_length(s.data), 0) > %d OR s.identity IS NULL AND octet_length(s.data) > 0`, graveler.MaxKeyBytes, graveler.MaxValueBytes)
	for v, err := range rowsOf(ctx, p.r, stagingTable, scan, sql) {
		if err != nil {
			return err
		}
		if _, err := v.entry(); err != nil { // a long key may be a reserved one
			p.note(&RowError{Table: stagingTable, Repository: v.repository, Key: "branch " + v.branch + ", key " + string(v.key), Reason: err})
		}
	}
	return nil
}

// size asks how much the tables take.
func (p *planning) size(ctx context.Context) error {
	for _, table := range tables() {
		bytes, err := p.r.tableBytes(ctx, table)
		if err != nil {
			return err
		}
		p.Bytes += bytes
	}
	return nil
}

// tableBytes is what a table takes, with its indexes and partitions.
func (r *reader) tableBytes(ctx context.Context, table string) (bytes int64, err error) {
	const sql = `SELECT greatest(pg_total_relation_size($1::regclass), (SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint FROM pg_partition_tree($1::regclass)))`
	err = r.conn.QueryRow(ctx, sql, table).Scan(&bytes)
	return bytes, wrapf(err, "size of %s", table)
}
