// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/migrate"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// A run writes rows before it notes that they are there, and may die in between.
func TestWhatIsGoneFromBehindTheLastCheckpointDoesNotStay(t *testing.T) {
	for name, sql := range map[string]struct{ tables, kv string }{
		"a tag that is gone":          {"DELETE FROM graveler_tags", "DELETE FROM kv WHERE key = 'tags/v1'"},
		"a tag that moved":            {"UPDATE graveler_tags SET commit_id = (SELECT commit_id FROM graveler_branches WHERE id = 'main')", ""},
		"a staged row that is gone":   {"DELETE FROM graveler_staging_kv WHERE key = 'x'", "DELETE FROM kv WHERE key = 'x'"},
		"a staged row that changed":   {"UPDATE graveler_staging_kv SET identity = 'another' WHERE key = 'x'", ""},
		"a deletion that is gone":     {"DELETE FROM graveler_staging_kv WHERE identity IS NULL", "DELETE FROM kv WHERE key = 'z'"},
		"a branch that is gone":       {"DELETE FROM graveler_branches WHERE id = 'side'", "DELETE FROM kv WHERE key = 'branches/side'"},
		"a branch that moved":         {"UPDATE graveler_branches SET commit_id = (SELECT commit_id FROM graveler_branches WHERE id = 'main') WHERE id = 'side'", ""},
		"a commit that is gone":       {"DELETE FROM graveler_commits WHERE message = 'commit 4'", ""},
		"a message that is another":   {"UPDATE graveler_commits SET message = 'another' WHERE message = 'commit 4'", ""},
		"settings that are gone":      {"", "DELETE FROM kv WHERE key = 'settings/protected_branches'"},
		"metadata that are gone":      {"", "DELETE FROM kv WHERE key = 'repo-metadata'"},
		"a loose commit that is gone": {"", "DELETE FROM kv WHERE key = 'commits/'::bytea || $1"},
	} {
		for layout, sql := range map[string]string{"tables": sql.tables, "key/value": sql.kv} {
			if sql == "" {
				continue
			}
			t.Run(name+" in "+layout, func(t *testing.T) {
				l, h := emptyLake(t), newHandmade(t)
				root := h.commit("")
				two := h.commit(h.metarange(h.rangeOf("a", "b")))
				h.branch("main", h.commit(h.metarange(h.rangeOf("a", "c"))), stagedEntry(t, "x", "1"), stagedEntry(t, "y", "2"), lakefs.Staged{Record: lakefs.Record{Key: []byte("z")}, Tombstone: true})
				loose := h.commit("", root.ID)
				h.branch("side", two, stagedEntry(t, "w", "3"))
				h.Tags = []lakefs.Tag{{ID: "v1", Commit: two.ID}}
				h.Metadata = map[string]string{"team": "x"}
				h.Protection = []lakefs.ProtectionRule{{Pattern: "main", Commit: true}}
				l.fillLake(t, h.deployment(), layout == "tables")
				var notes atomic.Int64
				dies := kvtest.Faulty(l.kv, func(ctx context.Context, op kvtest.Op, call func(context.Context) error) error {
					if op.Writes > 0 && op.Partition == migrate.Partition && op.Key == "repositories/handmade" {
						notes.Add(1)
					}
					if op.Writes > 0 && notes.Load() > 1 { // behind that of the beginning comes that of the checkpoint: all rows are there
						return kvtest.ErrInjected
					}
					return call(ctx)
				})
				_, err := l.over(t, dies).Run(t.Context())
				require.ErrorIs(t, err, kvtest.ErrInjected)
				if strings.Contains(sql, "$1") {
					l.exec(t, sql, []byte(loose.ID))
				} else {
					l.exec(t, sql)
				}
				_, err = l.migration(t).Run(t.Context())
				require.NoError(t, err)
				require.NoError(t, l.verify(t).Err())
				checkSound(t, l.sides)
			})
		}
	}
}
