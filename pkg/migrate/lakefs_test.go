// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

func TestADeploymentOfLakeFSMovesOver(t *testing.T) {
	for name, tables := range map[string]bool{"tables": true, "key/value": false} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t, lakegen.Params{Seed: 5, Repositories: 3, Commits: 30, Tables: tables})
			plan, err := l.migration(t).Plan(t.Context())
			require.NoError(t, err)
			require.NoError(t, plan.Err())
			l.run(t)
			v := l.verify(t)
			require.NoError(t, v.Err())
			checkLake(t, l)
			checkSound(t, l.sides)
		})
	}
}

// checkLake compares every read of the target with what the deployment is.
func checkLake(t fataler, l *lake) {
	t.Helper()
	ctx, g := context.Background(), l.migration(t).Graveler
	var names []string
	for _, r := range l.deployment.Repositories {
		if r.InDeletion {
			continue
		}
		names = append(names, r.ID)
		checkLakeRepository(t, l, g, r)
	}
	var there []string
	for _, r := range collect(t, g.ListRepositories(ctx, "")) {
		there = append(there, string(r.ID))
	}
	require.Equal(t, names, there)
}

func checkLakeRepository(t fataler, l *lake, g *graveler.Graveler, r *lakegen.Repository) {
	t.Helper()
	ctx, repo := context.Background(), graveler.RepositoryID(r.ID)
	stored, err := g.GetRepository(ctx, repo)
	require.NoError(t, err)
	require.Equal(t, r.DefaultBranch, string(stored.DefaultBranch))
	require.True(t, r.CreatedAt.Equal(stored.CreatedAt))
	require.Equal(t, r.ReadOnly, stored.ReadOnly)
	metadata, err := g.RepositoryMetadata(ctx, repo)
	require.NoError(t, err)
	require.Len(t, metadata, len(r.Metadata))
	for k, v := range r.Metadata {
		require.Equal(t, v, metadata[k])
	}
	rules, err := g.BranchProtection(ctx, repo)
	require.NoError(t, err)
	require.Len(t, rules, len(r.Protection))
	for i, rule := range r.Protection {
		require.Equal(t, rule.Pattern, rules[i].Pattern)
		require.Equal(t, rule.StagingWrite, rules[i].Forbid&graveler.ActionStage != 0)
		require.Equal(t, rule.Commit, rules[i].Forbid&graveler.ActionCommit != 0)
	}
	if len(r.Commits) == 0 {
		return // it was given a first commit
	}
	tags := map[string]string{}
	for _, tag := range collect(t, g.ListTags(ctx, repo, "")) {
		tags[string(tag.ID)] = string(tag.Commit)
	}
	require.Len(t, tags, len(r.Tags))
	for _, tag := range r.Tags {
		require.Equal(t, tag.Commit, tags[tag.ID])
	}
	commits := collect(t, g.ListCommits(ctx, repo, ""))
	require.Len(t, commits, len(r.Commits))
	for _, c := range commits {
		checkLakeCommit(t, g, r, c)
	}
	for i, c := range r.Commits { // pairs that have nothing to do with each other, and neighbours
		other := r.Commits[(i*7+3)%len(r.Commits)]
		changes := changesOf(t, collect(t, g.Diff(ctx, repo, other.ID, c.ID, graveler.DiffOptions{})))
		require.Equal(t, recordChanges(other.Tree, c.Tree), changes)
	}
	for _, b := range r.Branches {
		checkLakeBranch(t, g, r, b)
	}
}

// object is what an entry says, as text.
func object(t fataler, r lakefs.Record, namespace string) string {
	t.Helper()
	v, err := lakefs.Value(r, namespace)
	require.NoError(t, err)
	return fmt.Sprintf("%q %x %x", r.Key, v.Identity, v.Data)
}

func checkLakeCommit(t fataler, g *graveler.Graveler, r *lakegen.Repository, c graveler.Commit) {
	t.Helper()
	old := r.Commit(string(c.ID))
	require.NotNil(t, old)
	require.Equal(t, old.Committer, c.Committer)
	require.Equal(t, old.Message, c.Message)
	require.True(t, old.CreatedAt.Equal(c.CreatedAt))
	require.Len(t, c.Metadata, len(old.Metadata))
	for k, v := range old.Metadata {
		require.Equal(t, v, c.Metadata[k])
	}
	require.Equal(t, strings.Join(old.MainFirst(), " "), joined(c.Parents))
	require.EqualValues(t, old.Generation, c.Generation)
	var want, got []string
	for _, record := range old.Tree {
		want = append(want, object(t, record, r.Namespace))
	}
	for _, e := range collect(t, g.List(context.Background(), graveler.RepositoryID(r.ID), old.ID, graveler.ListOptions{})) {
		got = append(got, fmt.Sprintf("%q %x %x", e.Key, e.Value.Identity, e.Value.Data))
	}
	require.Equal(t, want, got)
}

func recordChanges(left, right lakegen.Tree) []string {
	return changesBetween(identities(left), identities(right))
}

func identities(tree lakegen.Tree) map[string]oldEntry {
	entries := map[string]oldEntry{}
	for _, r := range tree {
		entries[string(r.Key)] = oldEntry{identity: string(r.Identity)}
	}
	return entries
}

func checkLakeBranch(t fataler, g *graveler.Graveler, r *lakegen.Repository, old *lakegen.Branch) {
	t.Helper()
	ctx, repo, name := context.Background(), graveler.RepositoryID(r.ID), graveler.BranchID(old.ID)
	b, err := g.GetBranch(ctx, repo, name)
	require.NoError(t, err)
	require.Equal(t, old.Commit, string(b.Head))
	require.Equal(t, old.Hidden, b.Hidden)
	require.Equal(t, r.ReadOnly, b.ReadOnly)

	ancestors := map[string]bool{}
	for queue := []string{old.Commit}; len(queue) > 0; queue = queue[1:] {
		if !ancestors[queue[0]] {
			ancestors[queue[0]] = true
			queue = append(queue, r.Commit(queue[0]).Parents...)
		}
	}
	log := collect(t, g.Log(ctx, repo, old.Commit, graveler.LogOptions{}))
	require.Len(t, log, len(ancestors))
	line := []string{}
	for at := r.Commit(old.Commit); ; at = r.Commit(at.MainFirst()[0]) {
		line = append(line, at.ID)
		if len(at.Parents) == 0 {
			break
		}
	}
	require.Equal(t, line, idsOf(collect(t, g.Log(ctx, repo, old.Commit, graveler.LogOptions{FirstParent: true}))))

	committed := identities(r.Commit(old.Commit).Tree)
	shown := identities(r.Commit(old.Commit).Tree)
	for _, s := range old.Newest() {
		if s.Tombstone {
			delete(shown, string(s.Key))
		} else {
			shown[string(s.Key)] = oldEntry{identity: string(s.Identity)}
		}
	}
	listed := map[string]oldEntry{}
	for _, e := range collect(t, g.List(ctx, repo, old.ID, graveler.ListOptions{})) {
		listed[string(e.Key)] = oldEntry{identity: string(e.Value.Identity)}
	}
	require.Equal(t, shown, listed)
	require.Equal(t, changesBetween(committed, shown), changesOf(t, collect(t, g.DiffUncommitted(ctx, repo, name, graveler.DiffOptions{}))))
	for _, s := range old.Newest() {
		if s.Tombstone || bytes.Equal(s.Identity, []byte(committed[string(s.Key)].identity)) {
			continue
		}
		e, err := g.Get(ctx, repo, old.ID, s.Key)
		require.NoError(t, err)
		require.Equal(t, object(t, s.Record, r.Namespace), fmt.Sprintf("%q %x %x", s.Key, e.Identity, e.Data))
	}
}

// Random deployments, a run that is cut off again and again at random points, and every read gives what the deployment is.
func TestWhateverHappensToARunOfLakeFSTheResultIsTheSame(t *testing.T) {
	l := emptyLake(t)
	rapid.Check(t, func(t *rapid.T) {
		p := lakegen.Params{
			Seed: rapid.Uint64().Draw(t, "seed"), Repositories: rapid.IntRange(1, 3).Draw(t, "repositories"), Commits: rapid.IntRange(0, 25).Draw(t, "commits"), Tables: rapid.Bool().Draw(t, "tables"),
		}
		l.fillLake(t, lakegen.Random(p), p.Tables)
		for range rapid.IntRange(0, 3).Draw(t, "cuts") {
			cutOff(t, l, l.kv)
		}
		l.run(t)
		require.NoError(t, l.verify(t).Err())
		checkLake(t, l)
		checkSound(t, l.sides)
	})
}

func TestEveryRangeIsReadOnce(t *testing.T) {
	l := newLake(t, lakegen.Params{Seed: 9, Repositories: 1, Commits: 60})
	l.run(t)
	ran := maps.Clone(l.reads.times)
	clear(l.reads.times)
	require.NoError(t, l.verify(t).Err())
	for _, r := range l.deployment.Repositories {
		if r.InDeletion {
			continue
		}
		storage, err := local.OpenDir(filepath.Dir(l.file(r, "")), block.OpenOptions{})
		if len(r.Files) == 0 {
			continue
		}
		require.NoError(t, err)
		files := lakefs.NewFiles(storage, r.Namespace)
		for _, c := range r.Commits {
			ranges, err := files.Metarange(t.Context(), c.Metarange)
			require.NoError(t, err)
			for _, part := range ranges {
				require.Equal(t, 1, ran[l.file(r, part.ID)], "by the run")
				require.Equal(t, 1, l.reads.times[l.file(r, part.ID)], "by the verification")
			}
			require.LessOrEqual(t, ran[l.file(r, c.Metarange)], 2, "by the plan, and to convert it")
		}
		require.NoError(t, files.Close())
	}
}
