// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/oldsql"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate"
)

func TestARunBringsEverythingOver(t *testing.T) {
	s := newSides(t, small(1))
	plan, err := s.migration(t).Plan(t.Context())
	require.NoError(t, err)
	require.Empty(t, plan.Problems)
	require.Equal(t, []string{"bare"}, plan.Bare)
	require.Len(t, plan.Left, 1)
	require.EqualValues(t, 2*(4+30+4+200), plan.Rows)

	report := s.run(t)
	require.Equal(t, 3, report.Copied)
	verified := s.verify(t)
	require.NoError(t, verified.Err())
	require.Zero(t, verified.Differences)
	checkAgainstOracle(t, s)

	again := s.run(t)
	require.Equal(t, 3, again.AlreadyThere)
	require.Zero(t, again.Rows)
}

// one is a repository in which a run can be cut off at a known place.
func one() oldsql.Params {
	return oldsql.Params{Seed: 7, Repositories: 1, Branches: 2, Commits: 50, Tags: 3, Staged: 3000}
}

// cut runs a migration that is cut off in its first repository, behind some checkpoints.
func cut(t *testing.T, s *sides) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := s.migration(t)
	m.CheckpointEvery(100)
	m.Progress = func(p migrate.Progress) {
		if p.Rows >= 2000 {
			cancel()
		}
	}
	_, err := m.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestARunGoesOnWhereTheLastOneWasCutOff(t *testing.T) {
	s := newSides(t, one())
	cut(t, s)
	status, err := s.migration(t).Status(t.Context())
	require.NoError(t, err)
	require.Len(t, status.Repositories, 1)
	require.False(t, status.Repositories[0].Done)
	require.Equal(t, "graveler_staging_kv", status.Repositories[0].Table)
	begun := creating(t, s)

	report := s.run(t)
	require.Equal(t, 1, report.Copied)
	require.Equal(t, 1, report.Resumed)
	require.Zero(t, report.Restarted)
	require.Less(t, report.Rows, int64(1500), "what was there is not written again")
	require.NoError(t, s.verify(t).Err())
	checkAgainstOracle(t, s)
	done, err := s.migration(t).Graveler.GetRepository(t.Context(), "lake-000")
	require.NoError(t, err)
	require.Equal(t, begun.UID, done.UID)
}

// creating returns the repository that is not complete.
func creating(t *testing.T, s *sides) graveler.Repository {
	t.Helper()
	all := collect(t, s.migration(t).Graveler.ListRepositories(t.Context(), ""))
	require.Len(t, all, 1)
	require.Equal(t, graveler.RepositoryCreating, all[0].State)
	return all[0]
}

func TestARowThatIsGoneSinceARunWasCutOffIsNotCarriedOver(t *testing.T) {
	s := newSides(t, one())
	cut(t, s)
	begun := creating(t, s)
	s.exec(t, "DELETE FROM graveler_tags WHERE id = 'v1.0'")
	report := s.run(t)
	require.Equal(t, 1, report.Copied)
	require.Zero(t, report.Resumed)
	require.Equal(t, 1, report.Restarted)
	require.NoError(t, s.verify(t).Err())
	checkAgainstOracle(t, s)
	done, err := s.migration(t).Graveler.GetRepository(t.Context(), "lake-000")
	require.NoError(t, err)
	require.NotEqual(t, begun.UID, done.UID, "it is another copy")
}

// What is there is removed in several writes: the process may die between any two of them, and the next one too.
func TestARunThatDiesTwiceWhileItBeginsAnewIsTakenUp(t *testing.T) {
	s := newSides(t, one())
	for first := range int64(6) {
		for second := range int64(4) {
			s.kv = mem.New()
			cut(t, s)
			s.exec(t, "UPDATE graveler_tags SET id = id || 'x'")
			for _, at := range []int64{first + 1, second + 1} {
				if _, err := s.over(t, dying(s.kv, at, true)).Run(t.Context()); err != nil {
					require.ErrorIs(t, err, kvtest.ErrInjected)
				}
			}
			_, err := s.migration(t).Run(t.Context())
			require.NoError(t, err, "writes %d and %d were the last ones", first+1, second+1)
		}
	}
	require.NoError(t, s.verify(t).Err())
	checkAgainstOracle(t, s)
}

func TestARepositoryThatIsGoneSinceARunWasCutOffDoesNotStay(t *testing.T) {
	s := newSides(t, one())
	cut(t, s)
	for _, table := range []string{"branches", "tags", "commits"} {
		s.exec(t, "DELETE FROM graveler_"+table)
	}
	s.exec(t, "DELETE FROM graveler_repositories")
	s.run(t)
	require.Empty(t, collect(t, s.migration(t).Graveler.ListRepositories(t.Context(), "")))
	require.NoError(t, s.verify(t).Err())
}

func TestARepositoryThatUpkeepUndidIsBegunAnew(t *testing.T) {
	s := newSides(t, one())
	cut(t, s)
	require.NoError(t, s.migration(t).Graveler.DeleteRepository(t.Context(), "lake-000"))
	report := s.run(t)
	require.Equal(t, 1, report.Copied)
	require.Zero(t, report.Resumed)
	checkAgainstOracle(t, s)
}

func TestWritersDoNotChangeWhatIsCopied(t *testing.T) {
	s := newSides(t, one())
	before := readTables(t, s.conn)
	writer, err := pgx.Connect(t.Context(), s.url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, writer.Close(context.Background())) })
	m := s.migration(t)
	writes := 0
	m.Progress = func(migrate.Progress) {
		writes++
		for _, sql := range []string{
			"DELETE FROM graveler_staging_kv WHERE key = (SELECT key FROM graveler_staging_kv ORDER BY key DESC LIMIT 1)",
			"UPDATE graveler_staging_kv SET identity = 'other'",
			"INSERT INTO graveler_staging_kv SELECT staging_token, convert_to('zz' || random(), 'UTF8'), 'new', NULL FROM graveler_branches",
			"UPDATE graveler_branches SET commit_id = (SELECT min(id) FROM graveler_commits)",
			"DELETE FROM graveler_tags",
		} {
			_, err := writer.Exec(context.Background(), sql)
			require.NoError(t, err)
		}
	}
	_, err = m.Run(t.Context())
	require.NoError(t, err)
	require.Greater(t, writes, 1)
	checkTables(t, s, before)
	require.ErrorIs(t, s.verify(t).Err(), migrate.ErrDiffers)
}

func TestVerifyFindsAByte(t *testing.T) {
	s := newSides(t, one())
	s.run(t)
	require.NoError(t, s.verify(t).Err())
	s.exec(t, "UPDATE graveler_staging_kv SET data = set_byte(data, 0, 1) WHERE key = convert_to('data/004', 'UTF8') AND octet_length(data) > 0")
	s.exec(t, "UPDATE graveler_staging_kv SET data = '\\x01' WHERE key = convert_to('data/004', 'UTF8') AND identity IS NOT NULL AND coalesce(octet_length(data), 0) = 0")
	v := s.verify(t)
	require.ErrorIs(t, v.Err(), migrate.ErrDiffers)
	require.Contains(t, v.Repositories[0].First[0].String(), "data/004: its data differs")
	for _, k := range v.Repositories[0].Kinds {
		require.Equal(t, k.Kind != "staged entries", k.SourceDigest == k.TargetDigest, k.Kind)
		require.Equal(t, k.Source, k.Target)
	}
}

func TestVerifyFindsWhateverIsNotTheSame(t *testing.T) {
	cases := map[string]string{
		"UPDATE graveler_commits SET message = message || 'x' WHERE id = (SELECT min(id) FROM graveler_commits)":                        "its fields differ: message (",
		"UPDATE graveler_commits SET committer = 'eve', creation_date = '2001-02-03' WHERE id = (SELECT min(id) FROM graveler_commits)": "its fields differ: committer, creation date",
		"DELETE FROM graveler_tags WHERE id = 'v1.0'":                                                                        "tags, v1.0: it is only in the target",
		"UPDATE graveler_tags SET id = 'another' WHERE id = 'v1.0'":                                                          "tags, another: it is not in the target",
		"UPDATE graveler_repositories SET default_branch = 'feature/x_1'":                                                    "its default branch is feature/x_1, in the target main",
		"UPDATE graveler_repositories SET id = 'other'; UPDATE graveler_branches SET repository_id = 'other'":                "repository other: it is not in the target",
		"INSERT INTO graveler_staging_kv SELECT staging_token, '\\x02', NULL, NULL FROM graveler_branches WHERE id = 'main'": "main:\\x02: it is not in the target",
	}
	s := newSides(t, one())
	s.run(t)
	for sql, want := range cases {
		s.exec(t, "CREATE SCHEMA kept")
		for _, table := range []string{"graveler_repositories", "graveler_branches", "graveler_tags", "graveler_commits", "graveler_staging_kv"} {
			s.exec(t, "CREATE TABLE kept."+table+" AS SELECT * FROM "+table)
		}
		s.exec(t, sql)
		v, err := s.migration(t).Verify(t.Context())
		if err != nil {
			require.ErrorContains(t, err, want)
		} else {
			require.ErrorIs(t, v.Err(), migrate.ErrDiffers, sql)
			require.ErrorContains(t, v.Err(), want, sql)
		}
		for _, table := range []string{"graveler_repositories", "graveler_branches", "graveler_tags", "graveler_commits", "graveler_staging_kv"} {
			s.exec(t, "DELETE FROM "+table+"; INSERT INTO "+table+" SELECT * FROM kept."+table)
		}
		s.exec(t, "DROP SCHEMA kept CASCADE")
		require.NoError(t, s.verify(t).Err())
	}
}

func TestADamagedCommitIsFound(t *testing.T) {
	s := newSides(t, one())
	s.run(t)
	m := s.migration(t)
	repo, err := m.Graveler.GetRepository(t.Context(), "lake-000")
	require.NoError(t, err)
	it, err := s.kv.Scan(t.Context(), []byte(repo.Partition()), kv.ScanOptions{Prefix: []byte("commits/")})
	require.NoError(t, err)
	require.True(t, it.Next())
	key, value := it.Key(), it.Value()
	require.NoError(t, it.Close())
	damaged := damageMessage(t, value)
	require.NoError(t, s.kv.Set(t.Context(), []byte(repo.Partition()), key, damaged))
	require.ErrorContains(t, s.verify(t).Err(), "its fields differ")
	checkDamage(t, s, "does not hold what it was carried with")
}
