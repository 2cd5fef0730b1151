// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate"
)

const someCommit = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// What a plan names, and a run refuses before it writes anything.
func TestBadInputIsRefusedByName(t *testing.T) {
	long := strings.Repeat("k", 1025)
	cases := []struct {
		name, sql string
		is        error
		want      string // in the message: table, key and reason
	}{
		{"dangling parent", "UPDATE graveler_commits SET parents = ARRAY['" + someCommit + "'] WHERE id = (SELECT min(id) FROM graveler_commits WHERE repository_id = 'lake-000')", migrate.ErrInvalidRow, "its parent " + someCommit + " does not exist"},
		{"parent of another repository", "UPDATE graveler_commits SET parents = ARRAY[(SELECT min(id) FROM graveler_commits WHERE repository_id = '0ab')] WHERE id = (SELECT min(id) FROM graveler_commits WHERE repository_id = 'lake-000')", migrate.ErrInvalidRow, "graveler_commits, repository lake-000"},
		{"NULL parent", "UPDATE graveler_commits SET parents = ARRAY[NULL::text]", migrate.ErrInvalidRow, "a parent is NULL"},
		{"cycle", "UPDATE graveler_commits SET parents = ARRAY[id]", migrate.ErrInvalidRow, "it is its own ancestor"},
		{"dangling head", "UPDATE graveler_branches SET commit_id = '" + someCommit + "' WHERE id = 'feature/x_1'", migrate.ErrInvalidRow, "graveler_branches, repository 0ab, feature/x_1: its commit " + someCommit + " does not exist"},
		{"NULL head", "UPDATE graveler_branches SET commit_id = NULL WHERE id = 'feature/x_1'", migrate.ErrInvalidRow, "it has no commit"},
		{"dangling tag", "UPDATE graveler_tags SET commit_id = '" + someCommit + "' WHERE id = 'v1.0'", migrate.ErrInvalidRow, "graveler_tags, repository 0ab, v1.0: its commit"},
		{"branch without token", "UPDATE graveler_branches SET staging_token = NULL WHERE id = 'main'", migrate.ErrInvalidRow, "graveler_branches, repository 0ab, main: it has no staging token"},
		{"branch with an empty token", "UPDATE graveler_branches SET staging_token = '' WHERE id = 'main'", migrate.ErrInvalidRow, "it has no staging token"},
		{"two branches with one token", "UPDATE graveler_branches SET staging_token = 'same' WHERE id = 'feature/x_1'", migrate.ErrInvalidRow, "0ab/feature/x_1: it has the staging token same, as lake-000/feature/x_1 has"},
		{"illegal repository name", "UPDATE graveler_repositories SET id = 'Lake_0' WHERE id = 'lake-000'", graveler.ErrInvalidName, "Lake_0"},
		{"illegal branch name", "UPDATE graveler_branches SET id = 'a..b' WHERE id = 'feature/x_1'", graveler.ErrInvalidName, "graveler_branches, repository 0ab, a..b"},
		{"illegal tag name", "UPDATE graveler_tags SET id = 'a b' WHERE id = 'v1.0'", graveler.ErrInvalidName, "graveler_tags"},
		{"missing default branch", "UPDATE graveler_repositories SET default_branch = 'gone' WHERE id = '0ab'", migrate.ErrInvalidRow, "its default branch gone does not exist"},
		{"long key", "UPDATE graveler_staging_kv SET key = '" + long + "' WHERE key = 'data/004'", graveler.ErrTooLarge, "key of 1025 bytes"},
		{"empty key", "UPDATE graveler_staging_kv SET key = '' WHERE key = 'data/004'", graveler.ErrInvalidName, "graveler_staging_kv, repository"},
		{"large value", "UPDATE graveler_staging_kv SET data = decode(repeat('00', 300000), 'hex') WHERE key = 'data/004' AND identity IS NOT NULL", graveler.ErrTooLarge, "key data/004"},
		{"empty identity", "UPDATE graveler_staging_kv SET identity = '' WHERE key = 'data/004'", graveler.ErrInvalidValue, "identity must not be empty"},
		{"tombstone with data", "UPDATE graveler_staging_kv SET identity = NULL, data = 'x' WHERE key = 'data/004'", graveler.ErrInvalidValue, "a tombstone with data"},
		{"commit ID", "UPDATE graveler_commits SET id = 'short' WHERE id = (SELECT min(id) FROM graveler_commits)", migrate.ErrInvalidRow, "commit ID short"},
		{"commit version", "UPDATE graveler_commits SET version = 2", migrate.ErrInvalidRow, "version 2: 0 or 1 is expected"},
		{"date", "UPDATE graveler_commits SET creation_date = 'infinity'", migrate.ErrInvalidRow, "its creation date"},
		{"old date", "UPDATE graveler_commits SET creation_date = '0044-03-15'", migrate.ErrInvalidRow, "its creation date"},
		{"metadata that is no object", "UPDATE graveler_commits SET metadata = '[1]'", migrate.ErrInvalidRow, "its metadata is not an object of strings"},
		{"metadata with a number", `UPDATE graveler_commits SET metadata = '{"a": 1}'`, migrate.ErrInvalidRow, "its metadata is not an object of strings"},
		{"metadata with null", `UPDATE graveler_commits SET metadata = '{"a": null}'`, migrate.ErrInvalidRow, "its metadata has null for a"},
		{"large metadata", `UPDATE graveler_commits SET metadata = jsonb_build_object('a', repeat('x', 300000))`, graveler.ErrTooLarge, "graveler_commits"},
		{"foreign metaranges", "UPDATE graveler_commits SET meta_range_id = 'of another kind'", migrate.ErrForeignTrees, "metarange of another kind in ns-"},
	}
	s := newSides(t, small(3))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			db := emptyCopy(t, s)
			db.exec(t, c.sql)
			plan, err := db.migration(t).Plan(t.Context())
			require.NoError(t, err)
			var all error
			for _, p := range plan.Problems {
				all = errors.Join(all, p)
			}
			require.ErrorIs(t, all, c.is)
			require.ErrorContains(t, all, c.want)

			_, err = db.migration(t).Run(t.Context())
			require.ErrorContains(t, err, plan.Problems[0].Error())
			checkUntouched(t, db.kv)
		})
	}
}

// checkUntouched makes sure that a store has no repositories.
func checkUntouched(t *testing.T, store kv.Store) {
	t.Helper()
	it, err := store.Scan(t.Context(), []byte("graveler"), kv.ScanOptions{})
	require.NoError(t, err)
	require.False(t, it.Next())
	require.NoError(t, it.Close())
}

// emptyCopy makes a copy of the source, beside an empty target.
func emptyCopy(t *testing.T, s *sides) *sides {
	t.Helper()
	db := emptySides(t)
	db.trees = s.trees
	p := small(3)
	db.fill(t, p)
	return db
}

func TestASourceThatIsNoneIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		sql string
		is  error
	}{
		"dirty":           {"UPDATE schema_migrations SET dirty = true", migrate.ErrDirtySchema},
		"newer":           {"UPDATE schema_migrations SET version = 39", migrate.ErrUnknownSchema},
		"older":           {"UPDATE schema_migrations SET version = 37", migrate.ErrUnknownSchema},
		"without version": {"DELETE FROM schema_migrations", migrate.ErrUnknownSchema},
		"without a table": {"DROP TABLE graveler_tags", migrate.ErrMissingTable},
		"without any":     {"DROP TABLE schema_migrations", migrate.ErrMissingTable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSides(t, small(1))
			s.exec(t, c.sql)
			m := s.migration(t)
			_, err := m.Plan(t.Context())
			require.ErrorIs(t, err, c.is)
			_, err = m.Run(t.Context())
			require.ErrorIs(t, err, c.is)
			_, err = m.Verify(t.Context())
			require.ErrorIs(t, err, c.is)
		})
	}
	s := emptySides(t)
	for _, c := range []struct {
		url, want string
		is        error
	}{
		{"", "it is empty", migrate.ErrInvalidSource},
		{"nothing", "it begins neither with postgres:// nor", migrate.ErrInvalidSource},
		{"bolt:x", "it begins neither with postgres:// nor", migrate.ErrInvalidSource},
		{"postgres://user:secret@host:port/x", "is written as %25", migrate.ErrInvalidSource},
		{"postgres://user:100%secret@host/x", "is written as %25", migrate.ErrInvalidSource},
		{"postgres://user:secret@127.0.0.1:1/x?connect_timeout=1", "connection refused", migrate.ErrUnreachable},
		{strings.Replace(s.url, "/test_", "/none_", 1), `database "none_`, migrate.ErrUnreachable},
	} {
		m := s.migration(t)
		m.Source = c.url
		_, err := m.Plan(t.Context())
		require.ErrorIs(t, err, c.is, c.url)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "secret")
		require.NotContains(t, err.Error(), "\n")
		require.NotContains(t, err.Error(), "tls")
		_, err = migrate.Cutover(t.Context(), c.url, false)
		require.ErrorIs(t, err, c.is, c.url)
		require.ErrorContains(t, err, "source")
	}
}

func TestATargetWithOtherDataIsRefused(t *testing.T) {
	s := newSides(t, small(1))
	_, err := s.migration(t).Graveler.CreateRepository(t.Context(), "theirs", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	plan, err := s.migration(t).Plan(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, plan.Err(), migrate.ErrTargetTaken)
	_, err = s.migration(t).Run(t.Context())
	require.ErrorIs(t, err, migrate.ErrTargetTaken)
	_, err = s.migration(t).Verify(t.Context())
	require.ErrorIs(t, err, migrate.ErrNotMigrated)
	require.Len(t, collect(t, s.migration(t).Graveler.ListRepositories(t.Context(), "")), 1)

	// Nor is that of another source.
	s = newSides(t, small(1))
	s.run(t)
	other := newSides(t, small(2))
	other.kv = s.kv
	_, err = other.migration(t).Run(t.Context())
	require.ErrorIs(t, err, migrate.ErrTargetTaken)
	_, err = other.migration(t).Verify(t.Context())
	require.ErrorIs(t, err, migrate.ErrTargetTaken)

	// But what comes to be there after the migration is in nobody's way.
	_, err = s.migration(t).Graveler.CreateRepository(t.Context(), "ours", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	require.Equal(t, 3, s.run(t).AlreadyThere)
	require.NoError(t, s.verify(t).Err())
}

func TestTwoRunsAtATimeAreOneTooMany(t *testing.T) {
	s := newSides(t, one())
	s.run(t)
	require.NoError(t, s.migration(t).Graveler.DeleteRepository(t.Context(), "lake-000"))
	m := s.migration(t)
	m.Progress = func(migrate.Progress) {
		m.Progress = nil
		_, err := s.migration(t).Run(context.Background())
		require.ErrorIs(t, err, migrate.ErrRunning)
	}
	_, err := m.Run(t.Context())
	require.NoError(t, err)
}

func TestASourceThatGoesAwayHalfWay(t *testing.T) {
	s := newSides(t, one())
	m := s.migration(t)
	m.CheckpointEvery(100)
	told := 0
	m.Progress = func(migrate.Progress) {
		if told++; told == 1 {
			s.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		}
	}
	_, err := m.Run(t.Context())
	require.ErrorContains(t, err, "repository lake-000: read graveler_")
	require.Equal(t, graveler.RepositoryCreating, creating(t, s).State)
	require.Equal(t, 1, s.run(t).Copied)
	checkAgainstOracle(t, s)
}

func TestATargetThatIsFullHalfWay(t *testing.T) {
	s := newSides(t, one())
	full := kvtest.Faulty(s.kv, func(ctx context.Context, op kvtest.Op, call func(context.Context) error) error {
		if op.Writes > 6 {
			return syscall.ENOSPC
		}
		return call(ctx)
	})
	_, err := s.over(t, full).Run(t.Context())
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, graveler.RepositoryCreating, creating(t, s).State)
	require.Equal(t, 1, s.run(t).Copied)
	checkAgainstOracle(t, s)
}

func TestATargetOfANewerSchemaIsNotOpened(t *testing.T) {
	store := mem.New()
	require.NoError(t, store.Set(t.Context(), []byte(kv.SchemaPartition), []byte(kv.SchemaKey), []byte("9")))
	open := func(context.Context, string, kv.OpenOptions) (kv.Store, error) { return store, nil }
	_, err := kv.Open(t.Context(), "x:", kv.Engines{"x": open}, kv.OpenOptions{})
	require.ErrorIs(t, err, kv.ErrSchemaNewer)
}
