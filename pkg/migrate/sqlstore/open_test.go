// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/stest"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/cutover"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// tables counts the tables and indexes of a database.
func tables(t *testing.T, database string) (n int) {
	within(t, database, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT count(*) FROM pg_catalog.pg_class WHERE relnamespace = 'public'::regnamespace").Scan(&n)
	})
	return n
}

func TestTablesThatAreNotUnderstoodAreLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		statements []string
		want       error
	}{
		"newer":           {[]string{"UPDATE schema_migrations SET version = 39"}, sqlstore.ErrUnknownTables},
		"older":           {[]string{"UPDATE schema_migrations SET version = 7"}, sqlstore.ErrUnknownTables},
		"of no version":   {[]string{"DELETE FROM schema_migrations"}, sqlstore.ErrUnknownTables},
		"without version": {[]string{"DROP TABLE schema_migrations"}, sqlstore.ErrUnknownTables},
		"dirty":           {[]string{"UPDATE schema_migrations SET dirty = true"}, sqlstore.ErrDirtyTables},
		"without most":    {[]string{"DROP TABLE graveler_repositories"}, kv.ErrNotAStore},
		"newer than we":   {[]string{"CREATE TABLE moraine_side (version integer)", "INSERT INTO moraine_side VALUES (99)"}, kv.ErrSchemaNewer},
	} {
		t.Run(name, func(t *testing.T) {
			database := oldDatabase(t)
			run(t, database, c.statements...)
			before := tables(t, database)
			for _, readOnly := range []bool{true, false} {
				_, err := sqlstore.Open(t.Context(), sqlURL(database), kv.OpenOptions{ReadOnly: readOnly})
				require.ErrorIs(t, err, c.want)
			}
			require.Equal(t, before, tables(t, database))
		})
	}
}

func TestAnEmptyDatabaseBecomesAStoreOnlyForWriters(t *testing.T) {
	database := testpg.Start(t).NewDatabase(t)
	_, err := sqlstore.Open(t.Context(), sqlURL(database), kv.OpenOptions{ReadOnly: true})
	require.ErrorIs(t, err, kv.ErrNotAStore)
	require.Zero(t, tables(t, database))

	var g errgroup.Group
	for range 5 {
		g.Go(func() error {
			s, err := sqlstore.Open(t.Context(), sqlURL(database), kv.OpenOptions{})
			if err != nil {
				return err
			}
			return s.Close()
		})
	}
	require.NoError(t, g.Wait())
	made := tables(t, database)
	reader := openStore(t, sqlURL(database), kv.OpenOptions{ReadOnly: true})
	require.Empty(t, stest.Collect(t, reader.ScanRepositories(t.Context(), "")))
	require.Equal(t, made, tables(t, database))
}

func TestURLsThatNameNothingAreRefusedWithoutTheirPassword(t *testing.T) {
	for _, url := range []string{"", "postgres://u:secret@h/d", "sql+postgres:host=h password=secret", "sql+postgres://u:secret@h:port/d", "sql+postgres://u:secret@h/d?sslmode=secret"} {
		_, err := sqlstore.Open(t.Context(), url, kv.OpenOptions{})
		require.ErrorIs(t, err, kv.ErrInvalidURL)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := sqlstore.Open(t.Context(), "sql+postgres://u:secret@127.0.0.1:1/d", kv.OpenOptions{})
	require.ErrorContains(t, err, "connect")
	require.NotContains(t, err.Error(), "secret")
}

func TestAClosedStoreIsClosed(t *testing.T) {
	s := newStore(t)
	ctx, repo := t.Context(), stest.Repository(t, s)
	it, err := s.Scan(ctx, "t", nil, nil)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, s.Close())
	}
	_, err = s.GetRepository(ctx, "lake")
	require.ErrorIs(t, err, graveler.ErrClosed)
	_, err = s.PutBranch(ctx, repo, &graveler.Branch{ID: "main", UID: "u", State: graveler.BranchLive})
	require.ErrorIs(t, err, graveler.ErrClosed)
	require.ErrorIs(t, stest.LastError(s.ScanCommits(ctx, repo, "")), graveler.ErrClosed)
	require.False(t, it.Next())
	require.ErrorIs(t, it.Close(), graveler.ErrClosed)
	_, err = s.Scan(ctx, "t", nil, nil)
	require.ErrorIs(t, err, graveler.ErrClosed)
}

// What was cut over can be read and no longer written, by a store that was open before too; and again when the cutover is taken back.
func TestWhatWasCutOverIsReadOnly(t *testing.T) {
	ctx := t.Context()
	url := testpg.Start(t).NewDatabase(t)
	s, err := sqlstore.Open(ctx, sqlstore.Scheme+strings.TrimPrefix(url, "postgres"), kv.OpenOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	r := &graveler.Repository{ID: "lake", UID: "uid", Namespace: "lake", DefaultBranch: "main", CreatedAt: time.Unix(1, 0).UTC(), State: graveler.RepositoryActive, Nonce: "n"}
	r.Stamp, err = s.PutRepository(ctx, r)
	require.NoError(t, err)

	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	require.NoError(t, cutover.Set(ctx, conn))
	_, err = s.PutRepository(ctx, r)
	require.ErrorIs(t, err, cutover.ErrCutOver)
	require.ErrorIs(t, s.CreateTag(ctx, r, &graveler.Tag{ID: "v1", Commit: "c"}), cutover.ErrCutOver)
	require.ErrorIs(t, s.Apply(ctx, nil, "token", []graveler.StagedWrite{{Key: graveler.Key("a")}}), cutover.ErrCutOver)
	require.ErrorIs(t, s.AdvanceWatermark(ctx, 1), cutover.ErrCutOver)
	_, err = s.GetRepository(ctx, "lake")
	require.NoError(t, err)
	require.NoError(t, cutover.Back(ctx, conn))
	require.NoError(t, s.AdvanceWatermark(ctx, 1))
}
