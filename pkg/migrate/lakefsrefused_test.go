// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

func TestAKeyOfTheReservedAreaIsRefused(t *testing.T) {
	for name, key := range map[string]string{"a version": "\x00vdata\x00\x01n", "none": "\x00x"} {
		for _, tables := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				l, h := emptyLake(t), newHandmade(t)
				h.commit("")
				h.branch("main", h.commit(h.metarange(h.rangeOf(key, "data"))))
				l.fillLake(t, h.deployment(), tables)
				_, err := l.migration(t).Run(t.Context())
				require.ErrorContains(t, err, "those that begin with a zero byte are reserved")

				l, h = emptyLake(t), newHandmade(t)
				h.branch("main", h.commit(""), lakefs.Staged{Record: lakefs.Record{Key: []byte(key)}, Tombstone: true})
				l.fillLake(t, h.deployment(), tables)
				plan, err := l.migration(t).Plan(t.Context())
				require.NoError(t, err)
				require.ErrorContains(t, plan.Err(), "those that begin with a zero byte are reserved")
			})
		}
	}
}

func TestATagWithTheNameOfABranchIsRefusedByThePlan(t *testing.T) {
	for _, tables := range []bool{true, false} {
		l, h := emptyLake(t), newHandmade(t)
		a := h.commit("")
		h.branch("main", a)
		h.branch("v1", a)
		h.Tags = []lakefs.Tag{{ID: "v1", Commit: a.ID}}
		l.fillLake(t, h.deployment(), tables)
		plan, err := l.migration(t).Plan(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, plan.Err(), migrate.ErrInvalidRow)
		require.ErrorContains(t, plan.Err(), "v1: there is a branch of that name")
	}
}

func TestAPlanNamesEveryRecordThatCannotBeRead(t *testing.T) {
	l := newLake(t, lakegen.Params{Seed: 21, Repositories: 2, Commits: 5})
	r := l.repository("alpha-repo")
	for _, key := range []string{"branches/" + r.Branches[0].ID, "commits/" + r.Commits[0].ID, "tags/odd"} {
		require.NoError(t, lakegen.PutKV(t.Context(), l.conn, r.Partition(), key, []byte{0xff}))
	}
	require.NoError(t, lakegen.PutKV(t.Context(), l.conn, lakefs.RepositoriesPartition, "repos/odd", []byte{0xff}))
	plan, err := l.migration(t).Plan(t.Context())
	require.NoError(t, err)
	var problems []string
	for _, p := range plan.Problems {
		problems = append(problems, p.Error())
	}
	text := strings.Join(problems, "\n")
	for _, key := range []string{"branches/" + r.Branches[0].ID, "commits/" + r.Commits[0].ID, "tags/odd", "repos/odd"} {
		require.Contains(t, text, key)
	}
	require.Len(t, plan.Repositories, len(l.deployment.Repositories)-1, "one is being deleted")
	_, err = l.migration(t).Run(t.Context())
	require.ErrorIs(t, err, lakefs.ErrInvalidRecord)
}

func TestAPlaceOfFilesThatNobodyOpensIsRefusedFirst(t *testing.T) {
	l := newLake(t, lakegen.Params{Seed: 21, Repositories: 1, Commits: 2})
	for blocks, want := range map[string]string{"/tmp/copy": "/tmp/copy has no scheme", "s3://bucket/x": "no driver for s3"} {
		m := l.migration(t)
		m.SourceBlocks = blocks
		_, err := m.Plan(t.Context())
		require.ErrorIs(t, err, migrate.ErrInvalidBlocks)
		require.ErrorContains(t, err, want)
	}
}

func TestADatabaseThatLakeFSKeepsIsNotCutOver(t *testing.T) {
	l := newLake(t, lakegen.Params{Seed: 21, Repositories: 1, Commits: 2})
	l.exec(t, "CREATE TABLE schema_migrations (version bigint, dirty boolean)")
	for _, url := range []string{l.url, strings.TrimPrefix(l.url, "lakefs+")} {
		_, err := migrate.Cutover(t.Context(), url, false)
		require.ErrorIs(t, err, migrate.ErrNoCutover)
	}
}

func TestAPlanNamesTheLayoutAndWhatIsLeftInTheOther(t *testing.T) {
	l := newLake(t, lakegen.Params{Seed: 21, Repositories: 1, Commits: 2})
	l.exec(t, "CREATE TABLE graveler_commits AS SELECT 1")
	plan, err := l.migration(t).Plan(t.Context())
	require.NoError(t, err)
	require.Equal(t, "lakeFS, table kv", plan.Layout)
	require.True(t, slices.ContainsFunc(plan.Left, func(l migrate.LeftBehind) bool { return l.Table == "graveler_commits" && l.Rows > 0 }))
}

func TestTheSourceIsKnownWithItsServer(t *testing.T) {
	l := newLake(t, lakegen.Params{Seed: 21, Repositories: 1, Commits: 2})
	l.run(t)
	var server string
	require.NoError(t, l.conn.QueryRow(t.Context(), "SELECT system_identifier::text FROM pg_control_system()").Scan(&server))
	status, err := l.migration(t).Status(t.Context())
	require.NoError(t, err)
	require.Contains(t, status.Source, ":"+server+":")

	note := &migratepb.MigrationData{}
	_, err = kv.GetMessage(t.Context(), l.kv, []byte(migrate.Partition), []byte("source"), note)
	require.NoError(t, err)
	note.Source = strings.Replace(note.Source, ":"+server+":", ":1:", 1) // as another server with the same numbers would have it
	require.NoError(t, kv.SetMessage(t.Context(), l.kv, []byte(migrate.Partition), []byte("source"), note))
	_, err = l.migration(t).Run(t.Context())
	require.ErrorIs(t, err, migrate.ErrTargetTaken)
	require.ErrorContains(t, err, "restored or moved counts as another")
	_, err = l.migration(t).Verify(t.Context())
	require.ErrorIs(t, err, migrate.ErrTargetTaken)
}
