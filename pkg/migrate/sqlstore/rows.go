// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rs/xid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// What the rows of the old tables are to this program. Everything that they do not say is derived from what they say, so that it
// is the same whenever and by whomever it is read.

// Columns of the old tables, in the order of the Targets of their rows. The tables stand in the statement under their first letters: r, b, c, t.
const (
	RepositoryColumns = "r.id, r.storage_namespace, r.creation_date, r.default_branch"
	BranchColumns     = "b.id, b.staging_token, b.commit_id"
	CommitColumns     = "c.id, c.committer, c.message, c.creation_date, c.meta_range_id, c.metadata::text, c.parents, c.version, c.generation"
	TagColumns        = "t.id, t.commit_id"
)

// RepositoryRow is a row of graveler_repositories.
type RepositoryRow struct {
	ID, Namespace, DefaultBranch string
	CreatedAt                    time.Time
}

// Targets are what [RepositoryColumns] are scanned into.
func (r *RepositoryRow) Targets() []any {
	return []any{&r.ID, &r.Namespace, &r.CreatedAt, &r.DefaultBranch}
}

// Repository is what a repository of the old program is: active. Its UID is derived from its name and when it was created.
func (r *RepositoryRow) Repository() *graveler.Repository {
	return &graveler.Repository{
		ID: graveler.RepositoryID(r.ID), UID: repositoryUID(r.ID, r.CreatedAt), Namespace: r.Namespace, DefaultBranch: graveler.BranchID(r.DefaultBranch),
		CreatedAt: r.CreatedAt.UTC(), State: graveler.RepositoryActive,
	}
}

func repositoryUID(id string, created time.Time) string {
	return derivedUID("repository", id, created.UTC().Format(time.RFC3339Nano))
}

// derivedUID makes a UID of the usual form. In the order of UIDs, which is that of time, it comes before all that are drawn.
func derivedUID(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	var id xid.ID
	copy(id[4:], h.Sum(nil))
	return id.String()
}

// BranchRow is a row of graveler_branches.
type BranchRow struct {
	ID            string
	Token, Commit *string
}

// Targets are what [BranchColumns] are scanned into.
func (b *BranchRow) Targets() []any { return []any{&b.ID, &b.Token, &b.Commit} }

// Branch is what a branch of the old program is: live, with nothing sealed. Its UID is derived from its name and its repository's
// UID. Its one move is to its head, at headTime, which is when the head was created, or at the first instant at which a move can
// be: where that was before, nil where the head is not there or its date cannot be told in nanoseconds. A head that is dated in
// the future keeps the branch from being moved until then (graveler.ErrClockSkew). Without staging token or head it is
// ErrCorrupt.
func (b *BranchRow) Branch(repositoryUID string, headTime *time.Time) (*graveler.Branch, error) {
	if b.Token == nil || b.Commit == nil || *b.Token == "" || *b.Commit == "" {
		return nil, corrupt("graveler_branches", b.ID, fmt.Errorf("has no staging token, or no commit"))
	}
	head := graveler.CommitID(*b.Commit)
	return &graveler.Branch{
		ID: graveler.BranchID(b.ID), UID: branchUID(repositoryUID, b.ID), State: graveler.BranchLive, Head: head, Token: graveler.StagingToken(*b.Token),
		LastMove: graveler.Move{Time: firstPlace(headTime).logTime, Op: graveler.OpMigrate, New: head},
	}, nil
}

func branchUID(repositoryUID, id string) string { return derivedUID("branch", repositoryUID, id) }

// CommitRow is a row of graveler_commits.
type CommitRow struct {
	ID, Committer, Message, MetaRange string
	CreatedAt                         time.Time
	Metadata                          *string // JSON; nil, like the JSON null, is none
	Parents                           []string
	Version                           int
	Generation                        *int32
}

// Targets are what [CommitColumns] are scanned into.
func (c *CommitRow) Targets() []any {
	return []any{&c.ID, &c.Committer, &c.Message, &c.CreatedAt, &c.MetaRange, &c.Metadata, &c.Parents, &c.Version, &c.Generation}
}

// Commit is what a commit of the old program is. Its version is that of a carried commit; its parents stand in our order, the
// main one first. Its generation and log time, which follow from its ancestors, and its nonce, which is of the whole (see
// graveler.CarriedVersion), are still to be found out. An empty MetaRange stays "". Metadata other than strings are ErrCorrupt.
func (c *CommitRow) Commit() (*graveler.Commit, error) {
	commit, err := c.commit()
	if err != nil {
		return nil, err
	}
	commit.Version, commit.CreatedAt = graveler.CarriedVersion+c.Version, c.CreatedAt.UTC()
	if !time.Unix(0, c.CreatedAt.UnixNano()).Equal(c.CreatedAt) {
		return nil, corrupt("graveler_commits", c.ID, fmt.Errorf("created at %s, which is out of range", c.CreatedAt))
	}
	return commit, nil
}

// commit is what rows of both programs hold in the same way.
func (c *CommitRow) commit() (*graveler.Commit, error) {
	commit := &graveler.Commit{
		ID: graveler.CommitID(c.ID), Version: c.Version, Committer: c.Committer, Message: c.Message, Tree: graveler.MetaRangeID(c.MetaRange), Parents: c.parents(),
	}
	if c.Metadata != nil {
		if err := json.Unmarshal([]byte(*c.Metadata), &commit.Metadata); err != nil {
			return nil, corrupt("graveler_commits", c.ID, fmt.Errorf("metadata: %w", err))
		}
	}
	return commit, nil
}

// parents stand in our order: in a row of version 0 the main parent is the last.
func (c *CommitRow) parents() (parents []graveler.CommitID) {
	for _, p := range c.Parents {
		parents = append(parents, graveler.CommitID(p))
	}
	if c.Version == 0 {
		slices.Reverse(parents)
	}
	return parents
}

// TagRow is a row of graveler_tags.
type TagRow struct{ ID, Commit string }

// Targets are what [TagColumns] are scanned into.
func (t *TagRow) Targets() []any { return []any{&t.ID, &t.Commit} }

// StagedRow is a row of graveler_staging_kv.
type StagedRow struct{ Key, Identity, Data []byte }

// Entry is what the row stages: a tombstone where it has no identity, whatever its data are. An empty identity is ErrCorrupt.
func (r StagedRow) Entry() (graveler.Entry, error) {
	switch {
	case r.Identity == nil:
		return graveler.Entry{Key: r.Key}, nil
	case len(r.Identity) == 0:
		return graveler.Entry{}, corrupt("graveler_staging_kv", r.Key, fmt.Errorf("has an empty identity"))
	default:
		return graveler.Entry{Key: r.Key, Value: &graveler.Value{Identity: r.Identity, Data: r.Data}}, nil
	}
}
