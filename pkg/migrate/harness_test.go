// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"iter"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/internal/oldsql"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate"
)

// fataler is what testing.TB and rapid.T share.
type fataler interface {
	require.TestingT
	Helper()
}

// sides are a source in PostgreSQL and a target in memory, which share the files of trees.
type sides struct {
	url   string
	conn  *pgx.Conn
	kv    kv.Store
	trees *memtrees.Store
}

// newSides makes a source of what p says, and an empty target.
func newSides(t testing.TB, p oldsql.Params) *sides {
	t.Helper()
	s := emptySides(t)
	s.fill(t, p)
	return s
}

func emptySides(t testing.TB) *sides {
	t.Helper()
	url := testpg.Start(t).NewDatabase(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	return &sides{url, conn, mem.New(), memtrees.New()}
}

func (s *sides) fill(t fataler, p oldsql.Params) {
	t.Helper()
	p.Trees = s.trees
	require.NoError(t, oldsql.Write(context.Background(), s.conn, p))
}

func (s *sides) exec(t fataler, sql string, args ...any) {
	t.Helper()
	_, err := s.conn.Exec(context.Background(), sql, args...)
	require.NoError(t, err)
}

// migration is a new one each time, as in a new process.
func (s *sides) migration(t fataler) *migrate.Migration {
	t.Helper()
	return s.over(t, s.kv)
}

// over is a migration whose target goes through another store.
func (s *sides) over(t fataler, store kv.Store) *migrate.Migration {
	t.Helper()
	g, err := graveler.New(graveler.Config{Refs: ref.New(store), Staging: staging.New(store), Trees: s.trees})
	require.NoError(t, err)
	return &migrate.Migration{Source: s.url, KV: store, Graveler: g}
}

func (s *sides) run(t fataler) migrate.Report {
	t.Helper()
	r, err := s.migration(t).Run(context.Background())
	require.NoError(t, err)
	return r
}

func (s *sides) verify(t fataler) migrate.Verified {
	t.Helper()
	v, err := s.migration(t).Verify(context.Background())
	require.NoError(t, err)
	return v
}

// collect returns all that a sequence yields.
func collect[T any](t fataler, items iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for i, err := range items {
		require.NoError(t, err)
		all = append(all, i)
	}
	return all
}

func small(seed uint64) oldsql.Params {
	return oldsql.Params{Seed: seed, Repositories: 2, Branches: 4, Commits: 30, Tags: 4, Staged: 200, Orphans: 1, Bare: true}
}
