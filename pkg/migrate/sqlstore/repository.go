// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// What is named by a parameter can be found by two indexes: that of the old tables, and that of ours by bytes. Which one a plan
// takes is chance while tables are small; each needs its own condition to be asked for the whole name.
const (
	repositoryIs = `r.id = $1 AND r.id COLLATE "C" = $1`
	isRepository = `id = $1 AND id COLLATE "C" = $1`
	isNamed      = `id = $4 AND id COLLATE "C" = $4`
)

// Stamps are what the row of the old table and its record hold, so that a change by whatever program is noticed.
const (
	repositoryStamp = `r.storage_namespace || ' ' || r.default_branch || ' ' || coalesce(m.record, '')`

	// OFFSET 0 has the row beside each row looked up by its whole key, whatever the planner thinks of the sizes of tables.
	repositoryFrom = ` FROM graveler_repositories AS r LEFT JOIN LATERAL (SELECT uid, record FROM {repositories} AS own WHERE own.id = r.id OFFSET 0) AS m ON true`
	repositoryNow  = `(SELECT ` + repositoryStamp + repositoryFrom + ` WHERE ` + repositoryIs + `)`
	repositoryRead = `SELECT ` + RepositoryColumns + `, m.record, ` + repositoryStamp + repositoryFrom

	getRepository    = repositoryRead + ` WHERE ` + repositoryIs
	scanRepositories = repositoryRead + ` WHERE r.id COLLATE "C" >= $1 AND r.id <> $2 ORDER BY r.id COLLATE "C" LIMIT $3`
)

// here is the beginning of a statement that works within a repository: whether the repository is the one that is meant. $1 is its
// name, $2 its UID, and $3 when it was created if the UID is derived from that.
const here = `WITH here AS (SELECT EXISTS (SELECT` + repositoryFrom + ` WHERE ` + repositoryIs + ` AND coalesce(m.uid = $2::text, r.creation_date = $3::timestamptz)) AS held)`

// hereArguments are the first arguments of a statement that begins with here, and more that follow.
func hereArguments(repo *graveler.Repository, more ...any) []any {
	arguments := []any{string(repo.ID), repo.UID, nil}
	if repo.UID == repositoryUID(string(repo.ID), repo.CreatedAt) {
		arguments[2] = repo.CreatedAt
	}
	return append(arguments, more...)
}

// holdRepository keeps a repository from being removed while something in it is written.
func holdRepository(repo *graveler.Repository) query {
	return query{"SELECT FROM graveler_repositories WHERE " + isRepository + " FOR KEY SHARE", []any{string(repo.ID)}}
}

// GetRepository implements [graveler.Repositories].
func (s *Store) GetRepository(ctx context.Context, id graveler.RepositoryID) (*graveler.Repository, error) {
	r, err := row(ctx, s, query{getRepository, []any{string(id)}}, graveler.ErrRepositoryNotFound, scanRepository)
	return r, wrap(err, "get repository %s", id)
}

// ScanRepositories implements [graveler.Repositories].
func (s *Store) ScanRepositories(ctx context.Context, from graveler.RepositoryID) iter.Seq2[*graveler.Repository, error] {
	return pages("repositories", func(last **graveler.Repository) ([]*graveler.Repository, error) {
		start, behind := string(from), ""
		if last != nil {
			start, behind = string((*last).ID), string((*last).ID)
		}
		return rows(ctx, s, query{scanRepositories, []any{start, behind, pageRows}}, scanRepository)
	})
}

func scanRepository(row pgx.CollectableRow) (*graveler.Repository, error) {
	var old RepositoryRow
	var text *string
	var stamp string
	if err := row.Scan(append(old.Targets(), &text, &stamp)...); err != nil {
		return nil, err
	}
	r := old.Repository()
	r.Stamp = graveler.Stamp(stamp)
	if text == nil {
		return r, nil
	}
	var record repositoryRecord
	if err := decode("moraine_repositories", old.ID, *text, &record); err != nil {
		return nil, err
	}
	r.UID, r.State, r.CreatedAt = record.UID, record.State, instant(record.Created)
	r.ReadOnly, r.Adopting, r.Nonce = record.ReadOnly, record.Adopting, record.Nonce
	if err := checkRepository(r); err != nil {
		return nil, corrupt("moraine_repositories", old.ID, err)
	}
	return r, nil
}

// checkRepository says why a record cannot be one, whether it was read or is to be written.
func checkRepository(r *graveler.Repository) error {
	if r.ID == "" || r.UID == "" {
		return fmt.Errorf("repository %q has UID %q", r.ID, r.UID)
	}
	switch r.State {
	case graveler.RepositoryCreating, graveler.RepositoryActive, graveler.RepositoryInDeletion:
		return nil
	default:
		return fmt.Errorf("unknown state %d", r.State)
	}
}

// PutRepository implements [graveler.Repositories].
func (s *Store) PutRepository(ctx context.Context, r *graveler.Repository) (graveler.Stamp, error) {
	stamp, err := s.putRepository(ctx, r)
	return stamp, wrap(err, "put repository %s", r.ID)
}

const (
	createRepository = `
WITH old AS (
    INSERT INTO graveler_repositories (id, storage_namespace, creation_date, default_branch) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING id
)
INSERT INTO moraine_repositories (id, uid, record) SELECT id, $5, $6 FROM old
ON CONFLICT (id) DO UPDATE SET uid = excluded.uid, record = excluded.record`

	replaceRepository = `
WITH old AS (
    UPDATE graveler_repositories AS r SET storage_namespace = $2, creation_date = $3, default_branch = $4
    WHERE ` + repositoryIs + ` AND ` + repositoryNow + ` = $7
    RETURNING id
), written AS (
    INSERT INTO moraine_repositories (id, uid, record) SELECT id, $5, $6 FROM old
    ON CONFLICT (id) DO UPDATE SET uid = excluded.uid, record = excluded.record
)
SELECT EXISTS (SELECT FROM old)`
)

func (s *Store) putRepository(ctx context.Context, r *graveler.Repository) (graveler.Stamp, error) {
	created, err := nanoseconds(r.CreatedAt)
	if err == nil {
		err = checkText(string(r.ID), r.UID, r.Namespace, string(r.DefaultBranch), r.Nonce)
	}
	if err != nil {
		return nil, err
	}
	if err := checkRepository(r); err != nil {
		return nil, invalid("%v", err)
	}
	record, err := encode(repositoryRecord{r.UID, created, r.State, r.ReadOnly, r.Adopting, r.Nonce})
	if err != nil {
		return nil, err
	}
	arguments := []any{string(r.ID), r.Namespace, r.CreatedAt, string(r.DefaultBranch), r.UID, record}
	if r.Stamp == nil {
		err = s.conditionally(ctx, createRepository, arguments...)
	} else {
		var written bool
		lock := query{"SELECT FROM graveler_repositories WHERE " + isRepository + " FOR NO KEY UPDATE", []any{string(r.ID)}}
		err = s.transact(ctx, []query{lock, {replaceRepository, append(arguments, stampText(r.Stamp))}}, &written)
		if err == nil && !written {
			err = graveler.ErrChanged
		}
	}
	if err != nil {
		return nil, err
	}
	return graveler.Stamp(r.Namespace + " " + string(r.DefaultBranch) + " " + record), nil
}

// stampText is a stamp as a statement compares it. What no text of the database can be is no stamp that we gave.
func stampText(s graveler.Stamp) *string {
	text := string(s)
	if checkText(text) != nil {
		return nil
	}
	return &text
}

// removeRepository takes along what late writers have left in the old tables, which a new repository of the name would find there.
const removeRepository = `
WITH old AS (
    DELETE FROM graveler_repositories
    WHERE ` + isRepository + ` AND ` + repositoryNow + ` = $2
    RETURNING id
), a AS (DELETE FROM moraine_repositories WHERE id = (SELECT id FROM old)),
b AS (DELETE FROM graveler_branches WHERE repository_id = (SELECT id FROM old)),
c AS (DELETE FROM moraine_branches WHERE repository_id = (SELECT id FROM old)),
d AS (DELETE FROM graveler_commits WHERE repository_id = (SELECT id FROM old)),
e AS (DELETE FROM moraine_commits WHERE repository_id = (SELECT id FROM old)),
f AS (DELETE FROM graveler_tags WHERE repository_id = (SELECT id FROM old))
SELECT EXISTS (SELECT FROM old)`

// RemoveRepository implements [graveler.Repositories]. Branches, commits and tags that DropPartition has not removed go with the record.
func (s *Store) RemoveRepository(ctx context.Context, r *graveler.Repository) error {
	if r.Stamp == nil {
		return s.requireNone(func() error { _, err := s.GetRepository(ctx, r.ID); return err })
	}
	var removed bool
	lock := query{"SELECT FROM graveler_repositories WHERE " + isRepository + " FOR UPDATE", []any{string(r.ID)}}
	err := s.transact(ctx, []query{lock, {removeRepository, []any{string(r.ID), stampText(r.Stamp)}}}, &removed)
	if err == nil && !removed {
		err = graveler.ErrChanged
	}
	return wrap(err, "remove repository %s", r.ID)
}

// requireNone is the removal of a record on condition that there is none.
func (s *Store) requireNone(get func() error) error {
	err := get()
	switch {
	case s.readOnly:
		return graveler.ErrReadOnly
	case err == nil:
		return graveler.ErrChanged
	case errors.Is(err, graveler.ErrNotFound):
		return nil
	default:
		return err
	}
}
