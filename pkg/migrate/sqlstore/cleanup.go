// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// PutCleanup implements [graveler.Cleanups].
func (s *Store) PutCleanup(ctx context.Context, c graveler.Cleanup) error {
	return wrap(s.putCleanup(ctx, c), "put cleanup of %s", c.Partition)
}

func (s *Store) putCleanup(ctx context.Context, c graveler.Cleanup) error {
	write, err := writeCleanup(c)
	if err == nil {
		_, err = s.exec(ctx, write.sql, write.arguments...)
	}
	return err
}

func writeCleanup(c graveler.Cleanup) (query, error) {
	if c.Partition == "" {
		return query{}, invalid("no partition")
	}
	if err := checkText(c.Partition, string(c.RepositoryID), c.RepositoryUID, string(c.Branch), c.Namespace); err != nil {
		return query{}, err
	}
	record, err := encode(cleanupRecord(c))
	return query{"INSERT INTO moraine_cleanups (partition, record) VALUES ($1, $2) ON CONFLICT (partition) DO UPDATE SET record = excluded.record", []any{c.Partition, record}}, err
}

// RemoveCleanup implements [graveler.Cleanups]. Where there is none it does nothing.
func (s *Store) RemoveCleanup(ctx context.Context, partition string) error {
	_, err := s.exec(ctx, "DELETE FROM moraine_cleanups WHERE partition = $1", partition)
	return wrap(err, "remove cleanup of %s", partition)
}

// ScanCleanups implements [graveler.Cleanups].
func (s *Store) ScanCleanups(ctx context.Context) iter.Seq2[graveler.Cleanup, error] {
	return pages("cleanups", func(last *graveler.Cleanup) ([]graveler.Cleanup, error) {
		if last == nil {
			last = &graveler.Cleanup{}
		}
		return rows(ctx, s, query{"SELECT partition, record FROM {cleanups} AS m WHERE partition > $1 ORDER BY partition LIMIT $2", []any{last.Partition, pageRows}}, scanCleanup)
	})
}

func scanCleanup(row pgx.CollectableRow) (graveler.Cleanup, error) {
	var partition, text string
	if err := row.Scan(&partition, &text); err != nil {
		return graveler.Cleanup{}, err
	}
	var record cleanupRecord
	if err := decode("moraine_cleanups", partition, text, &record); err != nil {
		return graveler.Cleanup{}, err
	}
	if record.Partition != partition {
		return graveler.Cleanup{}, corrupt("moraine_cleanups", partition, fmt.Errorf("holds the record of %q", record.Partition))
	}
	return graveler.Cleanup(record), nil
}

// DropPartition implements [graveler.Cleanups]. A staging token is one transaction, and a repository is one, whatever their sizes.
func (s *Store) DropPartition(ctx context.Context, partition string) error {
	var err error
	if strings.Contains(partition, ":") { // a staging token; no name of a repository has a colon
		_, err = s.exec(ctx, "DELETE FROM graveler_staging_kv WHERE staging_token = $1", partition)
	} else {
		err = s.dropRepository(ctx, partition)
	}
	return wrap(err, "drop partition %s", partition)
}

// dropRows removes what a repository has in the old tables, while it has a record itself; afterwards there is nothing, and all of
// it might be a later repository's.
const dropRows = here + `,
a AS (DELETE FROM graveler_branches WHERE repository_id = $1 AND (SELECT held FROM here)),
b AS (DELETE FROM moraine_branches WHERE repository_id = $1 AND (SELECT held FROM here)),
c AS (DELETE FROM graveler_commits WHERE repository_id = $1 AND (SELECT held FROM here)),
d AS (DELETE FROM moraine_commits WHERE repository_id = $1 AND (SELECT held FROM here)),
e AS (DELETE FROM graveler_tags WHERE repository_id = $1 AND (SELECT held FROM here))
SELECT held FROM here`

const dropOwn = `
WITH a AS (DELETE FROM moraine_moves WHERE partition = $1),
b AS (DELETE FROM moraine_log_names WHERE partition = $1),
c AS (DELETE FROM moraine_log_bounds WHERE partition = $1),
d AS (DELETE FROM moraine_pins WHERE partition = $1),
e AS (DELETE FROM moraine_expirations WHERE partition = $1)
DELETE FROM moraine_settings WHERE partition = $1`

func (s *Store) dropRepository(ctx context.Context, partition string) error {
	candidates, err := rows(ctx, s, query{repositoryRead + ` WHERE starts_with($1, r.id || '-')`, []any{partition}}, scanRepository)
	if err != nil {
		return err
	}
	for _, repo := range candidates {
		if repo.Partition() != partition {
			continue
		}
		var held bool
		if err := s.transact(ctx, []query{holdRepository(repo), {dropRows, hereArguments(repo)}}, &held); err != nil {
			return err
		}
	}
	s.histories.Delete(partition)
	_, err = s.exec(ctx, dropOwn, partition)
	return err
}
