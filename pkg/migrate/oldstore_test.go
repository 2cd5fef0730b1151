// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/oldsql"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// onTables is a versioned store in the tables themselves.
func (s *sides) onTables(t testing.TB, readOnly bool) *graveler.Graveler {
	t.Helper()
	tables, err := sqlstore.Open(t.Context(), sqlstore.Scheme+strings.TrimPrefix(s.url, "postgres"), kv.OpenOptions{ReadOnly: readOnly})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tables.Close()) })
	g, err := graveler.New(graveler.Config{Refs: tables, Staging: tables, Trees: s.trees})
	require.NoError(t, err)
	return g
}

func TestTheStoreInOldTablesReadsEveryRow(t *testing.T) {
	for seed := range uint64(2) {
		s := newSides(t, small(seed))
		old := readTables(t, s.conn)
		checkStore(t, s, s.onTables(t, true), old)
		checkStore(t, s, s.onTables(t, false), old)
		checkStore(t, s, s.onTables(t, true), old) // with tables of ours, which are empty
	}
}

// checkStore compares every read of a store in old tables with what they say.
func checkStore(t *testing.T, s *sides, g *graveler.Graveler, old oldTables) {
	t.Helper()
	repositories := collect(t, g.ListRepositories(t.Context(), ""))
	require.Len(t, repositories, len(old.repositories))
	for _, stored := range repositories {
		r := old.repositories[string(stored.ID)]
		require.NotNil(t, r)
		require.Equal(t, r.defaultBranch, string(stored.DefaultBranch))
		require.Equal(t, r.namespace, stored.Namespace)
		require.True(t, r.created.Equal(stored.CreatedAt))
		checkCommits(t, s, g, stored.ID, r)
		checkTimes(t, g, stored.ID)
		for name, b := range r.branches {
			checkBranch(t, s, g, stored.ID, r, name, b, old.staged[b.token])
			checkStaged(t, g, stored.ID, name, b, old.staged[b.token])
			checkLog(t, g, stored.ID, r, name, b)
			checkAncestry(t, g, stored.ID, r, b)
		}
		checkNames(t, g, stored.ID, r)
		checkNothingMore(t, g, stored.ID)
		checkStats(t, g, stored.ID, r, old)
	}
}

func checkTimes(t *testing.T, g *graveler.Graveler, repo graveler.RepositoryID) {
	t.Helper()
	times := map[graveler.CommitID]int64{}
	commits := collect(t, g.ListCommits(t.Context(), repo, ""))
	for _, c := range commits {
		times[c.ID] = c.LogTime
		one, err := g.ResolveRef(t.Context(), repo, string(c.ID))
		require.NoError(t, err)
		require.Equal(t, &c, one, "a scan and a read tell the same")
	}
	for _, c := range commits {
		require.GreaterOrEqual(t, c.LogTime, max(c.CreatedAt.UnixNano(), 1))
		for _, p := range c.Parents {
			require.Greater(t, c.LogTime, times[p])
		}
	}
}

func checkStaged(t *testing.T, g *graveler.Graveler, repo graveler.RepositoryID, name string, b oldBranch, staged map[string]oldEntry) {
	t.Helper()
	rows := map[string]oldEntry{}
	for _, e := range collect(t, g.ListStaged(t.Context(), repo, graveler.BranchID(name), graveler.StagingToken(b.token), graveler.DiffOptions{})) {
		var row oldEntry
		if e.Value != nil {
			row = oldEntry{string(e.Value.Identity), string(e.Value.Data)}
		}
		rows[string(e.Key)] = row
	}
	require.Len(t, rows, len(staged))
	for key, row := range staged {
		require.Equal(t, row, rows[key])
	}
}

// checkLog expects a log with one move, to the head.
func checkLog(t *testing.T, g *graveler.Graveler, repo graveler.RepositoryID, r *oldRepository, name string, b oldBranch) {
	t.Helper()
	ctx, branch := t.Context(), graveler.BranchID(name)
	stored, err := g.GetBranch(ctx, repo, branch)
	require.NoError(t, err)
	move := graveler.Move{Time: max(r.commits[b.head].created.UnixNano(), 1), Op: graveler.OpMigrate, New: graveler.CommitID(b.head)}
	require.Equal(t, []graveler.Move{move}, collect(t, g.BranchLog(ctx, repo, branch, 0)))
	log := graveler.LogName{Branch: branch, UID: stored.UID}
	require.Equal(t, []graveler.LogName{log}, collect(t, g.LogNames(ctx, repo, branch)))
	moves := collect(t, g.MoveLog(ctx, repo, log, 0, math.MaxInt64))
	require.Len(t, moves, 1)
	require.Equal(t, move, moves[0].Move)
	head, err := g.HeadAt(ctx, repo, log, time.Now().UnixNano())
	require.NoError(t, err)
	require.Equal(t, b.head, string(head.Commit))
	start, err := g.LogStart(ctx, repo, log)
	require.NoError(t, err)
	require.Zero(t, start)

	feed := metalog.New(g)
	sources, err := feed.Sources(ctx, repo, branch)
	require.NoError(t, err)
	require.Len(t, sources, 1)
	events := collect(t, feed.Events(ctx, sources, 0, math.MaxInt64))
	require.NotEmpty(t, events)
	require.Equal(t, metalog.Head, events[len(events)-1].Kind)
}

// checkAncestry compares with brute force what is found out by generations.
func checkAncestry(t *testing.T, g *graveler.Graveler, repo graveler.RepositoryID, r *oldRepository, b oldBranch) {
	t.Helper()
	other := r.branches[r.defaultBranch].head
	var common []string
	for _, id := range r.ancestors(b.head) {
		if slices.Contains(r.ancestors(other), id) {
			common = append(common, id)
		}
	}
	base, err := g.MergeBase(t.Context(), repo, b.head, other)
	if len(common) == 0 {
		require.Error(t, err)
		return
	}
	require.NoError(t, err)
	require.Contains(t, common, string(base.ID))
	for _, id := range common {
		if id != string(base.ID) {
			require.NotContains(t, r.ancestors(id), string(base.ID), "a better base than another")
		}
	}
	for name, at := range r.branches {
		has, err := g.Contains(t.Context(), repo, b.head, at.head)
		require.NoError(t, err)
		require.Equal(t, slices.Contains(r.ancestors(b.head), at.head), has, name)
	}
}

// checkNames compares listings by name and by what has it.
func checkNames(t *testing.T, g *graveler.Graveler, repo graveler.RepositoryID, r *oldRepository) {
	t.Helper()
	ctx, names := t.Context(), slices.Sorted(maps.Keys(r.branches))
	var logs []string
	for _, log := range collect(t, g.LogNames(ctx, repo, "")) {
		logs = append(logs, string(log.Branch))
	}
	require.Equal(t, names, logs)
	for _, list := range [][]graveler.Branch{collect(t, g.ListBranches(ctx, repo, "")), collect(t, g.ListAllBranches(ctx, repo, ""))} {
		require.Equal(t, names, branchNames(list))
	}
	for id := range r.commits {
		var at, containing, tagged []string
		for _, name := range names {
			if r.branches[name].head == id {
				at = append(at, name)
			}
			if slices.Contains(r.ancestors(r.branches[name].head), id) {
				containing = append(containing, name)
			}
		}
		require.Equal(t, at, branchNames(collect(t, g.BranchesAt(ctx, repo, id, ""))))
		require.Equal(t, containing, branchNames(collect(t, g.BranchesContaining(ctx, repo, id, ""))))
		for _, name := range slices.Sorted(maps.Keys(r.tags)) {
			if slices.Contains(r.ancestors(r.tags[name]), id) {
				tagged = append(tagged, name)
			}
		}
		var tags []string
		for _, tag := range collect(t, g.TagsContaining(ctx, repo, id, "")) {
			tags = append(tags, string(tag.ID))
		}
		require.Equal(t, tagged, tags)
	}
	tags := map[string]string{}
	for _, tag := range collect(t, g.ListTags(ctx, repo, "")) {
		tags[string(tag.ID)] = string(tag.Commit)
	}
	require.Equal(t, r.tags, tags)
}

func branchNames(branches []graveler.Branch) (names []string) {
	for _, b := range branches {
		names = append(names, string(b.ID))
	}
	return names
}

// checkNothingMore looks for what the old program does not know.
func checkNothingMore(t *testing.T, g *graveler.Graveler, repo graveler.RepositoryID) {
	t.Helper()
	ctx := t.Context()
	require.Empty(t, collect(t, g.ListDeletedBranches(ctx, repo)))
	require.Empty(t, collect(t, g.ListPins(ctx, repo)))
	rules, err := g.Retention(ctx, repo)
	require.NoError(t, err)
	require.Empty(t, rules)
	protection, err := g.BranchProtection(ctx, repo)
	require.NoError(t, err)
	require.Empty(t, protection)
	metadata, err := g.RepositoryMetadata(ctx, repo)
	require.NoError(t, err)
	require.Empty(t, metadata)
}

func checkStats(t *testing.T, g *graveler.Graveler, repo graveler.RepositoryID, r *oldRepository, old oldTables) {
	t.Helper()
	staged := 0
	for _, b := range r.branches {
		staged += len(old.staged[b.token])
	}
	stats, err := g.Stats(t.Context(), repo)
	require.NoError(t, err)
	require.Equal(t, len(r.branches), stats.Branches)
	require.Equal(t, len(r.branches), stats.Moves)
	require.Equal(t, len(r.tags), stats.Tags)
	require.Equal(t, len(r.commits), stats.Commits)
	require.Equal(t, staged, stats.StagedEntries)
}

// copyOfTables copies what is in the tables to a new store.
func (s *sides) copyOfTables(t testing.TB) (*sides, error) {
	t.Helper()
	there := *s
	there.kv = mem.New()
	c := there.copyTo(t, there.kv)
	c.From = s.onTables(t, true)
	_, err := c.Run(t.Context())
	return &there, err
}

func TestACopyOfOldTablesHasEveryRow(t *testing.T) {
	for seed := range uint64(2) {
		p := small(seed)
		p.Bare = false
		s := newSides(t, p)
		there, err := s.copyOfTables(t)
		require.NoError(t, err)
		checkAgainstOracle(t, there)
		checkSound(t, there)

		// With a branch that has been written since.
		g := s.onTables(t, false)
		require.NoError(t, g.Set(t.Context(), "lake-000", "main", graveler.Key("new"), graveler.Value{Identity: []byte("i")}))
		_, err = g.Commit(t.Context(), "lake-000", "main", graveler.CommitParams{Message: "m", CreatedAt: time.Unix(1_700_000_000, 0)})
		require.NoError(t, err)
		require.NoError(t, g.Set(t.Context(), "lake-000", "main", graveler.Key("new"), graveler.Value{Identity: []byte("j")}))
		there, err = s.copyOfTables(t)
		require.NoError(t, err)
		checkAgainstOracle(t, there)
		checkSound(t, there)
	}
}

// An old repository that has nothing has no default branch either, which no store can be without.
func TestACopyNamesTheOldRepositoryThatHasNoDefaultBranch(t *testing.T) {
	s := newSides(t, oldsql.Params{Repositories: 0, Bare: true})
	_, err := s.copyOfTables(t)
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	require.ErrorContains(t, err, "repository bare")
	require.ErrorContains(t, err, "there is no default branch trunk")
	s.run(t)
}
