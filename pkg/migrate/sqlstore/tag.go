// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// A tag is all in the old table. Its stamp is its commit.
const (
	tagRead  = here + ` SELECT ` + TagColumns + ` FROM graveler_tags AS t WHERE t.repository_id = $1 AND (SELECT held FROM here)`
	getTag   = tagRead + ` AND t.id = $4 AND t.id COLLATE "C" = $4`
	scanTags = tagRead + ` AND t.id COLLATE "C" >= $4 AND t.id <> $5 ORDER BY t.id COLLATE "C" LIMIT $6`

	createTag = here + `, written AS (
    INSERT INTO graveler_tags (repository_id, id, commit_id) SELECT $1, $4, $5 WHERE (SELECT held FROM here) ON CONFLICT DO NOTHING RETURNING 1
)
SELECT held, EXISTS (SELECT FROM written) FROM here`
	removeTag = here + ` DELETE FROM graveler_tags WHERE repository_id = $1 AND ` + isNamed + ` AND commit_id = $5 AND (SELECT held FROM here)`
)

// GetTag implements [graveler.Tags].
func (s *Store) GetTag(ctx context.Context, repo *graveler.Repository, id graveler.TagID) (*graveler.Tag, error) {
	t, err := row(ctx, s, query{getTag, hereArguments(repo, string(id))}, graveler.ErrTagNotFound, scanTag)
	return t, wrap(err, "get tag %s/%s", repo.ID, id)
}

// ScanTags implements [graveler.Tags].
func (s *Store) ScanTags(ctx context.Context, repo *graveler.Repository, from graveler.TagID) iter.Seq2[*graveler.Tag, error] {
	return pages("tags of "+string(repo.ID), func(last **graveler.Tag) ([]*graveler.Tag, error) {
		start, behind := string(from), ""
		if last != nil {
			start, behind = string((*last).ID), string((*last).ID)
		}
		return rows(ctx, s, query{scanTags, hereArguments(repo, start, behind, pageRows)}, scanTag)
	})
}

func scanTag(row pgx.CollectableRow) (*graveler.Tag, error) {
	var old TagRow
	if err := row.Scan(old.Targets()...); err != nil {
		return nil, err
	}
	return &graveler.Tag{ID: graveler.TagID(old.ID), Commit: graveler.CommitID(old.Commit), Stamp: graveler.Stamp(old.Commit)}, nil
}

// CreateTag implements [graveler.Tags]. The stamp of t is not looked at. It returns graveler.ErrRepositoryNotFound where the repository is gone.
func (s *Store) CreateTag(ctx context.Context, repo *graveler.Repository, t *graveler.Tag) error {
	return wrap(s.createTag(ctx, repo, t), "create tag %s/%s", repo.ID, t.ID)
}

func (s *Store) createTag(ctx context.Context, repo *graveler.Repository, t *graveler.Tag) error {
	if t.ID == "" || t.Commit == "" {
		return invalid("tag %q names commit %q", t.ID, t.Commit)
	}
	if err := checkText(string(t.ID), string(t.Commit)); err != nil {
		return err
	}
	var held, written bool
	err := s.transact(ctx, []query{holdRepository(repo), {createTag, hereArguments(repo, string(t.ID), string(t.Commit))}}, &held, &written)
	switch {
	case err != nil:
		return err
	case !held:
		return graveler.ErrRepositoryNotFound
	case !written:
		return graveler.ErrExists
	default:
		return nil
	}
}

// RemoveTag implements [graveler.Tags].
func (s *Store) RemoveTag(ctx context.Context, repo *graveler.Repository, t *graveler.Tag) error {
	var err error
	if t.Stamp == nil {
		err = s.requireNone(func() error { _, err := s.GetTag(ctx, repo, t.ID); return err })
	} else {
		err = s.conditionally(ctx, removeTag, hereArguments(repo, string(t.ID), stampText(t.Stamp))...)
	}
	return wrap(err, "remove tag %s/%s", repo.ID, t.ID)
}
