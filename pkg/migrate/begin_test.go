// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate"
)

// into is a migration whose target is made when it begins; made counts how often that happens.
func (s *sides) into(t fataler, made *int) *migrate.Migration {
	t.Helper()
	m := s.over(t, mem.New())
	m.OpenTarget = func(context.Context) (kv.Store, *graveler.Graveler, error) {
		*made++
		target := s.migration(t)
		return target.KV, target.Graveler, nil
	}
	return m
}

func TestATargetIsMadeWhenTheRunBegins(t *testing.T) {
	s := newSides(t, small(1))
	s.exec(t, "UPDATE graveler_branches SET commit_id = NULL WHERE id = 'feature/x_1'")
	made := 0
	_, err := s.into(t, &made).Run(t.Context())
	require.ErrorIs(t, err, migrate.ErrInvalidRow)
	require.Zero(t, made)
	s.exec(t, "UPDATE graveler_branches SET commit_id = (SELECT min(id) FROM graveler_commits c WHERE c.repository_id = graveler_branches.repository_id) WHERE id = 'feature/x_1'")
	report, err := s.into(t, &made).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, report.Copied)
	require.Equal(t, 1, made)
	require.NoError(t, s.verify(t).Err())
	checkAgainstOracle(t, s)
}

func TestASecondRunIsRefusedBeforeItPlans(t *testing.T) {
	s := newSides(t, one())
	s.run(t)
	require.NoError(t, s.migration(t).Graveler.DeleteRepository(t.Context(), "lake-000"))
	other, err := pgx.Connect(t.Context(), s.url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close(context.Background())) })
	m := s.migration(t)
	m.Progress = func(migrate.Progress) {
		m.Progress = nil
		_, err := other.Exec(context.Background(), "UPDATE graveler_branches SET commit_id = NULL")
		require.NoError(t, err)
		_, err = s.migration(t).Run(context.Background())
		require.ErrorIs(t, err, migrate.ErrRunning)
	}
	_, err = m.Run(t.Context())
	require.NoError(t, err)
}

func TestACheckpointIsMadeWhenEnoughTimeHasPassed(t *testing.T) {
	for wait, want := range map[time.Duration]bool{1: true, time.Hour: false} {
		s := newSides(t, one())
		ctx, cancel := context.WithCancel(t.Context())
		m := s.migration(t)
		m.CheckpointAfter(wait)
		m.Progress = func(migrate.Progress) { cancel() }
		_, err := m.Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		status, err := s.migration(t).Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, status.Repositories[0].Items > 0)
		require.Equal(t, 1, s.run(t).Copied)
		checkAgainstOracle(t, s)
	}
}

func TestStatusSaysHowMuchWasPlannedAndWhatComesNext(t *testing.T) {
	s := newSides(t, small(1))
	ctx, cancel := context.WithCancel(t.Context())
	m := s.migration(t)
	m.Workers = 1
	m.CheckpointEvery(1)
	m.Progress = func(p migrate.Progress) {
		if p.Repositories == 1 {
			cancel()
		}
	}
	_, err := m.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	status, err := s.migration(t).Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, status.Planned)
	require.Less(t, len(status.Repositories), 3)
	require.Equal(t, migrate.RepositoryStatus{Repository: "0ab", Done: true, Items: status.Repositories[0].Items}, status.Repositories[0])

	s = newSides(t, one())
	cut(t, s)
	status, err = s.migration(t).Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, "graveler_staging_kv", status.Repositories[0].Table)
	require.NotEmpty(t, status.Repositories[0].Branch)
	require.NotEmpty(t, status.Repositories[0].Key)
}

func TestAPlanSaysWhatIsThere(t *testing.T) {
	s := newSides(t, small(1))
	plan := func() migrate.Plan {
		p, err := s.migration(t).Plan(t.Context())
		require.NoError(t, err)
		return p
	}
	before := plan()
	require.Zero(t, before.RowsThere)
	s.run(t)
	after := plan()
	require.Zero(t, after.Rows)
	require.Equal(t, before.Rows, after.RowsThere)
	require.Empty(t, after.Bare)
	for _, r := range after.Repositories {
		require.True(t, r.There)
		require.False(t, r.Begun)
	}
	require.NoError(t, s.migration(t).Graveler.DeleteRepository(t.Context(), "lake-000"))
	again := plan()
	require.Equal(t, before.Rows, again.Rows+again.RowsThere)
	require.NotZero(t, again.Rows)

	s = newSides(t, one())
	cut(t, s)
	require.True(t, plan().Repositories[0].Begun)
}

// What follows from a branch that is refused is not refused once more.
func TestARefusedBranchIsNamedOnce(t *testing.T) {
	s := newSides(t, small(1))
	for sql, orphans := range map[string]int{
		"UPDATE graveler_branches SET staging_token = NULL WHERE id = 'main' AND repository_id = '0ab'": 2,
		"UPDATE graveler_branches SET commit_id = NULL WHERE id = 'main' AND repository_id = '0ab'":     1,
	} {
		db := emptySides(t)
		db.trees = s.trees
		db.fill(t, small(1))
		db.exec(t, sql)
		plan, err := db.migration(t).Plan(t.Context())
		require.NoError(t, err)
		require.Len(t, plan.Problems, 1, "%v", plan.Problems)
		require.Equal(t, plan.Problems[0], plan.Err())
		require.Len(t, plan.Left, orphans)
		for _, l := range plan.Left {
			require.Equal(t, "no branch has this staging token", l.What)
		}
	}
}
