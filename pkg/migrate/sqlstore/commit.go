// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

const (
	commitRecords = ` LEFT JOIN LATERAL (SELECT record FROM {commits} AS own WHERE own.repository_id = c.repository_id AND own.id = c.id OFFSET 0) AS m ON true`

	// inRange are the creation dates that can be the time of a move or a commit in a log: nanoseconds since the epoch.
	inRange = `c.creation_date BETWEEN '1970-01-01Z' AND '2262-04-11 23:47:16.854775Z'`

	commitRead = here + ` SELECT ` + CommitColumns + `, m.record FROM graveler_commits AS c` + commitRecords + `
WHERE c.repository_id = $1 AND (SELECT held FROM here)`

	getCommit   = commitRead + ` AND c.id = $4 AND c.id COLLATE "C" = $4`
	scanCommits = commitRead + ` AND c.id COLLATE "C" >= $4 AND c.id <> $5 ORDER BY c.id COLLATE "C" LIMIT $6`
)

// GetCommit implements [graveler.Commits]. The first of the old program costs a read of the graph of all commits of its
// repository, of which some 130 bytes for each are kept, and so does one that the old program has made since.
func (s *Store) GetCommit(ctx context.Context, repo *graveler.Repository, id graveler.CommitID) (*graveler.Commit, error) {
	c, err := row(ctx, s, query{getCommit, hereArguments(repo, string(id))}, graveler.ErrCommitNotFound, scanCommit)
	if err == nil {
		err = s.complete(ctx, repo, c)
	}
	if err != nil {
		return nil, wrap(err, "get commit %s of %s", id, repo.ID)
	}
	return c, nil
}

// ScanCommits implements [graveler.Commits].
func (s *Store) ScanCommits(ctx context.Context, repo *graveler.Repository, from graveler.CommitID) iter.Seq2[*graveler.Commit, error] {
	return pages("commits of "+string(repo.ID), func(last **graveler.Commit) ([]*graveler.Commit, error) {
		start, behind := string(from), ""
		if last != nil {
			start, behind = string((*last).ID), string((*last).ID)
		}
		q := query{scanCommits, hereArguments(repo, start, behind, pageRows)}
		page, err := rows(ctx, s, q, scanCommit)
		if err == nil {
			err = s.complete(ctx, repo, page...)
		}
		return page, err
	})
}

func scanCommit(row pgx.CollectableRow) (*graveler.Commit, error) {
	var old CommitRow
	var text *string
	if err := row.Scan(append(old.Targets(), &text)...); err != nil {
		return nil, err
	}
	if text == nil {
		c, err := old.Commit()
		if err != nil {
			return nil, err
		}
		if c.Tree == "" {
			c.Tree = graveler.MetaRangeID(rangefile.EmptyID().String())
		}
		return c, nil
	}
	var record commitRecord
	if err := decode("moraine_commits", old.ID, *text, &record); err != nil {
		return nil, err
	}
	c, err := old.commit()
	if err != nil {
		return nil, err
	}
	c.CreatedAt, c.Generation, c.LogTime, c.Nonce = instant(record.Created), record.Generation, record.LogTime, record.Nonce
	return c, nil
}

const putCommit = here + `, old AS (
    INSERT INTO graveler_commits (repository_id, id, committer, message, creation_date, meta_range_id, metadata, parents, version, generation)
    SELECT $1, $4, $5, $6, $7::timestamptz, $8, $9::text::jsonb, $10::text[], $11::integer, $12::integer WHERE (SELECT held FROM here)
    ON CONFLICT (repository_id, id) DO UPDATE SET committer = excluded.committer, message = excluded.message, creation_date = excluded.creation_date, meta_range_id = excluded.meta_range_id,
        metadata = excluded.metadata, parents = excluded.parents, version = excluded.version, generation = excluded.generation
    RETURNING 1
), written AS (
    INSERT INTO moraine_commits (repository_id, id, record) SELECT $1, $4, $13 FROM old
    ON CONFLICT (repository_id, id) DO UPDATE SET record = excluded.record
)
SELECT held FROM here`

// PutCommit implements [graveler.Commits]. It returns graveler.ErrRepositoryNotFound where the repository is gone.
func (s *Store) PutCommit(ctx context.Context, repo *graveler.Repository, c *graveler.Commit) error {
	return wrap(s.putCommit(ctx, repo, c), "put commit %s of %s", c.ID, repo.ID)
}

func (s *Store) putCommit(ctx context.Context, repo *graveler.Repository, c *graveler.Commit) error {
	write, err := writeCommit(repo, c)
	if err != nil {
		return err
	}
	var held bool
	err = s.transact(ctx, []query{holdRepository(repo), write}, &held)
	if err == nil && !held {
		err = graveler.ErrRepositoryNotFound
	}
	return err
}

// writeCommit writes a commit while the repository is held, and says whether it is there.
func writeCommit(repo *graveler.Repository, c *graveler.Commit) (query, error) {
	old, err := commitRow(c)
	if err != nil {
		return query{}, err
	}
	created, err := nanoseconds(c.CreatedAt)
	if err != nil {
		return query{}, err
	}
	record, err := encode(commitRecord{created, c.Generation, c.LogTime, c.Nonce})
	return query{putCommit, hereArguments(repo, old.ID, old.Committer, old.Message, old.CreatedAt, old.MetaRange, old.Metadata, old.Parents, old.Version, old.Generation, record)}, err
}

// commitRow is what the old table can hold of a commit.
func commitRow(c *graveler.Commit) (CommitRow, error) {
	texts := []string{string(c.ID), c.Committer, c.Message, string(c.Tree), c.Nonce}
	row := CommitRow{ID: string(c.ID), Committer: c.Committer, Message: c.Message, MetaRange: string(c.Tree), CreatedAt: c.CreatedAt, Version: c.Version}
	for _, p := range c.Parents {
		row.Parents = append(row.Parents, string(p))
	}
	texts = append(texts, row.Parents...)
	for k, v := range c.Metadata {
		texts = append(texts, k, v)
	}
	if err := checkText(texts...); err != nil {
		return CommitRow{}, err
	}
	generation := int32(c.Generation)
	switch {
	case c.ID == "":
		return CommitRow{}, invalid("commit without ID")
	case int64(generation) != c.Generation, int(int32(c.Version)) != c.Version:
		return CommitRow{}, invalid("generation %d, version %d", c.Generation, c.Version)
	}
	row.Generation = &generation
	if c.Version == 0 { // the main parent stands last in such a row
		slices.Reverse(row.Parents)
	}
	if c.Metadata != nil {
		text, err := json.Marshal(c.Metadata)
		if err != nil {
			return CommitRow{}, fmt.Errorf("%w: metadata: %w", graveler.ErrInvalidValue, err)
		}
		metadata := string(text)
		row.Metadata = &metadata
	}
	return row, nil
}
