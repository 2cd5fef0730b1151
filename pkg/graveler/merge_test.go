// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// historyModel is a history in the plainest form: what each commit holds and which its parents are.
type historyModel struct {
	commits map[graveler.CommitID]graveler.Commit
	holds   map[graveler.CommitID]map[string]string
	heads   map[graveler.BranchID]graveler.CommitID
}

func (m *historyModel) add(branch graveler.BranchID, c graveler.Commit, holds map[string]string) {
	m.commits[c.ID], m.holds[c.ID], m.heads[branch] = c, holds, c.ID
}

// ancestors returns all commits that id reaches, itself included.
func (m *historyModel) ancestors(id graveler.CommitID) map[graveler.CommitID]bool {
	all := map[graveler.CommitID]bool{}
	for next := []graveler.CommitID{id}; len(next) > 0; {
		at := next[0]
		if next = next[1:]; !all[at] { // each once: criss-cross histories have more ways than commits
			all[at] = true
			next = append(next, m.commits[at].Parents...)
		}
	}
	return all
}

// base follows the definition: the common ancestors that no other one reaches, and of those the first by generation, time and ID.
func (m *historyModel) base(left, right graveler.CommitID) graveler.CommitID {
	common := m.ancestors(left)
	of := m.ancestors(right)
	maps.DeleteFunc(common, func(id graveler.CommitID, _ bool) bool { return !of[id] })
	var best []graveler.Commit
	for id := range common {
		reached := false
		for other := range common {
			reached = reached || other != id && m.ancestors(other)[id]
		}
		if !reached {
			best = append(best, m.commits[id])
		}
	}
	return slices.MinFunc(best, func(a, b graveler.Commit) int {
		return cmp.Or(cmp.Compare(b.Generation, a.Generation), cmp.Compare(b.LogTime, a.LogTime), cmp.Compare(a.ID, b.ID))
	}).ID
}

// merge follows the definition: for each key, what one side alone has changed, or both in the same way.
func (m *historyModel) merge(base, left, right map[string]string, strategy func(string) graveler.Strategy) (merged map[string]string, conflicts []string) {
	merged = map[string]string{}
	keys := maps.Clone(base)
	maps.Copy(keys, left)
	maps.Copy(keys, right)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		b, l, r := base[k], left[k], right[k] // "" is absent
		result := l
		switch {
		case l == b:
			result = r
		case r == b || l == r:
		case strategy(k) == graveler.SourceWins:
			result = r
		case strategy(k) == graveler.StrategyNone:
			conflicts = append(conflicts, k)
		}
		if result != "" {
			merged[k] = result
		}
	}
	return merged, conflicts
}

// Random histories of branches and merges, criss-cross ones too, with few texts under many keys, so that much is equal by chance.
func TestMergesFollowTheDefinition(t *testing.T) {
	merges := 0
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		f := newFixtureAt(t, "mem:")
		first, err := f.ResolveRef(ctx, "lake", "main")
		require.NoError(t, err)
		m := &historyModel{map[graveler.CommitID]graveler.Commit{}, map[graveler.CommitID]map[string]string{}, map[graveler.BranchID]graveler.CommitID{}}
		m.add("main", *first, map[string]string{})
		branches := []graveler.BranchID{"main", "one", "two"}
		for _, b := range branches[1:] {
			_, err := f.CreateBranch(ctx, "lake", b, "main")
			require.NoError(t, err)
			m.heads[b] = first.ID
		}
		branch := rapid.SampledFrom(branches)
		strategies := rapid.SampledFrom([]graveler.Strategy{graveler.StrategyNone, graveler.SourceWins, graveler.DestWins})

		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				b := branch.Draw(t, "branch")
				holds := maps.Clone(m.holds[m.heads[b]])
				for range rapid.IntRange(1, 3).Draw(t, "changes") {
					k := modelKeys.Draw(t, "key")
					if rapid.Bool().Draw(t, "delete") {
						require.NoError(t, f.Delete(ctx, "lake", b, key(k)))
						delete(holds, k)
					} else {
						text := modelTexts.Draw(t, "text")
						require.NoError(t, f.Set(ctx, "lake", b, key(k), value(text)))
						holds[k] = text
					}
				}
				res, err := f.Commit(ctx, "lake", b, graveler.CommitParams{AllowEmpty: true})
				require.NoError(t, err)
				m.add(b, res.Commit, holds)
			},
			"merge": func(t *rapid.T) {
				source, dest := branch.Draw(t, "source"), branch.Draw(t, "dest")
				p := graveler.MergeParams{Strategy: strategies.Draw(t, "strategy"), Squash: rapid.Bool().Draw(t, "squash"), FastForward: rapid.Bool().Draw(t, "ff")}
				if rapid.Bool().Draw(t, "per prefix") {
					p.StrategyFor = []graveler.PrefixStrategy{{Prefix: key("a"), Strategy: strategies.Draw(t, "for a")}, {Prefix: key("a/b"), Strategy: strategies.Draw(t, "for a/b")}}
				}
				merges++
				checkMerge(t, f, m, source, dest, p)
			},
		})
	})
	t.Logf("%d merges", merges)
}

func checkMerge(t *rapid.T, f *fixture, m *historyModel, source, dest graveler.BranchID, p graveler.MergeParams) {
	ctx := context.Background()
	left, right := m.heads[dest], m.heads[source]
	base := m.base(left, right)
	for _, sides := range [][2]graveler.BranchID{{source, dest}, {dest, source}} {
		found, err := f.MergeBase(ctx, "lake", string(sides[0]), string(sides[1]))
		require.NoError(t, err)
		require.Equal(t, base, found.ID)
	}
	merged, conflicts := m.merge(m.holds[base], m.holds[left], m.holds[right], func(k string) graveler.Strategy {
		switch {
		case len(p.StrategyFor) > 0 && strings.HasPrefix(k, "a/b"):
			return p.StrategyFor[1].Strategy
		case len(p.StrategyFor) > 0 && strings.HasPrefix(k, "a"):
			return p.StrategyFor[0].Strategy
		}
		return p.Strategy
	})
	var found []string
	for c, err := range f.MergeConflicts(ctx, "lake", string(source), dest, p) {
		require.NoError(t, err)
		found = append(found, string(c.Key))
		for text, v := range map[string]*graveler.Value{m.holds[base][string(c.Key)]: c.Base, m.holds[left][string(c.Key)]: c.Left, m.holds[right][string(c.Key)]: c.Right} {
			require.Equal(t, text == "", v == nil)
			if v != nil {
				require.Equal(t, text, string(v.Data))
			}
		}
	}
	require.Equal(t, conflicts, found)
	checkPreview(t, f, m, base, source, dest, p, merged, conflicts)

	c, err := f.Merge(ctx, "lake", string(source), dest, p)
	var conflict *graveler.ConflictError
	switch {
	case base == right:
		require.ErrorIs(t, err, graveler.ErrNoChanges)
		return
	case base == left && p.FastForward && !p.Squash:
		require.NoError(t, err)
		require.Equal(t, right, c.ID)
	case len(conflicts) > 0:
		require.True(t, errors.As(err, &conflict), "%v", err)
		require.EqualValues(t, len(conflicts), conflict.Count)
		require.Equal(t, listOf(m.holds[left], "", "", ""), show(t, f.Graveler, string(dest), graveler.ListOptions{}))
		return
	default:
		require.NoError(t, err)
		parents := []graveler.CommitID{left, right}
		if p.Squash {
			parents = parents[:1]
		}
		require.Equal(t, parents, c.Parents)
		require.Equal(t, c.ID, c.ComputeID())
	}
	m.add(dest, c, merged)
	require.Equal(t, listOf(merged, "", "", ""), show(t, f.Graveler, string(dest), graveler.ListOptions{}))
}

// checkPreview applies what a merge would change to what the destination holds, which must give what the merge makes of it.
func checkPreview(t *rapid.T, f *fixture, m *historyModel, base graveler.CommitID, source, dest graveler.BranchID, p graveler.MergeParams, merged map[string]string, conflicts []string) {
	ctx := context.Background()
	left, right := m.heads[dest], m.heads[source]
	preview, err := f.PreviewMerge(ctx, "lake", string(source), dest, p)
	require.NoError(t, err)
	require.Equal(t, []graveler.CommitID{base, left, right}, []graveler.CommitID{preview.Base, preview.Head, preview.Source})
	require.Equal(t, base == left && base != right && p.FastForward && !p.Squash, preview.FastForward)
	require.Equal(t, base == right, errors.Is(preview.Refusal, graveler.ErrNoChanges))
	require.Equal(t, base == right, preview.Refusal != nil)

	holds, last := maps.Clone(m.holds[left]), ""
	for d, err := range f.MergeChanges(ctx, "lake", string(source), dest, p) {
		if len(conflicts) > 0 {
			var conflict *graveler.ConflictError
			require.True(t, errors.As(err, &conflict), "%v", err)
			require.EqualValues(t, len(conflicts), conflict.Count)
			return
		}
		require.NoError(t, err)
		k := string(d.Key)
		require.Greater(t, k, last)
		require.False(t, d.Left.Same(d.Right))
		require.Equal(t, holds[k] == "", d.Left == nil)
		if d.Left != nil {
			require.Equal(t, holds[k], string(d.Left.Data))
		}
		last = k
		delete(holds, k)
		if d.Right != nil {
			holds[k] = string(d.Right.Data)
		}
	}
	require.Empty(t, conflicts)
	require.Equal(t, merged, holds)
}

// Two keys may hold equal content: what counts is key and identity.
func TestEqualContentAtTwoKeysIsNotConfused(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "k02", "v0")
	f.commit(t, "base")
	_, err := f.CreateBranch(ctx, "lake", "source", "main")
	require.NoError(t, err)
	for k, text := range map[string]string{"k00": "v2", "k01": "v0"} {
		require.NoError(t, f.Set(ctx, "lake", "source", key(k), value(text)))
	}
	_, err = f.Commit(ctx, "lake", "source", graveler.CommitParams{})
	require.NoError(t, err)
	require.NoError(t, f.Delete(ctx, "lake", "main", key("k02")))
	f.commit(t, "delete")
	_, err = f.Merge(ctx, "lake", "source", "main", graveler.MergeParams{})
	require.NoError(t, err)
	require.Equal(t, []string{"k00=v2", "k01=v0"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
}

func TestMergeIntoABranchWithUncommittedChanges(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	f.commit(t, "base")
	_, err := f.CreateBranch(ctx, "lake", "source", "main")
	require.NoError(t, err)
	require.NoError(t, f.Set(ctx, "lake", "source", key("b"), value("source")))
	_, err = f.Commit(ctx, "lake", "source", graveler.CommitParams{})
	require.NoError(t, err)

	f.set(t, "c", "uncommitted")
	require.NoError(t, f.Delete(ctx, "lake", "main", key("a")))
	_, err = f.Merge(ctx, "lake", "source", "main", graveler.MergeParams{})
	require.ErrorIs(t, err, graveler.ErrDirtyBranch)
	require.Equal(t, []string{"c=uncommitted"}, show(t, f.Graveler, "main", graveler.ListOptions{}))

	_, err = f.Merge(ctx, "lake", "source", "main", graveler.MergeParams{AllowDirty: true})
	require.NoError(t, err)
	require.Equal(t, []string{"a=1", "b=source"}, show(t, f.Graveler, "main@", graveler.ListOptions{}))
	require.Equal(t, []string{"b=source", "c=uncommitted"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
	require.Equal(t, []string{"-a", "+c"}, showDiffs(t, f.DiffUncommitted(ctx, "lake", "main", graveler.DiffOptions{})))
	f.commit(t, "the rest")
	require.Equal(t, []string{"b=source", "c=uncommitted"}, show(t, f.Graveler, "main@", graveler.ListOptions{}))
}

func TestAPreviewOfAMergeChangesNothing(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.CreateBranch(ctx, "lake", "source", "main")
	require.NoError(t, err)
	require.NoError(t, f.Set(ctx, "lake", "source", key("b"), value("source")))
	source, err := f.Commit(ctx, "lake", "source", graveler.CommitParams{})
	require.NoError(t, err)
	f.set(t, "c", "uncommitted")

	f.kv.Reset()
	preview, err := f.PreviewMerge(ctx, "lake", "source", "main", graveler.MergeParams{FastForward: true})
	require.NoError(t, err)
	require.ErrorIs(t, preview.Refusal, graveler.ErrDirtyBranch)
	require.True(t, preview.FastForward)
	require.Equal(t, source.Commit.ID, preview.Source)
	require.Equal(t, []string{"+b"}, showDiffs(t, f.MergeChanges(ctx, "lake", "source", "main", graveler.MergeParams{})))
	require.Empty(t, collect(t, f.MergeConflicts(ctx, "lake", "source", "main", graveler.MergeParams{})))
	preview, err = f.PreviewMerge(ctx, "lake", "source", "main", graveler.MergeParams{AllowDirty: true})
	require.NoError(t, err)
	require.NoError(t, preview.Refusal)
	require.False(t, preview.FastForward)
	for call := range f.kv.Counts() {
		require.Contains(t, []string{"Get", "Scan"}, call)
	}

	// What uncommitted changes come to nothing does not keep a merge from being made.
	require.NoError(t, f.Delete(ctx, "lake", "main", key("c")))
	preview, err = f.PreviewMerge(ctx, "lake", "source", "main", graveler.MergeParams{})
	require.NoError(t, err)
	require.NoError(t, preview.Refusal)
}

func TestAMergeThatCannotBeSaysWhichOne(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	for name, c := range map[string]struct {
		source   string
		dest     graveler.BranchID
		params   graveler.MergeParams
		expected error
	}{
		"source":   {"none", "main", graveler.MergeParams{}, graveler.ErrRefNotFound},
		"ref":      {"a b", "main", graveler.MergeParams{}, graveler.ErrInvalidRef},
		"dest":     {"main", "none", graveler.MergeParams{}, graveler.ErrBranchNotFound},
		"name":     {"main", "a b", graveler.MergeParams{}, graveler.ErrInvalidName},
		"strategy": {"main", "main", graveler.MergeParams{Strategy: 9}, graveler.ErrInvalidValue},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(err error) {
				require.ErrorIs(t, err, c.expected)
				require.ErrorContains(t, err, fmt.Sprintf("merge lake/%s into lake/%s: ", c.source, c.dest))
			}
			_, err := f.Merge(ctx, "lake", c.source, c.dest, c.params)
			check(err)
			_, err = f.PreviewMerge(ctx, "lake", c.source, c.dest, c.params)
			check(err)
			_, _, err = graveler.Page(f.MergeChanges(ctx, "lake", c.source, c.dest, c.params), 1)
			check(err)
			_, _, err = graveler.Page(f.MergeConflicts(ctx, "lake", c.source, c.dest, c.params), 1)
			check(err)
		})
	}
}

// A tombstone that was staged and sealed must not hide a key that a merge brings.
func TestATombstoneOfAnAbsentKeyDoesNotHideWhatAMergeBrings(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.CreateBranch(ctx, "lake", "source", "main")
	require.NoError(t, err)
	require.NoError(t, f.Set(ctx, "lake", "source", key("k"), value("1")))
	_, err = f.Commit(ctx, "lake", "source", graveler.CommitParams{})
	require.NoError(t, err)
	f.set(t, "k", "x")
	require.NoError(t, f.Delete(ctx, "lake", "main", key("k"))) // shows nothing, but is in the token
	_, err = f.Merge(ctx, "lake", "source", "main", graveler.MergeParams{})
	require.NoError(t, err)
	require.Equal(t, []string{"k=1"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
}

func TestAMergeThatBringsNothing(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.CreateBranch(ctx, "lake", "source", "main")
	require.NoError(t, err)
	f.set(t, "a", "1")
	head := f.commit(t, "base")
	_, err = f.Merge(ctx, "lake", "source", "main", graveler.MergeParams{})
	require.ErrorIs(t, err, graveler.ErrNoChanges)
	c, err := f.Merge(ctx, "lake", "source", "main", graveler.MergeParams{CommitParams: graveler.CommitParams{AllowEmpty: true, Message: "asked for"}})
	require.NoError(t, err)
	require.Len(t, c.Parents, 2)
	require.Equal(t, head.Tree, c.Tree)
	moves := collect(t, f.BranchLog(ctx, "lake", "main", 0))
	require.Equal(t, graveler.OpMerge, moves[len(moves)-1].Op)
}

// The merge base of histories that parted a hundred commits ago is found by reading about two hundred, however long the history is.
func TestTheMergeBaseCostsWhatPartsTheHistories(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	empty := func(branch graveler.BranchID, n int) {
		for i := range n {
			_, err := f.Commit(ctx, "lake", branch, graveler.CommitParams{Message: fmt.Sprint(i), AllowEmpty: true})
			require.NoError(t, err)
		}
	}
	long := 1000
	if nightly() {
		long = 100_000
	}
	empty("main", long)
	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	empty("main", 100)
	empty("dev", 100)
	cold := f.another(t)
	f.kv.Reset()
	_, err = cold.Merge(ctx, "lake", "dev", "main", graveler.MergeParams{})
	require.NoError(t, err)
	require.Less(t, f.kv.Counts()["Get"], 230)
}
