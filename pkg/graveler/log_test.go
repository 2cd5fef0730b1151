// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

func TestLogShowsWhatIsAskedFor(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	day := func(n int) time.Time { return time.Date(2020, 1, n, 0, 0, 0, 0, time.UTC) }
	commit := func(branch graveler.BranchID, n int, committer, k, text string) {
		require.NoError(t, f.Set(ctx, "lake", branch, key(k), value(text)))
		_, err := f.Commit(ctx, "lake", branch, graveler.CommitParams{Message: text, Committer: committer, CreatedAt: day(n)})
		require.NoError(t, err)
	}
	commit("main", 1, "ada", "a/x", "one")
	commit("main", 2, "bob", "b/x", "two")
	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	commit("dev", 3, "ada", "a/y", "three")
	commit("main", 4, "bob", "c/x", "four")
	_, err = f.Merge(ctx, "lake", "dev", "main", graveler.MergeParams{CommitParams: graveler.CommitParams{Message: "merge", Committer: "ada", CreatedAt: day(5)}})
	require.NoError(t, err)
	commit("main", 6, "bob", "a/x", "six")

	for name, c := range map[string]struct {
		options graveler.LogOptions
		shown   []string
	}{
		"everything":           {graveler.LogOptions{}, []string{"six", "merge", "four", "three", "two", "one", "Repository created"}},
		"first parent":         {graveler.LogOptions{FirstParent: true}, []string{"six", "merge", "four", "two", "one", "Repository created"}},
		"since":                {graveler.LogOptions{Since: day(4)}, []string{"six", "merge", "four", "Repository created"}},
		"until":                {graveler.LogOptions{Until: day(2)}, []string{"two", "one"}},
		"committer":            {graveler.LogOptions{Committer: "ada"}, []string{"merge", "three", "one"}},
		"prefix":               {graveler.LogOptions{Prefixes: []graveler.Key{key("a/")}}, []string{"six", "three", "one"}},
		"key":                  {graveler.LogOptions{Prefixes: []graveler.Key{key("a/x")}}, []string{"six", "one"}},
		"two prefixes":         {graveler.LogOptions{Prefixes: []graveler.Key{key("c"), key("b")}}, []string{"four", "two"}},
		"prefix, first parent": {graveler.LogOptions{FirstParent: true, Prefixes: []graveler.Key{key("a/")}}, []string{"six", "merge", "one"}},
		"nothing":              {graveler.LogOptions{Prefixes: []graveler.Key{key("zzz")}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var shown []string
			for _, c := range collect(t, f.Log(ctx, "lake", "main", c.options)) {
				shown = append(shown, c.Message)
			}
			require.Equal(t, c.shown, shown)
		})
	}
}
