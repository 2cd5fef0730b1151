// SPDX-License-Identifier: Apache-2.0

package facade_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate/facade"
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

// Whichever side each kind is on, the store behaves the same, and each side has its kinds and no others.
func TestEveryRoutingBehavesTheSame(t *testing.T) {
	var want []string
	for i := range 1 << len(facade.Kinds()) {
		routes := facade.Routes{}
		for _, k := range facade.Kinds() {
			routes[k] = i&(1<<k) != 0
		}
		t.Run(fmt.Sprint(routes), func(t *testing.T) {
			ctx := t.Context()
			first, second := backend(mem.New()), backend(mem.New())
			g := open(t, facade.Config{First: first, Second: second, Routes: routes}, memtrees.New())
			got := use(t, g, "lake")
			if want == nil {
				want = got
			}
			require.Equal(t, want, got)
			repo, err := pick(first, second, routes[facade.Repositories]).Refs.GetRepository(ctx, "lake")
			require.NoError(t, err)
			for _, k := range facade.Kinds() {
				has, hasNot := pick(first, second, routes[k]).Refs, pick(second, first, routes[k]).Refs
				for refs, some := range map[graveler.Refs]bool{has: true, hasNot: false} {
					n := 0
					switch k {
					case facade.Repositories:
						n = count(t, refs.ScanRepositories(ctx, "")) + count(t, refs.ScanSettings(ctx, repo))
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
			}
		})
	}
}

func pick(first, second facade.Backend, which bool) facade.Backend {
	if which {
		return second
	}
	return first
}

// reports collects differences.
type reports struct {
	mu  sync.Mutex
	all []facade.Difference
}

func (r *reports) add(_ context.Context, d facade.Difference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, d)
}

func TestShadowReadsReportDifferencesAndChangeNothing(t *testing.T) {
	ctx := t.Context()
	store, trees := mem.New(), memtrees.New()
	first := backend(store)
	plain := open(t, facade.Config{First: first, Second: first}, trees)
	use(t, plain, "lake")
	repo, err := first.Refs.GetRepository(ctx, "lake")
	require.NoError(t, err)

	// The same store on both sides: no difference, whatever is read.
	var seen reports
	c := facade.Config{First: first, Second: first, Shadow: facade.Kinds(), Report: seen.add}
	look := func(g *graveler.Graveler) {
		for _, at := range []string{"main", "dev", "v1"} {
			require.Positive(t, count(t, g.List(ctx, "lake", at, graveler.ListOptions{})))
		}
		require.Positive(t, count(t, g.ListTags(ctx, "lake", "")))
		require.Positive(t, count(t, g.ListBranches(ctx, "lake", "")))
		require.Positive(t, count(t, g.ListRepositories(ctx, "")))
		require.Positive(t, count(t, g.ListCommits(ctx, "lake", "")))
		require.Positive(t, count(t, g.BranchLog(ctx, "lake", "main", 0)))
		_, err := g.Get(ctx, "lake", "main", graveler.Key("d"))
		require.NoError(t, err)
		_, err = g.Get(ctx, "lake", "main", graveler.Key("nothing"))
		require.ErrorIs(t, err, graveler.ErrEntryNotFound)
	}
	look(open(t, c, trees))
	require.Empty(t, seen.all)

	// The other side has nothing: every kind is reported, and the caller does not notice.
	c.Second = backend(mem.New())
	look(open(t, c, trees))
	kinds := map[facade.Kind]bool{}
	for _, d := range seen.all {
		kinds[d.Kind] = true
		require.NotEmpty(t, d.Read)
		require.NotEqual(t, d.Answer, d.Shadow)
	}
	require.Len(t, kinds, len(facade.Kinds()))

	// One record differs.
	c.Second = first
	tag, err := first.Refs.GetTag(ctx, repo, "v1")
	require.NoError(t, err)
	c.Second.Refs = otherTag{first.Refs, tag}
	seen.all = nil
	look(open(t, c, trees))
	require.NotEmpty(t, seen.all)
	for _, d := range seen.all {
		require.Equal(t, facade.Tags, d.Kind)
	}
}

// otherTag has another commit for a tag.
type otherTag struct {
	graveler.Refs
	tag *graveler.Tag
}

func (o otherTag) GetTag(context.Context, *graveler.Repository, graveler.TagID) (*graveler.Tag, error) {
	return &graveler.Tag{ID: o.tag.ID, Commit: "0000"}, nil
}

func TestAFacadeThatCannotWorkIsRefused(t *testing.T) {
	side := backend(mem.New())
	for _, c := range []facade.Config{{}, {First: side}, {First: side, Second: side, Shadow: facade.Kinds()}} {
		_, err := facade.New(c)
		require.Error(t, err)
	}
}
