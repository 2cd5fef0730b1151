// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// diffsOf yields the differences between two maps, by key, and then an error if there is one.
func diffsOf(left, right map[string]string, end error) iter.Seq2[graveler.Diff, error] {
	return func(yield func(graveler.Diff, error) bool) {
		keys := maps.Clone(left)
		maps.Copy(keys, right)
		side := func(m map[string]string, k string) *graveler.Value {
			if text, ok := m[k]; ok {
				v := value(text)
				return &v
			}
			return nil
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			d := graveler.Diff{Key: key(k), Left: side(left, k), Right: side(right, k)}
			if !d.Left.Same(d.Right) && !yield(d, nil) {
				return
			}
		}
		if end != nil {
			yield(graveler.Diff{}, end)
		}
	}
}

func TestCountsOfDifferencesAreThoseOfPlainMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.MapOf(rapid.StringMatching(`p[ab/-]{0,5}`), rapid.SampledFrom([]string{"1", "2"}))
		left, right := side.Draw(t, "left"), side.Draw(t, "right")
		prefix := rapid.SampledFrom([]string{"", "p", "pa", "p/"}).Draw(t, "prefix")
		delimiter := rapid.SampledFrom([]string{"/", "-", "a/", "//"}).Draw(t, "delimiter")
		outside := func(k, _ string) bool { return !strings.HasPrefix(k, prefix) }
		maps.DeleteFunc(left, outside)
		maps.DeleteFunc(right, outside)

		want := map[string]graveler.DiffCount{}
		keys := maps.Clone(left)
		maps.Copy(keys, right)
		for k := range keys {
			group := prefix
			if before, _, ok := strings.Cut(k[len(prefix):], delimiter); ok {
				group += before + delimiter
			}
			c := want[group]
			c.Prefix = key(group)
			l, inLeft := left[k]
			r, inRight := right[k]
			switch {
			case !inLeft:
				c.Added++
			case !inRight:
				c.Removed++
			case l != r:
				c.Changed++
			default:
				continue
			}
			want[group] = c
		}
		var groups []string
		for _, c := range collect(t, graveler.CountDiffs(diffsOf(left, right, nil), key(prefix), delimiter)) {
			require.Equal(t, want[string(c.Prefix)], c)
			groups = append(groups, string(c.Prefix))
		}
		order := slices.Sorted(maps.Keys(want))
		if i := slices.Index(order, prefix); i >= 0 {
			order = append(slices.Delete(order, i, i+1), prefix) // comes last
		}
		require.Equal(t, order, groups)
	})
}

func TestACountThatIsCutShortIsNotShown(t *testing.T) {
	broken := errors.New("broken")
	left, right := map[string]string{"a/1": "x", "b/1": "x", "c": "x"}, map[string]string{}
	var shown []string
	var last error
	for c, err := range graveler.CountDiffs(diffsOf(left, right, broken), nil, "/") {
		if last = err; err == nil {
			shown = append(shown, string(c.Prefix))
		}
	}
	require.ErrorIs(t, last, broken)
	require.Equal(t, []string{"a/"}, shown)
}

func TestCountingNeedsADelimiterAndThePrefixOfTheKeys(t *testing.T) {
	diffs := diffsOf(map[string]string{"a/1": "x"}, nil, nil)
	_, _, err := graveler.Page(graveler.CountDiffs(diffs, nil, ""), 10)
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	_, _, err = graveler.Page(graveler.CountDiffs(diffs, key("b"), "/"), 10)
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	page, more, err := graveler.Page(graveler.CountDiffs(diffs, key("a"), "/"), 10)
	require.NoError(t, err)
	require.False(t, more)
	require.Equal(t, []graveler.DiffCount{{Prefix: key("a/"), Removed: 1}}, page)
}
