// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// The oracle knows what the tables mean, and nothing of the code under test: it reads whole tables into maps, and works out by
// brute force what every read is to give.

type oldRepository struct {
	namespace, defaultBranch string
	created                  time.Time
	branches                 map[string]oldBranch
	tags                     map[string]string
	commits                  map[string]*oldCommit
}

type oldBranch struct{ token, head string }

type oldCommit struct {
	committer, message, tree string
	created                  time.Time
	metadata                 map[string]string
	parents                  []string // the main parent first
	version                  int
}

type oldEntry struct{ identity, data string } // identity "": a tombstone

// oldTables is all that there is.
type oldTables struct {
	repositories map[string]*oldRepository
	staged       map[string]map[string]oldEntry
}

func readTables(t fataler, conn *pgx.Conn) oldTables {
	t.Helper()
	ctx := context.Background()
	all := oldTables{map[string]*oldRepository{}, map[string]map[string]oldEntry{}}
	each := func(sql string, into []any, row func()) {
		rows, err := conn.Query(ctx, sql)
		require.NoError(t, err)
		_, err = pgx.ForEachRow(rows, into, func() error { row(); return nil })
		require.NoError(t, err)
	}
	var repo, a, b, c string
	var at time.Time
	each("SELECT id, storage_namespace, default_branch, creation_date FROM graveler_repositories", []any{&repo, &a, &b, &at}, func() {
		all.repositories[repo] = &oldRepository{a, b, at, map[string]oldBranch{}, map[string]string{}, map[string]*oldCommit{}}
	})
	each("SELECT repository_id, id, staging_token, commit_id FROM graveler_branches", []any{&repo, &a, &b, &c}, func() { all.repositories[repo].branches[a] = oldBranch{b, c} })
	each("SELECT repository_id, id, commit_id FROM graveler_tags", []any{&repo, &a, &b}, func() { all.repositories[repo].tags[a] = b })
	var d string
	var metadata map[string]string
	var parents []string
	var version int
	const commits = "SELECT repository_id, id, committer, message, meta_range_id, creation_date, coalesce(nullif(metadata, 'null'), '{}'), coalesce(parents, '{}'), version FROM graveler_commits"
	each(commits, []any{&repo, &a, &b, &c, &d, &at, &metadata, &parents, &version}, func() {
		old := &oldCommit{b, c, d, at, maps.Clone(metadata), slices.Clone(parents), version}
		if version == 0 {
			slices.Reverse(old.parents) // there are two at most
		}
		all.repositories[repo].commits[a] = old
		clear(metadata)
	})
	var key, data []byte
	var identity *string
	each("SELECT staging_token, key, encode(identity, 'escape'), coalesce(data, '') FROM graveler_staging_kv", []any{&a, &key, &identity, &data}, func() {
		if all.staged[a] == nil {
			all.staged[a] = map[string]oldEntry{}
		}
		e := oldEntry{data: string(data)}
		if identity != nil {
			e.identity = *identity // the generator's are plain text
		}
		all.staged[a][string(key)] = e
	})
	return all
}

func (r *oldRepository) generation(id string) int64 {
	memo := map[string]int64{}
	var of func(string) int64
	of = func(id string) int64 {
		if memo[id] == 0 {
			memo[id] = 1
			for _, p := range r.commits[id].parents {
				memo[id] = max(memo[id], of(p)+1)
			}
		}
		return memo[id]
	}
	return of(id)
}

// ancestors are the commit and all before it.
func (r *oldRepository) ancestors(id string) []string {
	seen := map[string]bool{}
	for queue := []string{id}; len(queue) > 0; queue = queue[1:] {
		if !seen[queue[0]] {
			seen[queue[0]] = true
			queue = append(queue, r.commits[queue[0]].parents...)
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func (r *oldRepository) mainLine(id string) []string {
	line := []string{id}
	for len(r.commits[id].parents) > 0 {
		id = r.commits[id].parents[0]
		line = append(line, id)
	}
	return line
}

// tree reads the entries of a tree: files are the same on both sides.
func (s *sides) tree(t fataler, namespace, tree string) map[string]oldEntry {
	t.Helper()
	entries := map[string]oldEntry{}
	if tree == "" {
		return entries
	}
	it := s.trees.Scan(context.Background(), namespace, graveler.MetaRangeID(tree))
	for it.Next() {
		e := it.Item()
		entries[string(e.Key)] = oldEntry{string(e.Value.Identity), string(e.Value.Data)}
	}
	require.NoError(t, it.Close())
	return entries
}

func changesBetween(left, right map[string]oldEntry) (changes []string) {
	for k, e := range right {
		if old, ok := left[k]; !ok {
			changes = append(changes, "+"+k)
		} else if old.identity != e.identity {
			changes = append(changes, "~"+k)
		}
	}
	for k := range left {
		if _, ok := right[k]; !ok {
			changes = append(changes, "-"+k)
		}
	}
	slices.Sort(changes)
	return changes
}

func changesOf(t fataler, diffs []graveler.Diff) (changes []string) {
	t.Helper()
	for _, d := range diffs {
		sign := "~"
		if d.Left == nil {
			sign = "+"
		} else if d.Right == nil {
			sign = "-"
		}
		changes = append(changes, sign+string(d.Key))
	}
	slices.Sort(changes)
	return changes
}

// checkAgainstOracle compares every read of the target with what the tables say.
func checkAgainstOracle(t fataler, s *sides) {
	t.Helper()
	checkTables(t, s, readTables(t, s.conn))
}

func checkTables(t fataler, s *sides, old oldTables) {
	t.Helper()
	ctx, g := context.Background(), s.migration(t).Graveler
	for id, r := range old.repositories {
		repo := graveler.RepositoryID(id)
		stored, err := g.GetRepository(ctx, repo)
		require.NoError(t, err)
		require.Equal(t, r.defaultBranch, string(stored.DefaultBranch))
		require.True(t, r.created.Equal(stored.CreatedAt))
		if len(r.commits) == 0 {
			_, err := g.GetBranch(ctx, repo, stored.DefaultBranch)
			require.NoError(t, err)
			continue
		}
		checkCommits(t, s, g, repo, r)
		tags := map[string]string{}
		for _, tag := range collect(t, g.ListTags(ctx, repo, "")) {
			tags[string(tag.ID)] = string(tag.Commit)
		}
		require.Equal(t, r.tags, tags)
		names := collect(t, g.ListBranches(ctx, repo, ""))
		require.Len(t, names, len(r.branches))
		for name, b := range r.branches {
			checkBranch(t, s, g, repo, r, name, b, old.staged[b.token])
		}
	}
}

func checkCommits(t fataler, s *sides, g *graveler.Graveler, repo graveler.RepositoryID, r *oldRepository) {
	t.Helper()
	ctx := context.Background()
	commits := collect(t, g.ListCommits(ctx, repo, ""))
	require.Len(t, commits, len(r.commits))
	for _, c := range commits {
		old := r.commits[string(c.ID)]
		require.NotNil(t, old)
		require.Equal(t, old.committer, c.Committer)
		require.Equal(t, old.message, c.Message)
		require.True(t, old.created.Equal(c.CreatedAt))
		require.Equal(t, len(old.metadata), len(c.Metadata))
		for k, v := range old.metadata {
			require.Equal(t, v, c.Metadata[k])
		}
		require.Equal(t, strings.Join(old.parents, " "), joined(c.Parents))
		require.Equal(t, r.generation(string(c.ID)), c.Generation)
		if old.tree != "" {
			require.Equal(t, old.tree, string(c.Tree))
		} else {
			require.Equal(t, s.trees.EmptyTree(), c.Tree)
		}
	}
}

func joined[T ~string](ids []T) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = string(id)
	}
	return strings.Join(parts, " ")
}

func idsOf(commits []graveler.Commit) []string {
	ids := make([]string, len(commits))
	for i, c := range commits {
		ids[i] = string(c.ID)
	}
	return ids
}

func checkBranch(t fataler, s *sides, g *graveler.Graveler, repo graveler.RepositoryID, r *oldRepository, name string, old oldBranch, staged map[string]oldEntry) {
	t.Helper()
	ctx, branch := context.Background(), graveler.BranchID(name)
	b, err := g.GetBranch(ctx, repo, branch)
	require.NoError(t, err)
	require.Equal(t, old.head, string(b.Head))

	log := idsOf(collect(t, g.Log(ctx, repo, old.head, graveler.LogOptions{})))
	slices.Sort(log)
	require.Equal(t, r.ancestors(old.head), log)
	require.Equal(t, r.mainLine(old.head), idsOf(collect(t, g.Log(ctx, repo, old.head, graveler.LogOptions{FirstParent: true}))))

	committed := s.tree(t, r.namespace, r.commits[old.head].tree)
	shown := maps.Clone(committed)
	for k, e := range staged {
		if e.identity == "" {
			delete(shown, k)
		} else {
			shown[k] = e
		}
	}
	listed := map[string]oldEntry{}
	for _, l := range collect(t, g.List(ctx, repo, name, graveler.ListOptions{})) {
		listed[string(l.Key)] = oldEntry{string(l.Value.Identity), string(l.Value.Data)}
	}
	require.Equal(t, shown, listed)
	require.Equal(t, changesBetween(committed, shown), changesOf(t, collect(t, g.DiffUncommitted(ctx, repo, branch, graveler.DiffOptions{}))))

	other := r.branches[r.defaultBranch].head
	changes := changesBetween(s.tree(t, r.namespace, r.commits[other].tree), committed)
	require.Equal(t, changes, changesOf(t, collect(t, g.Diff(ctx, repo, other, old.head, graveler.DiffOptions{}))))
}
