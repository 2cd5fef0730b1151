// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// changing yields changes by key, in memory that is used again; an empty text removes.
func changing(changes map[string]string) iter.Seq2[graveler.Entry, error] {
	return func(yield func(graveler.Entry, error) bool) {
		var k graveler.Key
		for _, name := range slices.Sorted(maps.Keys(changes)) {
			k = append(k[:0], name...)
			e := graveler.Entry{Key: k}
			if text := changes[name]; text != "" {
				v := value(text)
				e.Value = &v
			}
			if !yield(e, nil) {
				return
			}
			clear(k)
		}
	}
}

// changed is what a map becomes by changes.
func changed(m, changes map[string]string) map[string]string {
	m = maps.Clone(m)
	for k, text := range changes {
		if m[k] = text; text == "" {
			delete(m, k)
		}
	}
	return m
}

// onTop is what a branch shows that has another head under its uncommitted changes.
func onTop(head, view, moved map[string]string) map[string]string {
	result := maps.Clone(moved)
	for k, text := range head {
		if now, present := view[k]; !present {
			delete(result, k)
		} else if now != text {
			result[k] = now
		}
	}
	for k, text := range view {
		if _, had := head[k]; !had {
			result[k] = text
		}
	}
	return result
}

// compareTree looks a tree up in any order, and lists it.
func compareTree(t *rapid.T, tree *graveler.Tree, m map[string]string) {
	for _, k := range rapid.SliceOfN(modelKeys, 0, 6).Draw(t, "looked up") {
		v, err := tree.Get(key(k))
		require.NoError(t, err)
		text, present := m[k]
		require.Equal(t, present, v != nil)
		require.True(t, !present || text == string(v.Data))
	}
	prefix := rapid.SampledFrom([]string{"", "a/", "b/\xff"}).Draw(t, "listed prefix")
	after := rapid.SampledFrom([]string{"", "a/b"}).Draw(t, "listed after")
	lines := []string{}
	for l, err := range tree.List(context.Background(), graveler.ListOptions{Prefix: key(prefix), After: key(after)}) {
		require.NoError(t, err)
		lines = append(lines, string(l.Key)+"="+string(l.Value.Data))
	}
	require.Equal(t, listOf(m, prefix, after, ""), lines)
}

// changeTree changes the tree of main as an expiry would.
func changeTree(f *fixture, p graveler.ChangeTreeParams, build func(t *graveler.Tree) (iter.Seq2[graveler.Entry, error], error)) (graveler.Commit, error) {
	p.Op = graveler.OpLifecycle
	return f.ChangeTree(context.Background(), "lake", "main", p, func(_ context.Context, t *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) { return build(t) })
}

func TestAChangeOfATreeIsOneMoveBelowWhatIsUncommitted(t *testing.T) {
	var judged []string
	f := newFixture(t, func(c *graveler.Config) {
		c.Hooks.PreCommit = func(_ context.Context, e graveler.PreCommitEvent) error {
			if e.Op == graveler.OpLifecycle {
				judged = append(showDiffs(t, e.Changes), e.Params.Message)
			}
			return nil
		}
	})
	ctx := context.Background()
	for _, k := range []string{"a", "b", "c", "p/1", "p/2"} {
		f.set(t, k, "1")
	}
	head := f.commit(t, "base")
	f.set(t, "base", "uncommitted")
	require.NoError(t, f.Compact(ctx, "lake", "main"))
	f.set(t, "sealed", "uncommitted")
	require.NoError(t, f.DeletePrefix(ctx, "lake", "main", key("p/")))
	f.set(t, "b", "uncommitted")
	uncommitted := showDiffs(t, f.DiffUncommitted(ctx, "lake", "main", graveler.DiffOptions{}))

	b, err := f.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	p := graveler.ChangeTreeParams{UID: b.UID, CommitParams: graveler.CommitParams{Message: "expired", Committer: "engine", Metadata: map[string]string{"rule": "r"}}}
	c, err := changeTree(f, p, func(*graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
		return changing(map[string]string{"a": "", "b": "", "c": "2", "new": "2", "p/2": "2"}), nil
	})
	require.NoError(t, err)
	require.Equal(t, []any{"expired", "engine", map[string]string{"rule": "r"}, []graveler.CommitID{head.ID}}, []any{c.Message, c.Committer, c.Metadata, c.Parents})
	require.Equal(t, []string{"-a", "-b", "~c", "+new", "~p/2", "expired"}, judged)
	require.Equal(t, []string{"c=2", "new=2", "p/1=1", "p/2=2"}, show(t, f.Graveler, "main@", graveler.ListOptions{}))
	require.Equal(t, []string{"b=uncommitted", "base=uncommitted", "c=2", "new=2", "sealed=uncommitted"}, show(t, f.another(t), "main", graveler.ListOptions{}))
	require.Equal(t, []string{"~b", "+base", "-p/1", "-p/2", "+sealed"}, uncommitted)
	require.Equal(t, []string{"+b", "+base", "-p/1", "-p/2", "+sealed"}, showDiffs(t, f.DiffUncommitted(ctx, "lake", "main", graveler.DiffOptions{})))
	moves := collect(t, f.BranchLog(ctx, "lake", "main", 0))
	last := moves[len(moves)-1]
	require.Equal(t, []any{graveler.OpLifecycle, "engine", head.ID, c.ID, uint64(0)}, []any{last.Op, last.Actor, last.Old, last.New, last.CommittedThrough})
}

func TestWhatIsNoChangeOfATreeChangesNothing(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	head := f.commit(t, "base")
	f.set(t, "u", "uncommitted")
	stop := errors.New("no more")
	v := value("1")
	of := func(entries ...graveler.Entry) iter.Seq2[graveler.Entry, error] {
		return func(yield func(graveler.Entry, error) bool) {
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	good := graveler.Entry{Key: key("b"), Value: &v}
	for name, c := range map[string]struct {
		changes iter.Seq2[graveler.Entry, error]
		err     error
		is      error
		message string
	}{
		"nothing":              {is: graveler.ErrNoChanges},
		"no changes":           {changes: of(), is: graveler.ErrNoChanges},
		"what is there":        {changes: of(graveler.Entry{Key: key("a"), Value: &v}, graveler.Entry{Key: key("none")}), is: graveler.ErrNoChanges},
		"an error of build":    {err: stop, is: stop},
		"an error of the rest": {changes: func(yield func(graveler.Entry, error) bool) { _ = yield(good, nil) && yield(graveler.Entry{}, stop) }, is: stop},
		"out of order":         {changes: of(good, graveler.Entry{Key: key("a")}), is: graveler.ErrInvalidValue, message: "change 2, a: invalid value: it follows b"},
		"twice":                {changes: of(good, good), is: graveler.ErrInvalidValue, message: "change 2, b"},
		"no key":               {changes: of(graveler.Entry{Value: &v}), is: graveler.ErrInvalidName, message: "change 1, : "},
		"a long key":           {changes: of(good, graveler.Entry{Key: key(strings.Repeat("k", 2000))}), is: graveler.ErrTooLarge, message: "change 2, kkk"},
		"no identity":          {changes: of(good, graveler.Entry{Key: key("c"), Value: &graveler.Value{}}), is: graveler.ErrInvalidValue, message: "change 2, c"},
	} {
		_, err := changeTree(f, graveler.ChangeTreeParams{}, func(*graveler.Tree) (iter.Seq2[graveler.Entry, error], error) { return c.changes, c.err })
		require.ErrorIs(t, err, c.is, name)
		require.ErrorContains(t, err, c.message, name)
		b, err := f.GetBranch(ctx, "lake", "main")
		require.NoError(t, err)
		require.Equal(t, head.ID, b.Head, name)
		require.Equal(t, []string{"a=1", "u=uncommitted"}, show(t, f.Graveler, "main", graveler.ListOptions{}), name)
	}
	p := graveler.ChangeTreeParams{}
	p.AllowEmpty = true
	c, err := changeTree(f, p, func(*graveler.Tree) (iter.Seq2[graveler.Entry, error], error) { return nil, nil })
	require.NoError(t, err)
	require.Equal(t, head.Tree, c.Tree)
	require.Equal(t, []graveler.CommitID{head.ID}, c.Parents)
}

func TestAChangeOfATreeThatCannotBeIsRefusedBeforeItIsBuilt(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	refused := func(is error, branch graveler.BranchID, p graveler.ChangeTreeParams) {
		t.Helper()
		_, err := f.ChangeTree(ctx, "lake", branch, p, func(context.Context, *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
			t.Error("it was built")
			return nil, nil
		})
		require.ErrorIs(t, err, is)
	}
	p := graveler.ChangeTreeParams{Op: graveler.OpLifecycle}
	refused(graveler.ErrBranchNotFound, "none", p)
	refused(graveler.ErrInvalidName, "a..b", p)
	for _, op := range []graveler.Op{0, graveler.OpCreate, graveler.OpCommit, graveler.OpMerge, graveler.OpReset, graveler.OpDelete, graveler.OpMigrate} {
		refused(graveler.ErrInvalidValue, "main", graveler.ChangeTreeParams{Op: op})
	}
	bad := p
	bad.Prefixes = []graveler.Key{key("a")}
	refused(graveler.ErrInvalidValue, "main", bad)
	bad = p
	bad.Message = strings.Repeat("x", graveler.MaxMessageBytes+1)
	refused(graveler.ErrTooLarge, "main", bad)

	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	old, err := f.GetBranch(ctx, "lake", "dev")
	require.NoError(t, err)
	require.NoError(t, f.DeleteBranch(ctx, "lake", "dev", true))
	p.UID = old.UID
	refused(graveler.ErrBranchNotFound, "dev", p)
	_, err = f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	refused(graveler.ErrBranchNotFound, "dev", p)
}

// Where the branch moves while a change is made, it is made again, from what the branch has become. What is staged meanwhile stays uncommitted.
func TestAChangeOfATreeIsBuiltOnTheHeadThatItMoves(t *testing.T) {
	f, trees, other := newMeddled(t)
	ctx := context.Background()
	for _, k := range []string{"a", "b"} {
		other.set(t, k, "1")
	}
	other.commit(t, "base")
	built := 0
	trees.before = func(n int) {
		if built > 0 && built < 3 && n%2 == 1 { // not before the fold
			other.set(t, "b", "2")
			other.commit(t, "move")
			other.set(t, "b", "1")
			other.commit(t, "move")
			other.set(t, "staged", "1")
		}
	}
	c, err := changeTree(f, graveler.ChangeTreeParams{}, func(tree *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
		built++
		changes := map[string]string{}
		for l, err := range tree.List(ctx, graveler.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			changes[string(l.Key)] = "" // everything goes
		}
		return changing(changes), nil
	})
	require.NoError(t, err)
	require.Equal(t, 3, built)
	head, err := f.ResolveRef(ctx, "lake", string(c.Parents[0]))
	require.NoError(t, err)
	require.Equal(t, "move", head.Message)
	require.Empty(t, show(t, f.Graveler, "main@", graveler.ListOptions{}))
	require.Equal(t, []string{"staged=1"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
}

// Some processes add entries and commit, others take the committed ones away. In the end every entry has been taken away by one
// commit, which had it in its parent.
func TestChangesOfTreesBesideCommits(t *testing.T) {
	eachProtocol(t, func(t *testing.T, f *fixture) {
		const writers, each = 4, 10
		ctx := context.Background()
		processes := []*graveler.Graveler{f.Graveler, f.another(t)}
		sweep := func(g *graveler.Graveler) error {
			_, err := g.ChangeTree(ctx, "lake", "main", graveler.ChangeTreeParams{Op: graveler.OpLifecycle}, func(_ context.Context, tree *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
				return func(yield func(graveler.Entry, error) bool) {
					for l, err := range tree.List(ctx, graveler.ListOptions{}) { // while the tree is changed
						if !yield(graveler.Entry{Key: l.Key}, err) {
							return
						}
					}
				}, nil
			})
			if errors.Is(err, graveler.ErrNoChanges) {
				return nil
			}
			return err
		}
		var group errgroup.Group
		for w := range writers {
			g := processes[w%2]
			group.Go(func() error {
				for i := range each {
					k := strings.Repeat("k", w+1) + string(rune('a'+i))
					if err := g.Set(ctx, "lake", "main", key(k), value(k)); err != nil {
						return err
					}
					if _, err := g.Commit(ctx, "lake", "main", graveler.CommitParams{}); err != nil && !errors.Is(err, graveler.ErrNoChanges) {
						return err
					}
					if w < 2 {
						if err := sweep(g); err != nil {
							return err
						}
					}
				}
				return nil
			})
		}
		require.NoError(t, group.Wait())
		require.NoError(t, sweep(f.Graveler))
		require.Empty(t, show(t, f.another(t), "main", graveler.ListOptions{}))

		added, removed := map[string]int{}, map[string]int{}
		for _, m := range collect(t, f.BranchLog(ctx, "lake", "main", 0)) {
			if m.Old == "" {
				continue
			}
			for _, d := range showDiffs(t, f.Diff(ctx, "lake", string(m.Old), string(m.New), graveler.DiffOptions{})) {
				switch d[0] {
				case '+':
					require.Equal(t, graveler.OpCommit, m.Op)
					added[d[1:]]++
				case '-':
					require.Equal(t, graveler.OpLifecycle, m.Op)
					removed[d[1:]]++
				}
			}
		}
		require.Len(t, added, writers*each)
		require.Equal(t, added, removed)
	})
}

// What build reads of a repository's settings holds when the commit is made, if whoever changes them rewrites the branch records afterwards.
func TestAChangeOfATreeIsBuiltAgainWhereTheBranchRecordIsRewritten(t *testing.T) {
	ctx := t.Context()
	h := newFixture(t)
	built := 0
	_, err := h.ChangeTree(ctx, "lake", "main", graveler.ChangeTreeParams{Op: graveler.OpLifecycle}, func(ctx context.Context, _ *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
		if built++; built == 1 {
			require.NoError(t, h.Set(ctx, "lake", "main", graveler.Key("staged"), value("no rewriting")))
			require.NoError(t, h.ProtectBranches(ctx, "lake", func(rules []graveler.ProtectionRule) ([]graveler.ProtectionRule, error) { return rules, nil }))
		}
		return changing(map[string]string{"a": "1"}), nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, built)
}
