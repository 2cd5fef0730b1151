// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// somewhere gives the repository a tree, in a namespace.
func somewhere(namespace string) func(h *handmade) {
	return func(h *handmade) {
		h.commit("")
		h.branch("main", h.commit(h.metarange(h.rangeOf("a"))))
		h.Namespace = namespace
	}
}

// firstWith makes a repository of one commit that is changed.
func firstWith(change func(h *handmade, c *lakefs.Commit)) func(h *handmade) {
	return func(h *handmade) {
		c := h.commit("")
		h.branch("main", c)
		change(h, &c.Commit)
	}
}

// headWith makes a repository whose head has the tree that is made for it.
func headWith(tree func(h *handmade) string) func(h *handmade) {
	return func(h *handmade) {
		h.commit("")
		h.branch("main", h.commit(tree(h)))
	}
}

// withKeys makes a repository with these keys, committed and staged.
func withKeys(keys ...string) func(h *handmade) {
	return func(h *handmade) {
		h.commit("")
		var staged []lakefs.Staged
		for _, k := range keys {
			staged = append(staged, stagedEntry(h.t, k, "staged"))
		}
		h.branch("main", h.commit(h.metarange(h.rangeOf(keys...))), staged...)
	}
}

func TestOddThingsOfLakeFSMoveOver(t *testing.T) {
	l := emptyLake(t)
	for name, fill := range map[string]func(h *handmade){
		"a parent twice": func(h *handmade) { a := h.commit(""); h.branch("main", h.commit("", a.ID, a.ID)) },
		"a parent twice, the other between": func(h *handmade) {
			a, b := h.commit(""), h.commit("")
			h.branch("main", h.commit("", b.ID, a.ID, b.ID))
		},
		"three parents in the older order": func(h *handmade) {
			a, b, c := h.commit(""), h.commit(""), h.commit("")
			m := h.commit("", a.ID, b.ID, c.ID)
			m.Version = 0
			h.branch("main", m)
		},
		"300 parents": func(h *handmade) {
			h.commit("")
			var parents []string
			for range 300 {
				parents = append(parents, h.commit("").ID)
			}
			h.branch("main", h.commit("", parents...))
		},
		"a date before the parent's": func(h *handmade) {
			h.commit("")
			c := h.commit("")
			c.CreatedAt = time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC)
			h.branch("main", c)
		},
		"a date far ahead": func(h *handmade) {
			h.commit("").CreatedAt = time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC)
			h.branch("main", h.commit(""))
		},
		"a generation that is wrong": firstWith(func(_ *handmade, c *lakefs.Commit) { c.Generation = -5 }),
		"metadata with an empty key": firstWith(func(_ *handmade, c *lakefs.Commit) { c.Metadata = map[string]string{"": ""} }),
		"a metarange without ranges": headWith(func(h *handmade) string { return h.metarange() }),
		"names that differ in case": firstWith(func(h *handmade, c *lakefs.Commit) {
			h.branch("Main", h.Commits[0])
			h.Tags = []lakefs.Tag{{ID: "MAIN", Commit: c.ID}}
		}),
		"a namespace with other characters": somewhere("s3://bucket/a b/ü"),
		"a namespace that is a bucket":      somewhere("s3://bucket///"),
		"a namespace that is a URL":         somewhere("https://account.blob.core.windows.net/container/x"),
		"odd keys":                          withKeys("\n", "/", "a\x00b", "dir", "dir/", "\xff", "\xff\xff"),
		"long keys":                         withKeys(strings.Repeat("k", 1024), strings.Repeat("\xff", 1024)),
		"a pattern of two stars": firstWith(func(h *handmade, _ *lakefs.Commit) {
			h.Protection = []lakefs.ProtectionRule{{Pattern: "**", StagingWrite: true}}
		}),
		"a pattern that forbids nothing": firstWith(func(h *handmade, _ *lakefs.Commit) { h.Protection = []lakefs.ProtectionRule{{Pattern: "main"}} }),
		"repository metadata with odd text": firstWith(func(h *handmade, _ *lakefs.Commit) {
			h.Metadata = map[string]string{"": "x", "<&>\u2028": "\ufffd\x00"}
		}),
		"no value": func(h *handmade) {
			h.branch("main", h.commit(""), lakefs.Staged{Record: lakefs.Record{Key: []byte("k"), Identity: []byte("i")}})
		},
	} {
		for layout, tables := range map[string]bool{"tables": true, "key/value": false} {
			t.Run(name+" in "+layout, func(t *testing.T) {
				h := newHandmade(t)
				fill(h)
				l.fillLake(t, h.deployment(), tables)
				plan, err := l.migration(t).Plan(t.Context())
				require.NoError(t, err)
				require.NoError(t, plan.Err())
				l.run(t)
				require.NoError(t, l.verify(t).Err())
				require.Len(t, collect(t, l.migration(t).Graveler.ListCommits(t.Context(), "handmade", "")), len(h.Commits))
				checkSound(t, l.sides)
			})
		}
	}
}

func TestOddThingsOfLakeFSThatCannotMoveOverAreNamed(t *testing.T) {
	l := emptyLake(t)
	for name, c := range map[string]struct {
		make func(h *handmade)
		says string
	}{
		"its own parent": {firstWith(func(_ *handmade, c *lakefs.Commit) { c.Parents = []string{c.ID} }), "it is its own ancestor"},
		"a cycle": {func(h *handmade) {
			a := h.commit("")
			b := h.commit("")
			a.Parents = []string{b.ID}
			h.branch("main", b)
		}, "it is its own ancestor"},
		"4,000 parents": {func(h *handmade) {
			a := h.commit("")
			parents := make([]string, 4000)
			for i := range parents {
				parents[i] = a.ID
			}
			h.branch("main", h.commit("", parents...))
		}, "committer, message and metadata of 280008 bytes"},
		"the year 294276":           {firstWith(func(_ *handmade, c *lakefs.Commit) { c.CreatedAt = time.Date(294276, 1, 1, 0, 0, 0, 0, time.UTC) }), "its creation date is none between"},
		"a commit's version":        {firstWith(func(_ *handmade, c *lakefs.Commit) { c.Version = 2 }), "version 2: 0 or 1 is expected"},
		"a commit ID in upper case": {firstWith(func(_ *handmade, c *lakefs.Commit) { c.ID = strings.ToUpper(c.ID) }), "64 hexadecimal digits are expected"},
		"a file ID in upper case":   {headWith(func(h *handmade) string { return strings.ToUpper(h.metarange(h.rangeOf("a"))) }), "64 lower-case hexadecimal digits are"},
		"a file ID with a path":     {headWith(func(h *handmade) string { h.metarange(h.rangeOf("a")); return "../../etc/passwd" }), `"../../etc/passwd": file of lakeFS is damaged`},
		"a range for a metarange":   {headWith(func(h *handmade) string { return h.rangeOf("a").ID }), `it is of type "ranges"`},
		"a metarange for a range": {headWith(func(h *handmade) string {
			r := h.rangeOf("a")
			r.ID = h.metarange(r)
			return h.metarange(r)
		}), `it is of type "metaranges"`},
		"ranges that overlap": {headWith(func(h *handmade) string { return h.metarange(h.rangeOf("a", "c"), h.rangeOf("b", "d")) }), `range "d": it begins at "b"`},
		"a range twice": {headWith(func(h *handmade) string {
			r := h.rangeOf("a", "c")
			again := r
			again.First, again.Last = []byte("d"), []byte("e")
			return h.metarange(r, again)
		}), "while a metarange that names it says"},
		"a tag of 300 bytes": {firstWith(func(h *handmade, c *lakefs.Commit) {
			h.Tags = []lakefs.Tag{{ID: strings.Repeat("t", 300), Commit: c.ID}}
		}), "at most 200 are allowed"},
		"a tag with dots":                 {firstWith(func(h *handmade, c *lakefs.Commit) { h.Tags = []lakefs.Tag{{ID: "a..b", Commit: c.ID}} }), "must not contain '..'"},
		"a branch like a commit":          {firstWith(func(h *handmade, _ *lakefs.Commit) { h.branch(strings.Repeat("ab", 32), h.Commits[0]) }), "must not look like a commit ID"},
		"a branch of 201 bytes":           {firstWith(func(h *handmade, _ *lakefs.Commit) { h.branch(strings.Repeat("b", 201), h.Commits[0]) }), "at most 200 are allowed"},
		"a branch without name":           {firstWith(func(h *handmade, _ *lakefs.Commit) { h.branch("", h.Commits[0]) }), "must not be empty"},
		"a repository in upper case":      {firstWith(func(h *handmade, _ *lakefs.Commit) { h.ID = "Handmade" }), `repository "Handmade"`},
		"commits and no branch":           {func(h *handmade) { h.commit("") }, "its default branch main does not exist"},
		"a namespace with a query":        {somewhere("s3://bucket/x?y=z"), "a part of its path is none"},
		"a namespace with a percent sign": {somewhere("s3://bucket/100%"), "has a percent sign"},
		"a namespace without scheme":      {somewhere("bucket"), "is not scheme://path"},
		"a long key":                      {withKeys(strings.Repeat("k", 1025)), "key of 1025 bytes"},
	} {
		for layout, tables := range map[string]bool{"tables": true, "key/value": false} {
			t.Run(name+" in "+layout, func(t *testing.T) {
				h := newHandmade(t)
				c.make(h)
				l.fillLake(t, h.deployment(), tables)
				plan, err := l.migration(t).Plan(t.Context())
				require.NoError(t, err)
				_, err = l.migration(t).Run(t.Context())
				require.ErrorContains(t, err, c.says)
				if planned := errors.Join(plan.Problems...); planned != nil {
					require.ErrorContains(t, planned, c.says)
					checkUntouched(t, l.kv)
				}
				require.Empty(t, visible(t, l), "nothing partial")
			})
		}
	}
}

// visible are the repositories that can be used.
func visible(t *testing.T, l *lake) (ids []string) {
	t.Helper()
	for id := range repositoryUIDs(t, l.sides) {
		ids = append(ids, string(id))
	}
	return ids
}
