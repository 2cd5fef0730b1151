// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"strings"

	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// KVDiagnosis is what there is in the kv table of lakeFS: numbers alone.
type KVDiagnosis struct {
	SchemaVersion int   `json:"schema_version"` // 0: none is noted, or one that this program does not know
	Rows          int64 `json:"rows"`
	Bytes         int64 `json:"bytes"`
	Repositories  int64 `json:"repositories"`
	InDeletion    int64 `json:"in_deletion"`
	Branches      int64 `json:"branches"`
	Tags          int64 `json:"tags"`
	Commits       int64 `json:"commits"`
	Staged        int64 `json:"staged_entries"`
	SealedTokens  int64 `json:"sealed_tokens"` // that branches have beside the one that is written under
	// OrphanPartitions are those that are neither of a repository in use nor the token of a branch, and OrphanRows the rows in
	// them. Users, groups and the like are among them.
	OrphanPartitions int64  `json:"orphan_partitions"`
	OrphanRows       int64  `json:"orphan_rows"`
	DanglingHeads    int64  `json:"dangling_heads"` // branches whose commit does not exist
	DanglingTags     int64  `json:"dangling_tags"`
	Problem          string `json:"problem,omitempty"` // why it could not be counted to the end
}

// diagnose returns nil where there is no such table.
func (k keyValue) diagnose(ctx context.Context) (*KVDiagnosis, error) {
	t, err := tables{k.connection}.diagnoseTable(ctx, kvTable)
	if err != nil || t.Rows < 0 {
		return nil, err
	}
	d := &KVDiagnosis{Rows: t.Rows, Bytes: t.Bytes}
	if d.SchemaVersion, err = lakefs.Version(ctx, k.conn); err == nil {
		err = k.diagnoseRepositories(ctx, d)
	}
	if d.Problem = problemOf(err); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return d, nil
}

func (k keyValue) diagnoseRepositories(ctx context.Context, d *KVDiagnosis) error {
	known := map[string]bool{lakefs.RepositoriesPartition: true, lakefs.InternalPartition: true}
	var repositories []lakefs.Repository
	for r, err := range k.Repositories(ctx) {
		switch {
		case err != nil:
			return err
		case r.InDeletion:
			d.InDeletion++
		default:
			repositories = append(repositories, r)
			known[r.Partition()] = true
		}
	}
	d.Repositories = int64(len(repositories))
	for _, r := range repositories {
		if err := k.diagnoseRepository(ctx, r, d, known); err != nil {
			return err
		}
	}
	for p, err := range k.Partitions(ctx) {
		if err != nil {
			return err
		}
		if !known[p.Name] {
			d.OrphanPartitions++
			d.OrphanRows += p.Rows
		}
	}
	return nil
}

func (k keyValue) diagnoseRepository(ctx context.Context, r lakefs.Repository, d *KVDiagnosis, known map[string]bool) error {
	for c, err := range k.Keys(ctx, r.Partition()) {
		if err != nil {
			return err
		}
		switch strings.TrimSuffix(c.Prefix, "/") {
		case "branches":
			d.Branches += c.Rows
		case "tags":
			d.Tags += c.Rows
		case "commits":
			d.Commits += c.Rows
		}
	}
	var heads, tagged, tokens []string
	for b, err := range k.Branches(ctx, r) {
		if err != nil {
			return err
		}
		heads, tokens = append(heads, b.Commit), append(append(tokens, b.Token), b.Sealed...)
		d.SealedTokens += int64(len(b.Sealed))
	}
	for t, err := range k.Tags(ctx, r) {
		if err != nil {
			return err
		}
		tagged = append(tagged, t.Commit)
	}
	for _, token := range tokens {
		known[token] = true
	}
	staged, err := k.countStaged(ctx, tokens)
	if err != nil {
		return err
	}
	d.Staged += staged
	if err := k.countDangling(ctx, r, heads, &d.DanglingHeads); err != nil {
		return err
	}
	return k.countDangling(ctx, r, tagged, &d.DanglingTags)
}

// countDangling adds how many of the commits do not exist in a repository.
func (k keyValue) countDangling(ctx context.Context, r lakefs.Repository, commits []string, n *int64) error {
	const sql = "SELECT count(*) FROM unnest($2::bytea[]) AS wanted WHERE NOT EXISTS (SELECT 1 FROM kv WHERE partition_key = $1 AND key = wanted)"
	keys := make([]string, len(commits))
	for i, c := range commits {
		keys[i] = "commits/" + c
	}
	var dangling int64
	if err := k.conn.QueryRow(ctx, sql, []byte(r.Partition()), byteKeys(keys)).Scan(&dangling); err != nil {
		return fmt.Errorf("look for commits in table kv: %w", err)
	}
	*n += dangling
	return nil
}
