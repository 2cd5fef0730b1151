// SPDX-License-Identifier: Apache-2.0

package walker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

const bucket graveler.RepositoryID = "lake"

// Keys of which some begin with others, some have zero bytes, and none is far from another.
var anyKey = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "\x00", "\xff", "/"}), 0, 3), func(s []string) string { return "a" + strings.Join(s, "") })

// A tree shows of each key what the catalog lists, and the uploads.
func TestATreeShowsWhatTheCatalogLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := t.Context()
		store := mem.New()
		g, err := graveler.New(graveler.Config{Refs: ref.New(store), Staging: staging.New(store), Trees: memtrees.New()})
		require.NoError(t, err)
		c, err := catalog.New(catalog.Config{Store: g})
		require.NoError(t, err)
		in := catalog.Bucket{Repository: bucket}
		require.NoError(t, c.CreateBucket(ctx, bucket, catalog.CreateBucketParams{}))
		uploads := map[string]int{}
		for range rapid.IntRange(0, 25).Draw(t, "changes") {
			key := anyKey.Draw(t, "key")
			switch rapid.IntRange(0, 7).Draw(t, "change") {
			case 0:
				require.NoError(t, c.SetVersioning(ctx, bucket, rapid.SampledFrom([]catalog.Versioning{catalog.VersioningEnabled, catalog.VersioningSuspended}).Draw(t, "versioning")))
			case 1, 2:
				_, err = c.Delete(ctx, in, key, catalog.DeleteParams{})
			case 3:
				_, err = c.CreateUpload(ctx, in, key, catalog.Object{})
				uploads[key]++
			default:
				_, err = c.Put(ctx, in, key, catalog.Object{PhysicalAddress: "x"}, catalog.Conditions{})
			}
			require.NoError(t, err)
		}
		_, err = g.Commit(ctx, bucket, "main", graveler.CommitParams{Committer: "user", AllowEmpty: true})
		require.NoError(t, err)

		expected := map[string][]string{}
		for l, err := range c.Versions(ctx, in, "", "") {
			require.NoError(t, err)
			kind := "noncurrent"
			if l.Latest && l.DeleteMarker {
				kind = "marker"
			} else if l.Latest {
				kind = "current"
			}
			expected[l.Key] = append(expected[l.Key], kind)
		}
		for key, n := range uploads {
			expected[key] = append(expected[key], slices.Repeat([]string{"upload"}, n)...)
		}
		head, err := g.ResolveRef(ctx, bucket, "main")
		require.NoError(t, err)
		tree, err := walker.Open(ctx, g, bucket, head.Tree, catalog.VersioningEnabled)
		require.NoError(t, err)
		found, last := map[string][]string{}, ""
		after := rapid.OneOf(rapid.Just(""), anyKey).Draw(t, "after")
		for group, err := range tree.Groups(after) {
			require.NoError(t, err)
			require.Greater(t, group.Key, max(last, after))
			last = group.Key
			if rapid.IntRange(0, 4).Draw(t, "skip") == 0 { // not everything is looked at
				delete(expected, group.Key)
				continue
			}
			for o, err := range group.Objects(ctx) {
				require.NoError(t, err)
				require.Equal(t, group.Key, o.Key)
				versions := len(found[group.Key])
				found[group.Key] = append(found[group.Key], o.Kind.String())
				if o.Kind == lifecycle.Noncurrent {
					require.Equal(t, versions-1, o.NewerNoncurrent, "behind the current one")
				}
			}
		}
		for key := range expected {
			if key <= after {
				delete(expected, key)
			}
		}
		require.Equal(t, expected, found)
		for key, kinds := range found { // and by seeking
			var again []string
			for o, err := range tree.Group(key).Objects(ctx) {
				require.NoError(t, err)
				again = append(again, o.Kind.String())
				one, err := walker.Open(ctx, g, bucket, head.Tree, catalog.VersioningEnabled)
				require.NoError(t, err)
				seen, err := one.Object(ctx, o.Entry, 1<<20)
				require.NoError(t, err)
				o.Value = seen.Value // which listings do not tell
				require.Equal(t, o, seen)
				require.NoError(t, one.Close())
			}
			require.Equal(t, kinds, again)
		}
		require.NoError(t, tree.Close())
	})
}

func TestPrefixesCoverWhatBeginsWithOneOfThem(t *testing.T) {
	anyPrefix := rapid.StringMatching(`[ab/]{0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		var actions []*engine.CompiledAction
		prefixes := rapid.SliceOfN(anyPrefix, 0, 5).Draw(t, "prefixes")
		for _, p := range prefixes {
			actions = append(actions, &engine.CompiledAction{Action: lifecycle.Action{Rule: &lifecycle.Rule{Filter: lifecycle.Filter{Prefix: &p}}}})
		}
		p := walker.PrefixesOf(actions)
		for range 10 {
			key := "a" + anyPrefix.Draw(t, "key")
			expected := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
			require.Equal(t, expected, p.CoverKey(key))
			for _, entry := range []string{key, "\x00v" + key + "\x00\x01c", "\x00u" + key + "\x00\x01" + fmt.Sprintf("%024x", 1)} {
				require.Equal(t, expected, p.Cover(graveler.Key(entry)), "%q", entry)
			}
		}
	})
}
