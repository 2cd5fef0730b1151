// SPDX-License-Identifier: Apache-2.0

package lakegen

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// CreateKV makes an empty kv table of a schema version.
func CreateKV(ctx context.Context, conn *pgx.Conn, version int) error {
	const sql = `
CREATE TABLE kv (partition_key bytea NOT NULL, key bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (partition_key, key)) PARTITION BY HASH (partition_key);
CREATE TABLE kv_0 PARTITION OF kv FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE kv_1 PARTITION OF kv FOR VALUES WITH (MODULUS 2, REMAINDER 1)`
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("create table kv: %w", err)
	}
	return PutKV(ctx, conn, "kv-internal-metadata", "kv/schema/version", []byte(strconv.Itoa(version)))
}

// PutKV writes one row, in the place of what is there.
func PutKV(ctx context.Context, conn *pgx.Conn, partition, key string, value []byte) error {
	const sql = "INSERT INTO kv (partition_key, key, value) VALUES ($1, $2, $3) ON CONFLICT (partition_key, key) DO UPDATE SET value = excluded.value"
	if _, err := conn.Exec(ctx, sql, []byte(partition), []byte(key), value); err != nil {
		return fmt.Errorf("put %q in partition %q: %w", key, partition, err)
	}
	return nil
}

// WriteKV makes a kv table of the last schema version, with rows that no migration takes along beside those of the deployment.
func (d *Deployment) WriteKV(ctx context.Context, conn *pgx.Conn) error {
	if err := CreateKV(ctx, conn, lakefs.MaxVersion); err != nil {
		return err
	}
	var rows [][]any
	put := func(partition, key string, value []byte) {
		rows = append(rows, []any{[]byte(partition), []byte(key), value})
	}
	for _, r := range d.Repositories {
		put(lakefs.RepositoriesPartition, "repos/"+r.ID, marshal(repositoryData(r)))
		r.putKV(put)
	}
	for _, r := range d.Deleted {
		r.putKV(put)
	}
	for token, staged := range d.Orphans {
		putStaged(put, token, staged)
	}
	put("auth", "users/admin", []byte("somebody"))
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"kv"}, []string{"partition_key", "key", "value"}, pgx.CopyFromRows(rows))
	if err != nil {
		return fmt.Errorf("write table kv: %w", err)
	}
	return nil
}

func repositoryData(r *Repository) proto.Message {
	m := &lakefspb.RepositoryData{
		Id: r.ID, Namespace: r.Namespace, DefaultBranch: r.DefaultBranch, CreatedAt: instant(r.CreatedAt), InstanceUid: r.UID, ReadOnly: r.ReadOnly, StorageId: r.StorageID,
	}
	if r.InDeletion {
		m.State = lakefspb.RepositoryState_REPOSITORY_IN_DELETION
	}
	return m
}

// putKV puts the rows of the repository's partition, and what is staged on its branches.
func (r *Repository) putKV(put func(partition, key string, value []byte)) {
	own := r.Partition()
	for _, c := range r.Commits {
		put(own, "commits/"+c.ID, marshal(CommitData(c.Commit)))
	}
	for _, t := range r.Tags {
		put(own, "tags/"+t.ID, marshal(&lakefspb.TagData{Id: t.ID, CommitId: t.Commit}))
	}
	for _, b := range r.Branches {
		put(own, "branches/"+b.ID, marshal(&lakefspb.BranchData{Id: b.ID, CommitId: b.Commit, StagingToken: b.Token, SealedTokens: b.Sealed, Hidden: b.Hidden}))
		for token, staged := range b.Staged {
			putStaged(put, token, staged)
		}
	}
	if r.Metadata != nil {
		put(own, "repo-metadata", marshal(&lakefspb.RepositoryMetadata{Metadata: r.Metadata}))
	}
	if r.Protection != nil {
		put(own, "settings/protected_branches", marshal(protectionData(r.Protection)))
	}
	put(own, "pulls/1", []byte("a pull request"))
}

// CommitData returns the message of a commit.
func CommitData(c lakefs.Commit) *lakefspb.CommitData {
	return &lakefspb.CommitData{
		Id: c.ID, Committer: c.Committer, Message: c.Message, CreatedAt: instant(c.CreatedAt), MetarangeId: c.Metarange, Metadata: c.Metadata, Parents: c.Parents,
		Version: int32(c.Version), Generation: int32(c.Generation),
	}
}

func protectionData(rules []lakefs.ProtectionRule) proto.Message {
	m := &lakefspb.ProtectedBranches{ByPattern: map[string]*lakefspb.BlockedActions{}}
	for _, rule := range rules {
		blocked := &lakefspb.BlockedActions{}
		if rule.StagingWrite {
			blocked.Actions = append(blocked.Actions, lakefspb.BlockedAction_BLOCKED_STAGING_WRITE)
		}
		if rule.Commit {
			blocked.Actions = append(blocked.Actions, lakefspb.BlockedAction_BLOCKED_COMMIT)
		}
		m.ByPattern[rule.Pattern] = blocked
	}
	return m
}

func putStaged(put func(partition, key string, value []byte), token string, staged []lakefs.Staged) {
	for _, s := range staged {
		put(token, string(s.Key), marshal(&lakefspb.StagedData{Key: s.Key, Identity: s.Identity, Data: s.Data}))
	}
}

func instant(t time.Time) *lakefspb.Instant {
	return &lakefspb.Instant{Seconds: t.Unix(), Nanoseconds: int32(t.Nanosecond())}
}
