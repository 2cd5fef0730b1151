// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// idSet is a set of commits.
type idSet map[graveler.CommitID]bool

// dag is a random history, of which only the shape and the committers matter. Its commits are in order, parents first.
type dag struct {
	*fixture
	commits []graveler.Commit
	byID    map[graveler.CommitID]graveler.Commit
}

// drawDAG writes commits with up to three parents each, a few without any, of two committers.
func drawDAG(t *rapid.T) *dag {
	ctx := context.Background()
	g := &dag{fixture: newFixtureAt(t, "mem:"), byID: map[graveler.CommitID]graveler.Commit{}}
	repo, err := g.GetRepository(ctx, "lake")
	require.NoError(t, err)
	first, err := g.ResolveRef(ctx, "lake", "main")
	require.NoError(t, err)
	g.add(*first)
	for i := range rapid.IntRange(6, 16).Draw(t, "commits") {
		c := graveler.Commit{Version: graveler.CommitVersion, Tree: first.Tree, Nonce: fmt.Sprint(i), Generation: 1, LogTime: int64(i), Committer: rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "committer")}
		// Most parents are recent, so that histories are long.
		recent, all, least := rapid.IntRange(max(0, len(g.commits)-4), len(g.commits)-1), rapid.IntRange(0, len(g.commits)-1), 1
		if rapid.IntRange(0, 9).Draw(t, "root") == 9 {
			least = 0
		}
		for _, p := range rapid.SliceOfNDistinct(rapid.OneOf(recent, recent, all), least, min(3, len(g.commits)), rapid.ID[int]).Draw(t, "parents") {
			c.Parents = append(c.Parents, g.commits[p].ID)
			c.Generation = max(c.Generation, g.commits[p].Generation+1)
		}
		c.ID = c.ComputeID()
		require.NoError(t, g.config.Refs.PutCommit(ctx, &repo, &c))
		g.add(c)
	}
	return g
}

func (g *dag) add(c graveler.Commit) {
	g.commits = append(g.commits, c)
	g.byID[c.ID] = c
}

func (g *dag) draw(t *rapid.T, label string) string {
	return string(rapid.SampledFrom(g.commits).Draw(t, label).ID)
}

// ancestors returns what a commit reaches by the parents that follow names, itself included.
func (g *dag) ancestors(id graveler.CommitID, follow func(graveler.Commit) []graveler.CommitID) idSet {
	all := idSet{id: true}
	for _, p := range follow(g.byID[id]) {
		maps.Copy(all, g.ancestors(p, follow))
	}
	return all
}

func allParents(c graveler.Commit) []graveler.CommitID { return c.Parents }

func firstParent(c graveler.Commit) []graveler.CommitID { return c.Parents[:min(1, len(c.Parents))] }

func TestLogsOfPartsOfAHistoryFollowSetArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawDAG(t)
		ctx := context.Background()
		ref := string(g.commits[len(g.commits)-rapid.IntRange(1, 3).Draw(t, "ref")].ID)
		o := graveler.LogOptions{FirstParent: rapid.Bool().Draw(t, "first parent"), Committer: rapid.SampledFrom([]string{"", "bob"}).Draw(t, "by")}
		follow := allParents
		if o.FirstParent {
			follow = firstParent
		}
		want := g.ancestors(graveler.CommitID(ref), follow)
		for range rapid.IntRange(0, 2).Draw(t, "nots") {
			not := g.draw(t, "not")
			o.Not = append(o.Not, not)
			out := g.ancestors(graveler.CommitID(not), allParents)
			maps.DeleteFunc(want, func(id graveler.CommitID, _ bool) bool { return out[id] })
		}
		maps.DeleteFunc(want, func(id graveler.CommitID, _ bool) bool {
			return o.Committer != "" && g.byID[id].Committer != o.Committer
		})

		var log []graveler.CommitID
		shown := idSet{}
		for _, c := range collect(t, g.Log(ctx, "lake", ref, o)) {
			for id := range shown {
				require.False(t, g.ancestors(c.ID, allParents)[id], "a commit after its parents")
			}
			require.False(t, shown[c.ID], "twice")
			shown[c.ID] = true
			log = append(log, c.ID)
		}
		require.Equal(t, want, shown)

		var nodes []graveler.CommitID
		for _, n := range collect(t, g.LogGraph(ctx, "lake", ref, o)) {
			nodes = append(nodes, n.Commit.ID)
			require.ElementsMatch(t, slices.Collect(maps.Keys(g.follows(n.Commit, shown, follow))), n.Follows)
		}
		require.Equal(t, log, nodes)

		if len(log) > 0 { // page by page
			at := rapid.IntRange(0, len(log)-1).Draw(t, "at")
			o.After = log[at]
			var rest []graveler.CommitID
			for _, c := range collect(t, g.Log(ctx, "lake", ref, o)) {
				rest = append(rest, c.ID)
			}
			require.Equal(t, log[at+1:], append([]graveler.CommitID{}, rest...))
		}
	})
}

// follows gives the parents that are shown, and the shown ancestors that no other shown ancestor reaches.
func (g *dag) follows(c graveler.Commit, shown idSet, follow func(graveler.Commit) []graveler.CommitID) idSet {
	above := g.ancestors(c.ID, follow)
	delete(above, c.ID)
	maps.DeleteFunc(above, func(id graveler.CommitID, _ bool) bool { return !shown[id] })
	nearest := maps.Clone(above)
	for id := range above {
		for other := range above {
			if other != id && g.ancestors(other, follow)[id] {
				delete(nearest, id)
			}
		}
	}
	for _, p := range follow(c) {
		if shown[p] {
			nearest[p] = true
		}
	}
	return nearest
}

func TestWhatContainsACommitIsWhatHasItAmongItsAncestors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawDAG(t)
		ctx := context.Background()
		branches, tags := map[graveler.BranchID]graveler.CommitID{"main": g.commits[0].ID}, map[graveler.TagID]graveler.CommitID{}
		for i := range rapid.IntRange(0, 6).Draw(t, "refs") {
			at := g.draw(t, "head")
			branch, tag := graveler.BranchID(fmt.Sprint("b", i)), graveler.TagID(fmt.Sprint("t", i))
			_, err := g.CreateBranch(ctx, "lake", branch, at)
			require.NoError(t, err)
			_, err = g.CreateTag(ctx, "lake", tag, at)
			require.NoError(t, err)
			branches[branch], tags[tag] = graveler.CommitID(at), graveler.CommitID(at)
		}
		commit := g.draw(t, "commit")
		has := func(head graveler.CommitID) bool {
			return g.ancestors(head, allParents)[graveler.CommitID(commit)]
		}
		for _, c := range g.commits {
			contains, err := g.Contains(ctx, "lake", string(c.ID), commit)
			require.NoError(t, err)
			require.Equal(t, has(c.ID), contains)
		}
		afterBranch := rapid.SampledFrom([]graveler.BranchID{"", "b2", "b3x", "z"}).Draw(t, "after")
		var containing, at []graveler.BranchID
		for _, id := range slices.Sorted(maps.Keys(branches)) {
			if id > afterBranch && has(branches[id]) {
				containing = append(containing, id)
			}
			if id > afterBranch && branches[id] == graveler.CommitID(commit) {
				at = append(at, id)
			}
		}
		require.Equal(t, containing, branchNames(collect(t, g.BranchesContaining(ctx, "lake", commit, afterBranch))))
		require.Equal(t, at, branchNames(collect(t, g.BranchesAt(ctx, "lake", commit, afterBranch))))

		afterTag := rapid.SampledFrom([]graveler.TagID{"", "t1", "t1x", "z"}).Draw(t, "after tag")
		var wanted, found []graveler.TagID
		for _, id := range slices.Sorted(maps.Keys(tags)) {
			if id > afterTag && has(tags[id]) {
				wanted = append(wanted, id)
			}
		}
		for _, tag := range collect(t, g.TagsContaining(ctx, "lake", commit, afterTag)) {
			found = append(found, tag.ID)
		}
		require.Equal(t, wanted, found)
	})
}

func branchNames(branches []graveler.Branch) (names []graveler.BranchID) {
	for _, b := range branches {
		names = append(names, b.ID)
	}
	return names
}

func TestCommitsAreListedByID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawDAG(t)
		ctx := context.Background()
		tips := maps.Clone(g.byID)
		for _, c := range g.commits {
			for _, p := range firstParent(c) {
				delete(tips, p)
			}
		}
		from := graveler.CommitID(g.draw(t, "after")[:rapid.SampledFrom([]int{0, 1, 12, 64}).Draw(t, "digits")])
		for _, list := range []struct {
			all      map[graveler.CommitID]graveler.Commit
			commits  []graveler.Commit
			pageWise []graveler.Commit
		}{
			{all: g.byID, commits: collect(t, g.ListCommits(ctx, "lake", from)), pageWise: paged(t, func(after graveler.CommitID) ([]graveler.Commit, bool, error) {
				return graveler.Page(g.ListCommits(ctx, "lake", after), 2)
			})},
			{all: tips, commits: collect(t, g.ListTips(ctx, "lake", from)), pageWise: paged(t, func(after graveler.CommitID) ([]graveler.Commit, bool, error) {
				return graveler.Page(g.ListTips(ctx, "lake", after), 2)
			})},
		} {
			var all, rest []graveler.Commit
			for _, id := range slices.Sorted(maps.Keys(list.all)) {
				all = append(all, list.all[id])
				if id > from && (from == "" || id[:len(from)] != from) {
					rest = append(rest, list.all[id])
				}
			}
			require.Equal(t, idsOf(rest), idsOf(list.commits))
			require.Equal(t, idsOf(all), idsOf(list.pageWise))
		}
	})
}

// paged collects all pages.
func paged(t fataler, page func(after graveler.CommitID) ([]graveler.Commit, bool, error)) (all []graveler.Commit) {
	after := graveler.CommitID("")
	for more := true; more; {
		var commits []graveler.Commit
		var err error
		commits, more, err = page(after)
		require.NoError(t, err)
		for _, c := range commits {
			all, after = append(all, c), c.ID
		}
	}
	return all
}

func idsOf(commits []graveler.Commit) (ids []graveler.CommitID) {
	for _, c := range commits {
		ids = append(ids, c.ID)
	}
	return ids
}

// chain makes so many empty commits on a branch.
func (f *fixture) chain(t *testing.T, branch graveler.BranchID, n int) {
	t.Helper()
	for i := range n {
		_, err := f.Commit(context.Background(), "lake", branch, graveler.CommitParams{Message: fmt.Sprint(i), AllowEmpty: true})
		require.NoError(t, err)
	}
}

// Two branches of fifty commits above a history of three hundred: nothing below the fork is read.
func TestAncestryIsReadNoFurtherThanNeeded(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.chain(t, "main", 300)
	_, err := f.CreateTag(ctx, "lake", "fork", "main")
	require.NoError(t, err)
	for _, b := range []graveler.BranchID{"one", "two"} {
		_, err := f.CreateBranch(ctx, "lake", b, "fork")
		require.NoError(t, err)
		f.chain(t, b, 50)
	}
	reads := func(do func(g *graveler.Graveler)) int {
		cold := f.another(t)
		f.kv.Reset()
		do(cold)
		return f.kv.Counts()["Get"]
	}
	require.Less(t, reads(func(g *graveler.Graveler) {
		require.Len(t, collect(t, g.Log(ctx, "lake", "one", graveler.LogOptions{Not: []string{"two"}})), 50)
	}), 120)
	require.Less(t, reads(func(g *graveler.Graveler) {
		require.Equal(t, []graveler.BranchID{"one", "two"}, branchNames(collect(t, g.BranchesContaining(ctx, "lake", "fork~0", "main"))))
	}), 120)
	require.Less(t, reads(func(g *graveler.Graveler) {
		require.Equal(t, []graveler.BranchID{"two"}, branchNames(collect(t, g.BranchesContaining(ctx, "lake", "two~10", ""))))
	}), 50)
	require.Less(t, reads(func(g *graveler.Graveler) {
		contains, err := g.Contains(ctx, "lake", "one", "two")
		require.NoError(t, err)
		require.False(t, contains)
	}), 10)
	require.Less(t, reads(func(g *graveler.Graveler) { // all are shown: nothing is looked for
		page, _, err := graveler.Page(g.LogGraph(ctx, "lake", "one", graveler.LogOptions{}), 10)
		require.NoError(t, err)
		require.Len(t, page, 10)
	}), 20)
}

func TestListingsByAncestrySayWhatIsWrong(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	none := graveler.CommitID(fmt.Sprintf("%064d", 0))
	for name, c := range map[string]struct{ err, expected error }{
		"at":                     {firstError(f.BranchesAt(ctx, "lake", "none", "")), graveler.ErrRefNotFound},
		"at, bad ref":            {firstError(f.BranchesAt(ctx, "lake", "", "")), graveler.ErrInvalidRef},
		"at, no repository":      {firstError(f.BranchesAt(ctx, "none", "main", "")), graveler.ErrRepositoryNotFound},
		"at, bad repository":     {firstError(f.BranchesAt(ctx, "no/ne", "main", "")), graveler.ErrInvalidName},
		"branches":               {firstError(f.BranchesContaining(ctx, "lake", "none", "")), graveler.ErrRefNotFound},
		"tags":                   {firstError(f.TagsContaining(ctx, "lake", "a b", "")), graveler.ErrInvalidRef},
		"not":                    {firstError(f.Log(ctx, "lake", "main", graveler.LogOptions{Not: []string{"none"}})), graveler.ErrRefNotFound},
		"graph, not":             {firstError(f.LogGraph(ctx, "lake", "main", graveler.LogOptions{Not: []string{"~"}})), graveler.ErrInvalidRef},
		"log after":              {firstError(f.Log(ctx, "lake", "main", graveler.LogOptions{After: none})), graveler.ErrCommitNotFound},
		"commits":                {firstError(f.ListCommits(ctx, "none", "")), graveler.ErrRepositoryNotFound},
		"commits after":          {firstError(f.ListCommits(ctx, "lake", "main")), graveler.ErrInvalidName},
		"tips after":             {firstError(f.ListTips(ctx, "lake", none+"0")), graveler.ErrInvalidName},
		"staged, no branch":      {firstError(f.ListStaged(ctx, "lake", "none", "x", graveler.DiffOptions{})), graveler.ErrBranchNotFound},
		"staged, token unlisted": {firstError(f.ListStaged(ctx, "lake", "main", "x", graveler.DiffOptions{})), graveler.ErrNotFound},
	} {
		require.ErrorIs(t, c.err, c.expected, name)
	}
	_, err := f.Contains(ctx, "lake", "main", "none")
	require.ErrorIs(t, err, graveler.ErrRefNotFound)
}

func TestStagedEntriesOfAToken(t *testing.T) {
	f := newFixture(t, dropAtOnce)
	ctx := context.Background()
	f.set(t, "a", "0")
	f.commit(t, "base")
	f.set(t, "a", "1")
	f.set(t, "b/x", "1")
	require.NoError(t, f.DeletePrefix(ctx, "lake", "main", key("zzz"))) // seals
	require.NoError(t, f.Delete(ctx, "lake", "main", key("a")))
	b, err := f.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	sealed := b.Items[len(b.Items)-1].Token
	staged := func(token graveler.StagingToken, o graveler.DiffOptions) []string {
		var lines []string
		for _, e := range collect(t, f.ListStaged(ctx, "lake", "main", token, o)) {
			line := string(e.Key)
			if e.Value != nil {
				line += "=" + string(e.Value.Data)
			}
			lines = append(lines, line)
		}
		return lines
	}
	require.Equal(t, []string{"a"}, staged(b.Token, graveler.DiffOptions{}))
	require.Equal(t, []string{"a=1", "b/x=1"}, staged(sealed, graveler.DiffOptions{}))
	require.Equal(t, []string{"b/x=1"}, staged(sealed, graveler.DiffOptions{After: key("a")}))
	require.Equal(t, []string{"b/x=1"}, staged(sealed, graveler.DiffOptions{Prefix: key("b/")}))

	// A token that is done with and dropped while it is read is no end of the list.
	var last error
	for _, err := range f.ListStaged(ctx, "lake", "main", sealed, graveler.DiffOptions{}) {
		if last = err; err == nil && len(b.Items) > 0 {
			b.Items = nil
			f.commit(t, "meanwhile")
			_, err := f.Maintain(ctx)
			require.NoError(t, err)
		}
	}
	require.ErrorIs(t, last, graveler.ErrNotFound)
}
