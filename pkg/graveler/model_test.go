// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// branchModel is what a branch is to its users: a committed map and an uncommitted one.
type branchModel struct{ head, view map[string]string }

var modelKeys = rapid.SampledFrom([]string{"a", "a/b", "a/b/c", "a/c", "b", "b/\xff", "b/\xff\xff", "c/x", "c/y/z", "d"})
var modelTexts = rapid.SampledFrom([]string{"1", "2", "3"})

// TestABranchBehavesLikeTwoMaps runs random operations on a branch, through two instances of the store at a time, and compares
// everything a user can see with the model. Unlisted tokens are dropped at once and sealed lists are short, so that what must not
// depend on them shows.
func TestABranchBehavesLikeTwoMaps(t *testing.T) {
	for _, url := range []string{"mem:", costlyFences} {
		t.Run(url, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { runModel(t, url) })
		})
	}
}

func runModel(t *rapid.T, url string) {
	ctx := context.Background()
	f := newFixtureAt(t, url, dropAtOnce)
	processes := []*graveler.Graveler{f.Graveler, f.another(t)}
	model := branchModel{head: map[string]string{}, view: map[string]string{}}
	pick := func(t *rapid.T) *graveler.Graveler { return rapid.SampledFrom(processes).Draw(t, "process") }

	t.Repeat(map[string]func(*rapid.T){
		"set": func(t *rapid.T) {
			k, text := modelKeys.Draw(t, "key"), modelTexts.Draw(t, "text")
			require.NoError(t, pick(t).Set(ctx, "lake", "main", key(k), value(text)))
			model.view[k] = text
		},
		"set many": func(t *rapid.T) {
			var entries []graveler.Entry
			for _, k := range rapid.SliceOfN(modelKeys, 1, 6).Draw(t, "keys") {
				text := modelTexts.Draw(t, "text")
				v := value(text)
				entries = append(entries, graveler.Entry{Key: key(k), Value: &v})
				model.view[k] = text
			}
			require.NoError(t, pick(t).SetMany(ctx, "lake", "main", entries))
		},
		"delete": func(t *rapid.T) {
			k := modelKeys.Draw(t, "key")
			require.NoError(t, pick(t).Delete(ctx, "lake", "main", key(k)))
			delete(model.view, k)
		},
		"set if absent": func(t *rapid.T) {
			k, text := modelKeys.Draw(t, "key"), modelTexts.Draw(t, "text")
			err := pick(t).SetIfAbsent(ctx, "lake", "main", key(k), value(text))
			if _, present := model.view[k]; present {
				require.ErrorIs(t, err, graveler.ErrPreconditionFailed)
				return
			}
			require.NoError(t, err)
			model.view[k] = text
		},
		"set if identity": func(t *rapid.T) {
			k, text, old := modelKeys.Draw(t, "key"), modelTexts.Draw(t, "text"), modelTexts.Draw(t, "old")
			err := pick(t).SetIf(ctx, "lake", "main", key(k), value(text), value(old).Identity)
			if model.view[k] != old {
				require.ErrorIs(t, err, graveler.ErrPreconditionFailed)
				return
			}
			require.NoError(t, err)
			model.view[k] = text
		},
		"transact": func(t *rapid.T) {
			g := pick(t)
			var changed map[string]string
			require.NoError(t, g.Transact(ctx, "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
				changed = maps.Clone(model.view)
				for range rapid.IntRange(0, 6).Draw(t, "calls") {
					k, text := modelKeys.Draw(t, "key"), modelTexts.Draw(t, "text")
					switch rapid.SampledFrom([]string{"get", "get", "set", "delete"}).Draw(t, "call") {
					case "get":
						other := modelKeys.Draw(t, "other")
						values, err := tx.Get(ctx, key(k), key(other), key(k))
						if err != nil {
							return err
						}
						for i, k := range []string{k, other, k} {
							if text, present := changed[k]; present != (values[i] != nil) || present && text != string(values[i].Data) {
								return fmt.Errorf("%s is %v", k, values[i]) // which counts unless the process knows an old record
							}
						}
					case "set":
						tx.Set(key(k), value(text))
						changed[k] = text
					case "delete":
						tx.Delete(key(k))
						delete(changed, k)
					}
				}
				return nil
			}))
			model.view = changed
		},
		"change tree": func(t *rapid.T) {
			changes := map[string]string{}
			for range rapid.IntRange(0, 5).Draw(t, "changes") {
				changes[modelKeys.Draw(t, "key")] = rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, "text")
			}
			p := graveler.ChangeTreeParams{Op: graveler.OpLifecycle}
			p.AllowEmpty = rapid.Bool().Draw(t, "allow empty")
			_, err := pick(t).ChangeTree(ctx, "lake", "main", p, func(_ context.Context, tree *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
				compareTree(t, tree, model.head)
				return changing(changes), nil
			})
			head := changed(model.head, changes)
			if maps.Equal(head, model.head) && !p.AllowEmpty {
				require.ErrorIs(t, err, graveler.ErrNoChanges)
				return
			}
			require.NoError(t, err)
			model.view, model.head = onTop(model.head, model.view, head), head
		},
		"delete prefix": func(t *rapid.T) {
			prefix := rapid.SampledFrom([]string{"", "a", "a/", "a/b", "b/\xff", "zzz"}).Draw(t, "prefix")
			require.NoError(t, pick(t).DeletePrefix(ctx, "lake", "main", key(prefix)))
			maps.DeleteFunc(model.view, func(k, _ string) bool { return strings.HasPrefix(k, prefix) })
		},
		"commit": func(t *rapid.T) {
			empty := rapid.Bool().Draw(t, "allow empty")
			before, err := f.ResolveRef(ctx, "lake", "main")
			require.NoError(t, err)
			res, err := pick(t).Commit(ctx, "lake", "main", graveler.CommitParams{Message: "m", AllowEmpty: empty})
			if maps.Equal(model.head, model.view) && !empty {
				require.ErrorIs(t, err, graveler.ErrNoChanges)
				return
			}
			require.NoError(t, err)
			require.False(t, res.AlreadyCommitted)
			require.Equal(t, []graveler.CommitID{before.ID}, res.Commit.Parents)
			require.Equal(t, res.Commit.ID, res.Commit.ComputeID())
			require.Equal(t, diffOf(model.head, model.view), showDiffs(t, f.Diff(ctx, "lake", string(before.ID), string(res.Commit.ID), graveler.DiffOptions{})))
			model.head = maps.Clone(model.view)
		},
		"compact": func(t *rapid.T) { require.NoError(t, pick(t).Compact(ctx, "lake", "main")) },
		"maintain": func(t *rapid.T) {
			_, err := pick(t).Maintain(ctx)
			require.NoError(t, err)
		},
		"": func(t *rapid.T) { compareWithModel(t, pick(t), model) },
	})
}

func compareWithModel(t *rapid.T, g *graveler.Graveler, model branchModel) {
	ctx := context.Background()
	require.Equal(t, listOf(model.view, "", "", ""), show(t, g, "main", graveler.ListOptions{}))
	require.Equal(t, listOf(model.head, "", "", ""), show(t, g, "main@", graveler.ListOptions{}))
	require.Equal(t, diffOf(model.head, model.view), showDiffs(t, g.DiffUncommitted(ctx, "lake", "main", graveler.DiffOptions{})))

	k := modelKeys.Draw(t, "probe")
	v, err := g.Get(ctx, "lake", "main", key(k))
	if text, present := model.view[k]; present {
		require.NoError(t, err)
		require.Equal(t, text, string(v.Data))
	} else {
		require.ErrorIs(t, err, graveler.ErrEntryNotFound)
	}

	prefix := rapid.SampledFrom([]string{"", "a", "a/", "b/\xff"}).Draw(t, "prefix")
	after := rapid.SampledFrom([]string{"", "a", "a/", "a/b/", "a/b/c", "b/\xff", "zz"}).Draw(t, "after")
	delimiter := rapid.SampledFrom([]string{"", "/", "/b"}).Draw(t, "delimiter")
	o := graveler.ListOptions{Prefix: key(prefix), After: key(after), Delimiter: delimiter}
	require.Equal(t, listOf(model.view, prefix, after, delimiter), show(t, g, "main", o))
	require.Equal(t, listOf(model.head, prefix, after, delimiter), show(t, g, "main@", o))

	diffs := diffOf(model.head, model.view)
	diffs = slices.DeleteFunc(diffs, func(d string) bool { return !strings.HasPrefix(d[1:], prefix) || after != "" && d[1:] <= after })
	d := graveler.DiffOptions{Prefix: key(prefix)}
	if after != "" {
		d.After = key(after)
	}
	require.Equal(t, diffs, showDiffs(t, g.DiffUncommitted(ctx, "lake", "main", d)))
}

// listOf is List in the plainest words.
func listOf(m map[string]string, prefix, after, delimiter string) []string {
	lines, last := []string{}, ""
	for _, k := range slices.Sorted(maps.Keys(m)) {
		rest, ok := strings.CutPrefix(k, prefix)
		if !ok {
			continue
		}
		name, line := k, k+"="+m[k]
		if head, _, found := strings.Cut(rest, delimiter); found && delimiter != "" {
			name = prefix + head + delimiter
			line = name
		}
		if name > after && line != last {
			lines = append(lines, line)
		}
		last = line
	}
	return lines
}

func diffOf(left, right map[string]string) []string {
	lines := []string{}
	keys := maps.Clone(left)
	maps.Copy(keys, right)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		l, inLeft := left[k]
		r, inRight := right[k]
		switch {
		case !inLeft:
			lines = append(lines, "+"+k)
		case !inRight:
			lines = append(lines, "-"+k)
		case l != r:
			lines = append(lines, "~"+k)
		}
	}
	return lines
}

func TestPages(t *testing.T) {
	f := newFixture(t)
	for _, k := range []string{"a", "b", "c"} {
		f.set(t, k, "x")
	}
	list := f.List(context.Background(), "lake", "main", graveler.ListOptions{})
	page, more, err := graveler.Page(list, 2)
	require.NoError(t, err)
	require.True(t, more)
	require.Len(t, page, 2)
	page, more, err = graveler.Page(list, 3)
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, page, 3)
	_, _, err = graveler.Page(list, 0)
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
}
