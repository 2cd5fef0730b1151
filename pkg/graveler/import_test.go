// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// meddled are trees that call before at each Apply, with its number, and count the changes that it is given.
type meddled struct {
	graveler.Trees
	before  func(n int)
	changes []int // by Apply
}

func (m *meddled) Apply(ctx context.Context, ns string, tree graveler.MetaRangeID, changes graveler.Iterator[graveler.Entry]) (graveler.MetaRangeID, error) {
	n := len(m.changes)
	m.changes = append(m.changes, 0)
	if m.before != nil {
		m.before(n)
	}
	return m.Trees.Apply(ctx, ns, tree, &counted{changes, &m.changes[n]})
}

type counted struct {
	graveler.Iterator[graveler.Entry]
	n *int
}

func (c *counted) Next() bool {
	if c.Iterator.Next() {
		*c.n++
		return true
	}
	return false
}

// newMeddled makes a fixture on such trees; other is the same store without them.
func newMeddled(t fataler) (f *fixture, trees *meddled, other *fixture) {
	other = newFixtureAt(t, "mem:", dropAtOnce)
	trees = &meddled{Trees: other.trees}
	f = &fixture{kv: other.kv, trees: other.trees, config: other.config}
	f.config.Trees = trees
	f.Graveler = f.another(t)
	return f, trees, other
}

// pair is an entry of a stream.
type pair struct{ key, text string }

// stream yields entries whose memory is used again, once, and calls between before each of them.
func stream(t fataler, pairs []pair, between func(i int)) iter.Seq2[graveler.Entry, error] {
	done := false
	return func(yield func(graveler.Entry, error) bool) {
		require.False(t, done, "the stream was read twice")
		done = true
		var k graveler.Key
		for i, p := range pairs {
			if between != nil {
				between(i)
			}
			k = append(k[:0], p.key...)
			v := value(p.text)
			if !yield(graveler.Entry{Key: k, Value: &v}, nil) {
				return
			}
			clear(k)
			clear(v.Identity)
			clear(v.Data)
		}
	}
}

// imported is what a map becomes by an import, in the plainest form.
func imported(into map[string]string, pairs []pair, prefixes []string) map[string]string {
	result := maps.Clone(into)
	maps.DeleteFunc(result, func(k, _ string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(k, p) })
	})
	for _, p := range pairs {
		result[p.key] = p.text
	}
	return result
}

// contents is what a ref shows, as a map.
func contents(t fataler, g *graveler.Graveler, ref string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for l, err := range g.List(context.Background(), "lake", ref, graveler.ListOptions{}) {
		require.NoError(t, err)
		all[string(l.Key)] = string(l.Value.Data)
	}
	return all
}

func keysOf(texts []string) (keys []graveler.Key) {
	for _, text := range texts {
		keys = append(keys, key(text))
	}
	return keys
}

// Random streams with duplicates go into random contents, while another instance commits and moves the head at any point. The
// commit differs from its parent, the head that was there, by the import alone.
func TestAnImportIsWhatAMapSays(t *testing.T) {
	imports, moved := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		f, trees, other := newMeddled(t)
		ctx := context.Background()
		for range rapid.IntRange(0, 8).Draw(t, "committed") {
			other.set(t, modelKeys.Draw(t, "key"), modelTexts.Draw(t, "text"))
		}
		_, err := other.Commit(ctx, "lake", "main", graveler.CommitParams{AllowEmpty: true})
		require.NoError(t, err)

		prefixes := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "a/b", "b/\xff", "b/\xff\xff", "c/", "none"}), 0, 3).Draw(t, "prefixes")
		var pairs []pair
		for range rapid.IntRange(0, 8).Draw(t, "imported") {
			p := pair{modelKeys.Draw(t, "key"), modelTexts.Draw(t, "text")}
			if len(prefixes) == 0 || len(imported(map[string]string{p.key: ""}, nil, prefixes)) == 0 {
				pairs = append(pairs, p)
			}
		}
		p := graveler.ImportParams{
			Prefixes: keysOf(prefixes), AllowDirty: rapid.Bool().Draw(t, "dirty"),
			SortMemory: rapid.SampledFrom([]int{0, 1, 200}).Draw(t, "memory"),
		}
		p.AllowEmpty = rapid.Bool().Draw(t, "allow empty")
		uncommitted := map[string]string{}
		if p.AllowDirty {
			for range rapid.IntRange(0, 3).Draw(t, "uncommitted") {
				k := modelKeys.Draw(t, "key")
				uncommitted[k] = "uncommitted " + k
				other.set(t, k, uncommitted[k])
			}
		}
		meddle := func() {
			p := graveler.ImportParams{AllowDirty: true, CommitParams: graveler.CommitParams{AllowEmpty: true}}
			if rapid.Bool().Draw(t, "a removal") {
				p.Prefixes = []graveler.Key{key(modelKeys.Draw(t, "removed"))}
				_, err = other.Import(ctx, "lake", "main", stream(t, nil, nil), p)
			} else {
				_, err = other.Import(ctx, "lake", "main", stream(t, []pair{{modelKeys.Draw(t, "key"), modelTexts.Draw(t, "text")}}, nil), p)
			}
			require.NoError(t, err)
			moved++
		}
		left := rapid.IntRange(0, 3).Draw(t, "moves")
		maybe := func(int) {
			if left > 0 && rapid.Bool().Draw(t, "move now") {
				left--
				meddle()
			}
		}
		trees.before = maybe
		imports++
		c, err := f.Import(ctx, "lake", "main", stream(t, pairs, maybe), p)
		trees.before = nil

		after := contents(t, f.Graveler, "main@")
		moves := collect(t, f.BranchLog(ctx, "lake", "main", 0))
		if errors.Is(err, graveler.ErrNoChanges) { // there was a moment when the branch had it all
			require.False(t, p.AllowEmpty)
			require.True(t, slices.ContainsFunc(moves, func(m graveler.Move) bool {
				held := contents(t, f.Graveler, string(m.New))
				return maps.Equal(held, imported(held, pairs, prefixes))
			}))
		} else {
			require.NoError(t, err)
			last := moves[len(moves)-1]
			require.Equal(t, []any{graveler.OpImport, c.ID, []graveler.CommitID{last.Old}}, []any{last.Op, last.New, c.Parents})
			before := contents(t, f.Graveler, string(last.Old))
			require.Equal(t, imported(before, pairs, prefixes), after)
			require.True(t, p.AllowEmpty || !maps.Equal(before, after))
		}
		maps.Copy(after, uncommitted)
		require.Equal(t, after, contents(t, f.another(t), "main"))
	})
	t.Logf("%d imports, %d moves meanwhile", imports, moved)
}

func TestAnImportIsOneCommit(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	head := f.commit(t, "base")
	c, err := f.Import(ctx, "lake", "main", stream(t, []pair{{"b", "1"}, {"a/b", "1"}}, nil), graveler.ImportParams{
		CommitParams: graveler.CommitParams{Message: "in", Committer: "ann", Metadata: map[string]string{"k": "v"}},
	})
	require.NoError(t, err)
	require.Equal(t, []any{"in", "ann", map[string]string{"k": "v"}, []graveler.CommitID{head.ID}}, []any{c.Message, c.Committer, c.Metadata, c.Parents})
	require.Equal(t, c.ID, c.ComputeID())
	require.Equal(t, []string{"a/b=1", "a=1", "b=1"}, slices.Sorted(slices.Values(show(t, f.Graveler, "main@", graveler.ListOptions{}))))
	require.Empty(t, showDiffs(t, f.DiffUncommitted(ctx, "lake", "main", graveler.DiffOptions{})))
	moves := collect(t, f.BranchLog(ctx, "lake", "main", 0))
	require.Equal(t, []any{graveler.OpImport, "ann"}, []any{moves[len(moves)-1].Op, moves[len(moves)-1].Actor})

	same := stream(t, []pair{{"b", "1"}}, nil)
	_, err = f.Import(ctx, "lake", "main", same, graveler.ImportParams{})
	require.ErrorIs(t, err, graveler.ErrNoChanges)
}

// A cached record belongs to nobody: what the caller does with his metadata afterwards does not show.
func TestAnImportKeepsItsOwnMetadata(t *testing.T) {
	f := newFixture(t)
	metadata := map[string]string{"k": "v"}
	c, err := f.Import(context.Background(), "lake", "main", stream(t, []pair{{"a", "1"}}, nil), graveler.ImportParams{CommitParams: graveler.CommitParams{Metadata: metadata}})
	require.NoError(t, err)
	metadata["k"] = "changed"
	stored, err := f.ResolveRef(context.Background(), "lake", string(c.ID))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"k": "v"}, stored.Metadata)
}

func TestWhatCannotBeImportedChangesNothing(t *testing.T) {
	stop := errors.New("no more")
	good := graveler.Entry{Key: key("a/good"), Value: &graveler.Value{Identity: []byte("1")}}
	of := func(k string, v *graveler.Value) graveler.Entry { return graveler.Entry{Key: key(k), Value: v} }
	for name, c := range map[string]struct {
		bad     graveler.Entry
		err     error
		is      error
		message string
	}{
		"empty key":        {bad: of("", good.Value), is: graveler.ErrInvalidName, message: "entry 2, : invalid name"},
		"long key":         {bad: of("a/"+strings.Repeat("k", graveler.MaxKeyBytes), good.Value), is: graveler.ErrTooLarge, message: "entry 2, a/kkk"},
		"no value":         {bad: of("a/b", nil), is: graveler.ErrInvalidValue, message: "entry 2, a/b: invalid value"},
		"no identity":      {bad: of("a/b\n", &graveler.Value{Data: []byte("x")}), is: graveler.ErrInvalidValue, message: `entry 2, a/b\n: invalid value`},
		"too large":        {bad: of("a/b", &graveler.Value{Identity: []byte("x"), Data: make([]byte, graveler.MaxValueBytes)}), is: graveler.ErrTooLarge, message: "entry 2, a/b: too large"},
		"outside":          {bad: of("b/a", good.Value), is: graveler.ErrInvalidName, message: "entry 2, b/a: invalid name: the key has none of the prefixes"},
		"error of the one": {err: stop, is: stop, message: "import into lake/main: no more"},
	} {
		t.Run(name, func(t *testing.T) {
			f, trees, other := newMeddled(t)
			other.set(t, "a/old", "1")
			head := other.commit(t, "base")
			ended := false
			entries := func(yield func(graveler.Entry, error) bool) {
				if yield(good, nil) && yield(c.bad, c.err) {
					t.Error("the stream went on")
				}
				ended = true
			}
			dir := t.TempDir()
			_, err := f.Import(t.Context(), "lake", "main", entries, graveler.ImportParams{Prefixes: keysOf([]string{"c/", "a/"}), SortMemory: 1, TempDir: dir})
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.message)
			require.True(t, ended)
			require.Empty(t, trees.changes, "a tree was begun")
			nothingChanged(t, f, head, dir)
		})
	}
}

// nothingChanged makes sure that an import has left nothing behind.
func nothingChanged(t *testing.T, f *fixture, head graveler.Commit, dir string) {
	t.Helper()
	b, err := f.GetBranch(context.Background(), "lake", "main")
	require.NoError(t, err)
	require.Equal(t, head.ID, b.Head)
	require.Empty(t, showDiffs(t, f.DiffUncommitted(context.Background(), "lake", "main", graveler.DiffOptions{})))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
}

func TestACancelledImportChangesNothing(t *testing.T) {
	pairs := []pair{{"b", "1"}, {"a", "2"}, {"c", "3"}}
	for name, at := range map[string]struct{ entry, apply, move int }{
		"stream": {1, -1, -1}, "end of the stream": {2, -1, -1}, "head": {-1, 0, -1}, "fold": {-1, 1, -1},
		"tree alone": {-1, 2, 1}, "other changes": {-1, 3, 1}, // only where the branch has moved
	} {
		t.Run(name, func(t *testing.T) {
			f, trees, other := newMeddled(t)
			other.set(t, "a", "1")
			head := other.commit(t, "base")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cancelled := false
			cancelAt := func(at int) func(int) {
				return func(i int) {
					if i == at {
						cancelled = true
						cancel()
					}
				}
			}
			trees.before = func(i int) {
				if i == at.move {
					other.set(t, "d", "1")
					head = other.commit(t, "meanwhile")
				}
				cancelAt(at.apply)(i)
			}
			dir := t.TempDir()
			_, err := f.Import(ctx, "lake", "main", stream(t, pairs, cancelAt(at.entry)), graveler.ImportParams{SortMemory: 1, TempDir: dir})
			require.ErrorIs(t, err, context.Canceled)
			require.True(t, cancelled)
			nothingChanged(t, other, head, dir)
		})
	}
}

func TestAnImportThatCannotBeIsRefusedBeforeItIsRead(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	unread := func(func(graveler.Entry, error) bool) { t.Error("the stream was read") }
	refused := func(is error, branch graveler.BranchID, p graveler.ImportParams) {
		t.Helper()
		_, err := f.Import(ctx, "lake", branch, unread, p)
		require.ErrorIs(t, err, is)
	}
	refused(graveler.ErrBranchNotFound, "none", graveler.ImportParams{})
	refused(graveler.ErrBranchNotFound, "none", graveler.ImportParams{AllowDirty: true})
	refused(graveler.ErrInvalidName, "a..b", graveler.ImportParams{})
	refused(graveler.ErrInvalidValue, "main", graveler.ImportParams{SortMemory: -1})
	refused(graveler.ErrInvalidValue, "main", graveler.ImportParams{CommitParams: graveler.CommitParams{Prefixes: keysOf([]string{"a"})}})
	refused(graveler.ErrTooLarge, "main", graveler.ImportParams{CommitParams: graveler.CommitParams{Message: strings.Repeat("x", graveler.MaxMessageBytes+1)}})
	f.set(t, "a", "1")
	refused(graveler.ErrDirtyBranch, "main", graveler.ImportParams{})
	_, err := f.CreateRepository(ctx, "sea", graveler.CreateRepositoryParams{ReadOnly: true})
	require.NoError(t, err)
	_, err = f.Import(ctx, "sea", "main", unread, graveler.ImportParams{})
	require.ErrorIs(t, err, graveler.ErrReadOnly)
	_, err = f.Import(ctx, "none", "main", unread, graveler.ImportParams{})
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
}

// What is staged while an import reads is found before its commit; what is staged after it has sealed the token stays.
func TestChangesThatAreStagedDuringAnImport(t *testing.T) {
	f, trees, other := newMeddled(t)
	ctx := context.Background()
	staging := func(int) { other.set(t, "u", "uncommitted") }
	_, err := f.Import(ctx, "lake", "main", stream(t, []pair{{"a", "1"}}, staging), graveler.ImportParams{})
	require.ErrorIs(t, err, graveler.ErrDirtyBranch)
	require.Equal(t, []string{"u=uncommitted"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
	require.NoError(t, f.ResetStaged(ctx, "lake", "main", nil))

	first := len(trees.changes)
	trees.before = func(n int) {
		if n == first+1 { // the fold, after the seal
			other.set(t, "u", "uncommitted")
		}
	}
	_, err = f.Import(ctx, "lake", "main", stream(t, []pair{{"a", "1"}}, nil), graveler.ImportParams{})
	require.NoError(t, err)
	require.Equal(t, []string{"a=1"}, show(t, f.Graveler, "main@", graveler.ListOptions{}))
	require.Equal(t, []string{"a=1", "u=uncommitted"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
}

// An import that finds the branch moved does not begin again: it applies what has changed in it. Otherwise a large one would
// never end on a branch where others commit.
func TestAMoveDuringAnImportCostsWhatItChanged(t *testing.T) {
	for name, prefixes := range map[string][]graveler.Key{"added": nil, "replaced": keysOf([]string{"k"})} {
		t.Run(name, func(t *testing.T) {
			f, trees, other := newMeddled(t)
			other.set(t, "old", "1")
			other.commit(t, "base")
			var pairs []pair
			for i := range 1000 {
				pairs = append(pairs, pair{fmt.Sprintf("k%04d", i), "1"})
			}
			moves := 0
			trees.before = func(n int) {
				if n >= 1 && moves < 5 {
					moves++
					other.set(t, fmt.Sprint("o", moves), "1")
					other.set(t, "k0500", fmt.Sprint("theirs ", moves))
					other.commit(t, "move")
				}
			}
			_, err := f.Import(t.Context(), "lake", "main", stream(t, pairs, nil), graveler.ImportParams{Prefixes: prefixes})
			require.NoError(t, err)
			require.Equal(t, 5, moves)
			total := 0
			for _, n := range trees.changes {
				total += n
			}
			require.Less(t, total, 2*len(pairs)+20)
			holds := imported(map[string]string{"old": "1", "o1": "1", "o2": "1", "o3": "1", "o4": "1", "o5": "1"}, pairs, nil)
			require.Equal(t, holds, contents(t, f.Graveler, "main@"))
		})
	}
}

// Every tree takes writing, and what is written in vain stays behind as files that nothing refers to.
func TestAnImportMakesOneTree(t *testing.T) {
	var pairs []pair
	for i := range 100 {
		pairs = append(pairs, pair{fmt.Sprintf("k%04d", i), "1"})
	}
	for name, c := range map[string]struct {
		prefixes []graveler.Key
		changes  int
	}{
		"added":               {nil, 100},
		"replaced":            {keysOf([]string{"k"}), 100 + 1}, // what was there goes
		"everything replaced": {keysOf([]string{""}), 100},
	} {
		t.Run(name, func(t *testing.T) {
			f, trees, other := newMeddled(t)
			other.set(t, "old", "1")
			other.set(t, "k-old", "1")
			other.commit(t, "base")
			_, err := f.Import(t.Context(), "lake", "main", stream(t, pairs, nil), graveler.ImportParams{Prefixes: c.prefixes})
			require.NoError(t, err)
			require.Equal(t, []int{c.changes, 0}, trees.changes, "the fold has none")
		})
	}
}
