// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/internal/oldsql"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate"
)

// clear empties the source.
func (s *sides) clear(t fataler) {
	t.Helper()
	s.exec(t, "DROP TABLE IF EXISTS graveler_repositories, graveler_branches, graveler_commits, graveler_tags, graveler_staging_kv, schema_migrations")
	s.kv, s.trees = mem.New(), memtrees.New()
}

// dying is a store whose process dies with a write: that one may or may not have landed, and none after it does.
func dying(store kv.Store, at int64, landed bool) *kvtest.FaultyStore {
	var writes atomic.Int64
	return kvtest.Faulty(store, func(ctx context.Context, op kvtest.Op, call func(context.Context) error) error {
		if op.Writes == 0 {
			return call(ctx)
		}
		switch n := writes.Add(1); {
		case n < at:
			return call(ctx)
		case n == at && landed:
			return fmt.Errorf("%w (landed: %w)", kvtest.ErrInjected, call(ctx))
		default:
			return kvtest.ErrInjected
		}
	})
}

// Random tables, a run that is cut off again and again at random points, and every read gives what the tables say.
func TestWhateverHappensToARunTheResultIsTheSame(t *testing.T) {
	s := emptySides(t)
	rapid.Check(t, func(t *rapid.T) {
		s.clear(t)
		p := oldsql.Params{
			Seed: rapid.Uint64().Draw(t, "seed"), Repositories: rapid.IntRange(0, 3).Draw(t, "repositories"), Branches: rapid.IntRange(1, 6).Draw(t, "branches"), Commits: rapid.IntRange(1, 40).Draw(t, "commits"),
			Tags: rapid.IntRange(0, 5).Draw(t, "tags"), Staged: rapid.IntRange(0, 300).Draw(t, "staged"), Orphans: rapid.IntRange(0, 2).Draw(t, "orphans"), Bare: rapid.Bool().Draw(t, "bare"),
		}
		s.fill(t, p)
		stale := map[string]bool{}
		for range rapid.IntRange(0, 4).Draw(t, "cuts") {
			cutOff(t, s, s.kv)
			if p.Repositories > 0 && rapid.Bool().Draw(t, "change") {
				stale[changing] = repositoryUIDs(t, s)[changing] != ""
				changeSource(t, s)
			}
		}
		uids := repositoryUIDs(t, s)
		s.run(t)
		v := s.verify(t)
		for id, uid := range uids { // of what was complete
			require.Equal(t, uid, repositoryUIDs(t, s)[id])
		}
		// What was complete before the source changed stays as it was of that instant; all else is as the source is now.
		if v.Differences == 0 {
			checkAgainstOracle(t, s)
		}
		for _, r := range v.Repositories {
			require.True(t, r.Differences == 0 || stale[r.Repository], "%v", v.Err())
		}
		checkSound(t, s)
	})
}

func repositoryUIDs(t fataler, s *sides) map[graveler.RepositoryID]string {
	t.Helper()
	uids := map[graveler.RepositoryID]string{}
	for _, r := range collect(t, s.migration(t).Graveler.ListRepositories(context.Background(), "")) {
		if r.State == graveler.RepositoryActive {
			uids[r.ID] = r.UID
		}
	}
	return uids
}

// migrating makes migrations into one target.
type migrating interface {
	migration(t fataler) *migrate.Migration
	over(t fataler, store kv.Store) *migrate.Migration
}

// cutOff runs a migration that does not get far, if it does not get through.
func cutOff(t *rapid.T, s migrating, store kv.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var m *migrate.Migration
	if rapid.Bool().Draw(t, "dies") {
		m = s.over(t, dying(store, int64(rapid.IntRange(1, 600).Draw(t, "write")), rapid.Bool().Draw(t, "landed")))
	} else {
		m = s.migration(t)
		calls, at := 0, rapid.IntRange(1, 8).Draw(t, "progress")
		m.Progress = func(migrate.Progress) {
			if calls++; calls == at {
				cancel()
			}
		}
	}
	m.CheckpointEvery(uint64(rapid.IntRange(1, 500).Draw(t, "checkpoint")))
	m.Workers = rapid.IntRange(1, 3).Draw(t, "workers")
	if _, err := m.Run(ctx); err != nil {
		require.True(t, ctx.Err() != nil || errorsIsInjected(err), "%v", err)
	}
	for _, r := range collect(t, s.migration(t).Graveler.ListRepositories(context.Background(), "")) {
		if r.State == graveler.RepositoryCreating {
			_, err := s.migration(t).Graveler.GetRepository(context.Background(), r.ID)
			require.ErrorIs(t, err, graveler.ErrRepositoryNotFound, "nothing partial is visible")
		}
	}
}

// changing is the repository that changes.
const changing = "lake-000"

// changeSource changes one repository, by rows that are new, others, and gone.
func changeSource(t *rapid.T, s *sides) {
	const repo = changing
	switch rapid.IntRange(0, 6).Draw(t, "what") {
	case 0:
		s.exec(t, "DELETE FROM graveler_tags WHERE repository_id = $1", repo)
	case 1:
		s.exec(t, "DELETE FROM graveler_staging_kv WHERE staging_token = (SELECT staging_token FROM graveler_branches WHERE repository_id = $1 AND id = 'main')", repo)
	case 2:
		s.exec(t, "UPDATE graveler_staging_kv SET identity = 'other', data = 'other' WHERE staging_token = (SELECT staging_token FROM graveler_branches WHERE repository_id = $1 AND id = 'main')", repo)
	case 3:
		s.exec(t, "DELETE FROM graveler_branches WHERE repository_id = $1 AND id <> 'main'", repo)
	case 4:
		s.exec(t, "UPDATE graveler_tags SET commit_id = (SELECT commit_id FROM graveler_branches WHERE repository_id = $1 AND id = 'main') WHERE repository_id = $1", repo)
	case 5:
		s.exec(t, "UPDATE graveler_branches SET commit_id = (SELECT commit_id FROM graveler_branches WHERE repository_id = $1 AND id = 'main') WHERE repository_id = $1", repo)
	case 6:
		for _, table := range []string{"repositories", "branches", "tags", "commits"} {
			column := "repository_id"
			if table == "repositories" {
				column = "id"
			}
			s.exec(t, "DELETE FROM graveler_"+table+" WHERE "+column+" = $1", repo)
		}
	}
}
