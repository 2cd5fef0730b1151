// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Rows as the tables have them. Names compare as byte strings here, whatever the database's collation is.

type repositoryRow struct {
	id, namespace, defaultBranch string
	created                      pgtype.Timestamptz
}

type branchRow struct {
	id            string
	token, commit *string
}

type tagRow struct{ id, commit string }

type commitRow struct {
	id, committer, message, tree string
	created                      pgtype.Timestamptz
	metadata                     []byte // JSON; nil: SQL NULL
	parents                      pgtype.FlatArray[pgtype.Text]
	version                      int
}

type stagedRow struct{ key, identity, data []byte }

func (r *reader) repositories(ctx context.Context) iter.Seq2[repositoryRow, error] {
	return rowsOf(ctx, r, repositoriesTable, func(rows pgx.Rows) (v repositoryRow, err error) {
		return v, rows.Scan(&v.id, &v.namespace, &v.defaultBranch, &v.created)
	}, `SELECT id, storage_namespace, default_branch, creation_date FROM graveler_repositories ORDER BY id COLLATE "C"`)
}

func (r *reader) branches(ctx context.Context, repo string) iter.Seq2[branchRow, error] {
	return rowsOf(ctx, r, branchesTable, func(rows pgx.Rows) (v branchRow, err error) {
		return v, rows.Scan(&v.id, &v.token, &v.commit)
	}, `SELECT id, staging_token, commit_id FROM graveler_branches WHERE repository_id = $1 ORDER BY id COLLATE "C"`, repo)
}

func (r *reader) tags(ctx context.Context, repo string) iter.Seq2[tagRow, error] {
	return rowsOf(ctx, r, tagsTable, func(rows pgx.Rows) (v tagRow, err error) {
		return v, rows.Scan(&v.id, &v.commit)
	}, `SELECT id, coalesce(commit_id, '') FROM graveler_tags WHERE repository_id = $1 ORDER BY id COLLATE "C"`, repo)
}

// commitLinks yields the commits with what the graph of them needs, in any order: sorting them takes the database longer than the rest.
func (r *reader) commitLinks(ctx context.Context, repo string) iter.Seq2[commitRow, error] {
	return rowsOf(ctx, r, commitsTable, func(rows pgx.Rows) (v commitRow, err error) {
		return v, rows.Scan(&v.id, &v.created, &v.parents, &v.version)
	}, `SELECT id, creation_date, parents, version FROM graveler_commits WHERE repository_id = $1`, repo)
}

const selectCommits = `SELECT id, committer, message, meta_range_id, creation_date, metadata, parents, version FROM graveler_commits WHERE repository_id = $1`

func scanCommit(rows pgx.Rows) (v commitRow, err error) {
	return v, rows.Scan(&v.id, &v.committer, &v.message, &v.tree, &v.created, &v.metadata, &v.parents, &v.version)
}

func (r *reader) commits(ctx context.Context, repo string) iter.Seq2[commitRow, error] {
	return rowsOf(ctx, r, commitsTable, scanCommit, selectCommits+` ORDER BY id COLLATE "C"`, repo)
}

// unsortedCommits yields the commits in any order.
func (r *reader) unsortedCommits(ctx context.Context, repo string) iter.Seq2[commitRow, error] {
	return rowsOf(ctx, r, commitsTable, scanCommit, selectCommits, repo)
}

func (r *reader) staged(ctx context.Context, token string) iter.Seq2[stagedRow, error] {
	return rowsOf(ctx, r, stagingTable, func(rows pgx.Rows) (v stagedRow, err error) {
		return v, rows.Scan(&v.key, &v.identity, &v.data)
	}, `SELECT key, identity, data FROM graveler_staging_kv WHERE staging_token = $1 ORDER BY key`, token)
}

// commitHash is a commit ID in the memory that it needs.
type commitHash [32]byte

func parseCommitID(id string) (h commitHash, err error) {
	if len(id) != hex.EncodedLen(len(h)) || strings.Trim(id, "0123456789abcdef") != "" {
		return h, fmt.Errorf("commit ID %s: 64 hexadecimal digits are expected", quoted(id))
	}
	_, err = hex.Decode(h[:], []byte(id))
	return h, err
}

func (h commitHash) id() graveler.CommitID { return graveler.CommitID(hex.EncodeToString(h[:])) }

// appendParents adds the parents of a row in order, the main parent first: rows of version 0 have it last.
func (row commitRow) appendParents(to []commitHash) ([]commitHash, error) {
	first := len(to)
	for _, p := range row.parents {
		if !p.Valid {
			return to, errors.New("a parent is NULL")
		}
		h, err := parseCommitID(p.String)
		if err != nil {
			return to, fmt.Errorf("parent: %w", err)
		}
		to = append(to, h)
	}
	switch row.version {
	case 0:
		if parents := to[first:]; len(parents) > 1 {
			last := len(parents) - 1
			main := parents[last]
			copy(parents[1:], parents[:last])
			parents[0] = main
		}
	case 1:
	default:
		return to, fmt.Errorf("version %d: 0 or 1 is expected", row.version)
	}
	return to, nil
}

// timeOf returns an instant that nanoseconds since the epoch can say.
func timeOf(t pgtype.Timestamptz) (time.Time, error) {
	first, last := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
	if !t.Valid || t.InfinityModifier != pgtype.Finite || t.Time.Before(first) || t.Time.After(last) {
		return time.Time{}, errors.New("its creation date is none between the years 1678 and 2262")
	}
	return t.Time.UTC(), nil
}

// maxCommitBytes is how much text a commit may have, so that its record fits every engine.
const maxCommitBytes = 240 << 10

// checked returns the metadata of a row, or why it cannot become a commit, apart from its place in the history.
func (row commitRow) checked() (map[string]string, error) {
	size := len(row.committer) + len(row.message) + len(row.metadata) + 70*len(row.parents)
	switch {
	case size > maxCommitBytes:
		return nil, fmt.Errorf("%w: committer, message and metadata of %d bytes, at most %d are allowed", graveler.ErrTooLarge, size, maxCommitBytes)
	case !utf8.ValidString(row.committer) || !utf8.ValidString(row.message) || !utf8.Valid(row.metadata):
		return nil, errors.New("committer, message or metadata is not UTF-8")
	case row.tree != "" && (!utf8.ValidString(row.tree) || len(row.tree) > graveler.MaxKeyBytes):
		return nil, fmt.Errorf("%w: metarange ID", graveler.ErrInvalidValue)
	}
	return row.pairs()
}

// pairs decodes the metadata: SQL NULL and JSON null are none.
func (row commitRow) pairs() (map[string]string, error) {
	var pairs map[string]*string
	if row.metadata == nil {
		return nil, nil
	}
	if err := json.Unmarshal(row.metadata, &pairs); err != nil {
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

// entry returns the entry that a row stages. A tombstone has no identity, which is NULL, and no data, whether that is NULL or empty.
func (row stagedRow) entry() (graveler.Entry, error) {
	e := graveler.Entry{Key: row.key}
	if row.identity == nil {
		if len(row.data) > 0 {
			return e, fmt.Errorf("%w: a tombstone with data", graveler.ErrInvalidValue)
		}
		return e, graveler.ValidateEntry(e)
	}
	e.Value = &graveler.Value{Identity: row.identity, Data: row.data}
	return e, graveler.ValidateEntry(e)
}
