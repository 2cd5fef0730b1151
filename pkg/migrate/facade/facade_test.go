// SPDX-License-Identifier: Apache-2.0

package facade_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/graveler/stest"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate/facade"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

func backend(store kv.Store) facade.Backend {
	return facade.Backend{Refs: ref.New(store), Staging: staging.New(store)}
}

func open(t *testing.T, c facade.Config, trees graveler.Trees) *graveler.Graveler {
	t.Helper()
	b, err := facade.New(c)
	require.NoError(t, err)
	g, err := graveler.New(graveler.Config{Refs: b.Refs, Staging: b.Staging, Trees: trees})
	require.NoError(t, err)
	return g
}

// use does a bit of everything, and returns what the repository shows.
func use(t *testing.T, g *graveler.Graveler, repo graveler.RepositoryID) (shown []string) {
	t.Helper()
	ctx := t.Context()
	set := func(branch graveler.BranchID, key, text string) {
		require.NoError(t, g.Set(ctx, repo, branch, graveler.Key(key), graveler.Value{Identity: []byte(text)}))
	}
	commit := func(branch graveler.BranchID) {
		_, err := g.Commit(ctx, repo, branch, graveler.CommitParams{Message: string(branch)})
		require.NoError(t, err)
	}
	_, err := g.CreateRepository(ctx, repo, graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	set("main", "a", "1")
	commit("main")
	_, err = g.CreateBranch(ctx, repo, "dev", "main")
	require.NoError(t, err)
	_, err = g.CreateBranch(ctx, repo, "gone", "main")
	require.NoError(t, err)
	set("dev", "b", "2")
	commit("dev")
	set("main", "c", "3")
	commit("main")
	_, err = g.CreateTag(ctx, repo, "v1", "dev")
	require.NoError(t, err)
	_, err = g.Merge(ctx, repo, "dev", "main", graveler.MergeParams{})
	require.NoError(t, err)
	set("main", "d", "4")
	require.NoError(t, g.DeletePrefix(ctx, repo, "main", graveler.Key("a")))
	require.NoError(t, g.DeleteBranch(ctx, repo, "gone", true))
	require.NoError(t, g.UpdateRepositoryMetadata(ctx, repo, func(map[string]string) (map[string]string, error) { return map[string]string{"x": "y"}, nil }))
	_, err = g.Maintain(ctx)
	require.NoError(t, err)
	for _, at := range []string{"main", "main@", "dev", "v1", "main~1"} {
		for l, err := range g.List(ctx, repo, at, graveler.ListOptions{}) {
			require.NoError(t, err)
			shown = append(shown, fmt.Sprintf("%s %s=%s", at, l.Key, l.Value.Identity))
		}
	}
	moves := 0
	for _, err := range g.BranchLog(ctx, repo, "main", 0) {
		require.NoError(t, err)
		moves++
	}
	_, err = g.RestoreBranch(ctx, repo, "gone", "")
	require.NoError(t, err)
	return append(shown, fmt.Sprint(moves, " moves"))
}

func count[T any](t *testing.T, items func(func(T, error) bool)) (n int) {
	t.Helper()
	for _, err := range items {
		require.NoError(t, err)
		n++
	}
	return n
}

// routings are all of them.
func routings() (all []facade.Routes) {
	for i := range 1 << len(facade.Kinds()) {
		routes := facade.Routes{}
		for _, k := range facade.Kinds() {
			routes[k] = i&(1<<k) != 0
		}
		all = append(all, routes)
	}
	return all
}

// sqlBackend is one in the tables of a new database.
func sqlBackend(t testing.TB) facade.Backend {
	t.Helper()
	return openSQL(t, testpg.Start(t).NewDatabase(t), kv.OpenOptions{})
}

func openSQL(t testing.TB, database string, o kv.OpenOptions) facade.Backend {
	t.Helper()
	_, rest, _ := strings.Cut(database, ":")
	s, err := sqlstore.Open(t.Context(), sqlstore.Scheme+":"+rest, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return facade.Backend{Refs: s, Staging: s}
}

// Whichever side each kind is on, the store behaves the same, and each side has its kinds and no others. Only repositories are on
// both, where kinds are apart.
func TestEveryRoutingBehavesTheSame(t *testing.T) {
	for name, newFirst := range map[string]func(testing.TB) facade.Backend{
		"key/value": func(testing.TB) facade.Backend { return backend(mem.New()) },
		"sql":       sqlBackend,
	} {
		t.Run(name, func(t *testing.T) {
			want := use(t, open(t, facade.Config{First: backend(mem.New()), Second: backend(mem.New())}, memtrees.New()), "lake")
			for _, routes := range routings() {
				t.Run(fmt.Sprint(routes), func(t *testing.T) {
					testRouting(t, newFirst(t), backend(mem.New()), routes, want)
				})
			}
		})
	}
}

func testRouting(t *testing.T, first, second facade.Backend, routes facade.Routes, want []string) {
	ctx := t.Context()
	g := open(t, facade.Config{First: first, Second: second, Routes: routes}, memtrees.New())
	require.Equal(t, want, use(t, g, "lake"))
	repo, err := pick(first, second, routes[facade.Repositories]).Refs.GetRepository(ctx, "lake")
	require.NoError(t, err)
	apart := false
	for _, k := range facade.Kinds() {
		apart = apart || routes[k] != routes[facade.Repositories]
	}
	for _, k := range facade.Kinds() {
		has, hasNot := pick(first, second, routes[k]).Refs, pick(second, first, routes[k]).Refs
		for refs, some := range map[graveler.Refs]bool{has: true, hasNot: false} {
			n := 0
			switch k {
			case facade.Repositories:
				require.Equal(t, some || apart, count(t, refs.ScanRepositories(ctx, "")) > 0)
				n = count(t, refs.ScanSettings(ctx, repo))
			case facade.Branches:
				n = count(t, refs.ScanBranches(ctx, repo, "")) + count(t, refs.ScanLogNames(ctx, repo, "")) + count(t, refs.ScanCleanups(ctx))
			case facade.Commits:
				n = count(t, refs.ScanCommits(ctx, repo, ""))
			case facade.Tags:
				n = count(t, refs.ScanTags(ctx, repo, ""))
			}
			require.Equal(t, some, n > 0, "%s", k)
		}
	}
	require.NoError(t, g.DeleteRepository(ctx, "lake"))
	for _, side := range []facade.Backend{first, second} {
		require.Zero(t, count(t, side.Refs.ScanBranches(ctx, repo, ""))+count(t, side.Refs.ScanCommits(ctx, repo, ""))+count(t, side.Refs.ScanTags(ctx, repo, "")), "nothing of a deleted repository stays on either side")
		require.Zero(t, count(t, side.Refs.ScanRepositories(ctx, "")))
	}
	require.Equal(t, want, use(t, g, "lake"), "the name is free again")
}

// A facade is a back end like any other, with shadow reads too. Commits are where branches are: elsewhere, one may stay of a
// branch record that was refused.
func TestAFacadeKeepsWhatAnyStoreKeeps(t *testing.T) {
	onKV := []facade.Kind{facade.Repositories, facade.Tags}
	if os.Getenv("MORAINE_NIGHTLY") != "" {
		onKV = append(onKV, facade.Branches) // with its commits
	}
	for _, k := range onKV {
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			c := facade.Config{Routes: facade.Routes{k: true, facade.Commits: k == facade.Branches}, Shadow: facade.Kinds(), Report: func(context.Context, facade.Difference) {}}
			newFacade := func(t *testing.T) facade.Backend {
				c := c
				c.First, c.Second = sqlBackend(t), backend(mem.New())
				b, err := facade.New(c)
				require.NoError(t, err)
				return b
			}
			stest.Refs(t, func(t *testing.T) graveler.Refs { return newFacade(t).Refs })
			stest.Staging(t, func(t *testing.T) (graveler.Refs, graveler.Staging) {
				b := newFacade(t)
				return b.Refs, b.Staging
			})
		})
	}
}

func pick(first, second facade.Backend, which bool) facade.Backend {
	if which {
		return second
	}
	return first
}

func TestAFacadeThatCannotWorkIsRefused(t *testing.T) {
	side := backend(mem.New())
	for _, c := range []facade.Config{{}, {First: side}, {First: side, Second: side, Shadow: facade.Kinds()}} {
		_, err := facade.New(c)
		require.Error(t, err)
	}
}
