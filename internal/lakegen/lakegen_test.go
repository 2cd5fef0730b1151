// SPDX-License-Identifier: Apache-2.0

package lakegen_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

func TestTheSameParametersGiveTheSame(t *testing.T) {
	p := lakegen.Params{Seed: 5, Repositories: 3, Commits: 10}
	require.Equal(t, lakegen.Random(p), lakegen.Random(p))
}

// What a test of a migration needs to have met must be there in a few deployments.
func TestYearsOfUseLeaveTheirMarks(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(10) {
		d := lakegen.Random(lakegen.Params{Seed: seed, Repositories: 2, Commits: 15})
		for _, r := range d.Repositories {
			byTree := map[string]string{}
			for _, c := range r.Commits {
				switch {
				case len(c.Parents) == 2 && c.Version == 0:
					seen["merge of version 0"]++
					require.Equal(t, c.Parents[1], c.MainFirst()[0])
				case len(c.Parents) == 2:
					seen["merge"]++
				}
				if other, ok := byTree[c.Metarange]; ok && len(c.Parents) == 1 && other != c.Parents[0] {
					seen["revert"]++
				}
				byTree[c.Metarange] = c.ID
				if c.Metarange != "" && len(c.Tree) == 0 {
					seen["all deleted"]++
				}
			}
			for _, b := range r.Branches {
				if len(b.Sealed) > 1 {
					seen["several sealed tokens"]++
				}
				head := r.Commit(b.Commit).Tree
				for _, s := range b.Newest() {
					old, ok := head.Get(s.Key)
					switch {
					case s.Tombstone && !ok:
						seen["tombstone of nothing"]++
					case s.Tombstone:
						seen["deletion"]++
					case ok && string(old.Identity) == string(s.Identity):
						seen["staged as it was"]++
					case ok:
						seen["change"]++
					default:
						seen["addition"]++
					}
				}
			}
		}
	}
	for _, what := range []string{
		"merge", "merge of version 0", "revert", "all deleted", "several sealed tokens", "tombstone of nothing", "deletion", "staged as it was", "change", "addition",
	} {
		require.Positive(t, seen[what], what)
	}
}

func TestTablesHaveARowForEverything(t *testing.T) {
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, testpg.Start(t).NewDatabase(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	d := lakegen.Random(lakegen.Params{Seed: 2, Repositories: 3, Commits: 12, Tables: true})
	require.NoError(t, d.WriteTables(ctx, conn))
	var commits, branches, tags, staged int
	for _, r := range append(d.Repositories, d.Deleted...) {
		for _, b := range r.Branches {
			require.Empty(t, b.Sealed)
			staged += len(b.Staged[b.Token])
		}
	}
	for _, orphans := range d.Orphans {
		staged += len(orphans)
	}
	for _, r := range d.Repositories {
		commits, branches, tags = commits+len(r.Commits), branches+len(r.Branches), tags+len(r.Tags)
	}
	for table, want := range map[string]int{"repositories": len(d.Repositories), "commits": commits, "branches": branches, "tags": tags, "staging_kv": staged} {
		var n int
		require.NoError(t, conn.QueryRow(ctx, "SELECT count(*) FROM graveler_"+table).Scan(&n))
		require.Equal(t, want, n, table)
	}
	var kinds int
	require.NoError(t, conn.QueryRow(ctx, "SELECT count(DISTINCT coalesce(metadata::text, 'NULL')) FROM graveler_commits WHERE metadata IS NULL OR metadata IN ('null', '{}')").Scan(&kinds))
	require.Equal(t, 3, kinds)
}

func TestALargeRepositoryChangesWhereItSays(t *testing.T) {
	ctx := t.Context()
	storage := mem.New()
	r, err := lakegen.Large(ctx, storage, lakegen.LargeParams{Entries: 2000, Commits: 20, Changes: 7, Raggedness: 50})
	require.NoError(t, err)
	require.Len(t, r.Commits, 22)
	files := lakefs.NewFiles(storage, "mem")
	read := func(metarange string) map[string]string {
		entries := map[string]string{}
		ranges, err := files.Metarange(ctx, metarange)
		require.NoError(t, err)
		for _, r := range ranges {
			records, err := files.Range(ctx, r)
			require.NoError(t, err)
			for _, record := range records {
				entries[string(record.Key)] = fmt.Sprintf("%x %x", record.Identity, record.Data)
			}
		}
		return entries
	}
	before := read(r.Commits[1].Metarange)
	require.Len(t, before, 2000)
	for _, c := range r.Commits[2:] {
		now, changed := read(c.Metarange), 0
		require.Len(t, now, 2000)
		for k, v := range now {
			if before[k] != v {
				changed++
			}
		}
		require.Equal(t, 7, changed)
		before = now
	}
}
