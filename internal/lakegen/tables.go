// SPDX-License-Identifier: Apache-2.0

package lakegen

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// WriteTables makes the tables that lakeFS had before its kv table, of a deployment that was made for them. What may be said in
// several ways is: no parents as NULL and {}, no metadata as NULL, null and {}, the data of a tombstone as NULL and empty. Of
// deleted repositories only what was staged is left.
func (d *Deployment) WriteTables(ctx context.Context, conn *pgx.Conn) error {
	if err := sqlstore.CreateTables(ctx, conn); err != nil {
		return err
	}
	t := &tableRows{rows: map[string][][]any{}}
	for _, r := range d.Repositories {
		t.add("graveler_repositories", r.ID, r.Namespace, r.CreatedAt, r.DefaultBranch)
		t.addRepository(r)
	}
	for _, r := range d.Deleted {
		for _, b := range r.Branches {
			t.addStaged(b.Staged)
		}
	}
	t.addStaged(d.Orphans)
	for table, columns := range map[string][]string{
		"graveler_repositories": {"id", "storage_namespace", "creation_date", "default_branch"},
		"graveler_commits":      {"repository_id", "id", "committer", "message", "creation_date", "meta_range_id", "metadata", "parents", "version", "generation"},
		"graveler_branches":     {"repository_id", "id", "staging_token", "commit_id"},
		"graveler_tags":         {"repository_id", "id", "commit_id"},
		"graveler_staging_kv":   {"staging_token", "key", "identity", "data"},
	} {
		if _, err := conn.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(t.rows[table])); err != nil {
			return fmt.Errorf("write table %s: %w", table, err)
		}
	}
	return nil
}

// tableRows are rows by table.
type tableRows struct {
	rows   map[string][][]any
	absent int // how often something was to be said that can be said in several ways
}

func (t *tableRows) add(table string, row ...any) { t.rows[table] = append(t.rows[table], row) }

// nothing returns one of the ways to say that there is nothing, another one each time.
func (t *tableRows) nothing(ways ...any) any {
	t.absent++
	return ways[t.absent%len(ways)]
}

func (t *tableRows) addRepository(r *Repository) {
	for _, c := range r.Commits {
		var parents, metadata any = c.Parents, c.Metadata
		if len(c.Parents) == 0 {
			parents = t.nothing(nil, []string{})
		}
		if c.Metadata == nil {
			metadata = t.nothing(nil, "null", "{}")
		}
		t.add("graveler_commits", r.ID, c.ID, c.Committer, c.Message, c.CreatedAt, c.Metarange, metadata, parents, c.Version, c.Generation)
	}
	for _, b := range r.Branches {
		t.add("graveler_branches", r.ID, b.ID, b.Token, b.Commit)
		t.addStaged(b.Staged)
	}
	for _, tag := range r.Tags {
		t.add("graveler_tags", r.ID, tag.ID, tag.Commit)
	}
}

func (t *tableRows) addStaged(byToken map[string][]lakefs.Staged) {
	for _, token := range slices.Sorted(maps.Keys(byToken)) {
		for _, s := range byToken[token] {
			if s.Tombstone {
				t.add("graveler_staging_kv", token, s.Key, nil, t.nothing(nil, []byte{}))
			} else {
				t.add("graveler_staging_kv", token, s.Key, s.Identity, s.Data)
			}
		}
	}
}
