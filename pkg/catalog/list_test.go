// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// listedKey draws keys that share prefixes and have delimiters, zero bytes and what these are escaped to anywhere.
var listedKey = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "/", "/", "//", "ab", "-", "\x00", "\x00\x01", "\xff", "\x01", "é", "c", "v", "0", strings.Repeat("long", 100)}), 0, 6).Draw(t, "parts")
	key := rapid.SampledFrom([]string{"a", "/", "\x01", "\xff", "é"}).Draw(t, "first") + strings.Join(parts, "")
	return key[:min(len(key), MaxKeyBytes)]
})

var (
	listedPrefix    = rapid.OneOf(rapid.Just(""), rapid.Just("a"), rapid.Just("a/"), rapid.Just("\x00"), rapid.Just("\x00v"), listedKey)
	listedDelimiter = rapid.SampledFrom([]string{"", "/", "/", "//", "\x00", "\xff", "a", "\x01", "c", "v", "0", "é", "a/", "\xc3", "n"})
)

func drawSize(t *rapid.T) *int {
	return new(rapid.SampledFrom([]int{1, 1, 2, 3, 7, 1000, 5000}).Draw(t, "size"))
}

// naiveList lists by the rules of S3: of the keys behind startAfter the results behind marker. A common prefix ends in
// "\x00prefix", which no key does.
func naiveList(keys []string, p ListParams) (results []string) {
	for _, k := range slices.Sorted(slices.Values(keys)) {
		if !strings.HasPrefix(k, p.Prefix) || k <= p.StartAfter {
			continue
		}
		result, name := k, k
		if i := strings.Index(k[len(p.Prefix):], p.Delimiter); p.Delimiter != "" && i >= 0 {
			name = k[:len(p.Prefix)+i+len(p.Delimiter)]
			result = common(name)
		}
		if name > p.Marker && (len(results) == 0 || results[len(results)-1] != result) {
			results = append(results, result)
		}
	}
	return results
}

func common(prefix string) string { return prefix + "\x00prefix" }

// pages follows tokens, or markers, to the end.
func (f *fixture) pages(t *rapid.T, b Bucket, p ListParams, markers bool) (results []string) {
	for {
		if n := len(results); n > 0 || !markers {
			p.MaxKeys = drawSize(t)
		}
		page, err := f.Catalog.List(context.Background(), b, p)
		require.NoError(t, err)
		if p.MaxKeys != nil {
			require.LessOrEqual(t, len(page.Objects)+len(page.CommonPrefixes), min(*p.MaxKeys, MaxListed))
		}
		var found []string
		for _, o := range page.Objects {
			require.Equal(t, strings.ToValidUTF8(o.Key, "?"), o.PhysicalAddress)
			found = append(found, o.Key)
		}
		require.True(t, slices.IsSorted(found))
		require.True(t, slices.IsSorted(page.CommonPrefixes))
		for _, c := range page.CommonPrefixes {
			found = append(found, common(c))
		}
		slices.SortFunc(found, func(a, b string) int {
			return strings.Compare(strings.TrimSuffix(a, "\x00prefix"), strings.TrimSuffix(b, "\x00prefix"))
		})
		results = append(results, found...)
		require.Equal(t, page.Truncated, page.NextMarker != "")
		require.Equal(t, page.Truncated, page.NextContinuationToken != "")
		if !page.Truncated {
			return results
		}
		require.NotEmpty(t, found)
		require.Equal(t, strings.TrimSuffix(found[len(found)-1], "\x00prefix"), page.NextMarker)
		if markers {
			p.Marker = page.NextMarker
		} else {
			p.ContinuationToken, p.StartAfter = page.NextContinuationToken, listedKey.Draw(t, "not looked at")
		}
	}
}

// fill puts and deletes objects, some of which are committed in between.
func (f *fixture) fill(t *rapid.T, b Bucket) (keys, committed map[string]bool) {
	keys, committed = map[string]bool{}, map[string]bool{}
	for range rapid.IntRange(1, 3).Draw(t, "commits") {
		var entries []graveler.Entry
		for _, k := range rapid.SliceOfN(listedKey, 0, 30).Draw(t, "keys") {
			if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
				entries = append(entries, graveler.Entry{Key: currentKey(k)})
				delete(keys, k)
				continue
			}
			v, err := Encode(Object{PhysicalAddress: strings.ToValidUTF8(k, "?"), ModifiedAt: f.now()})
			require.NoError(t, err)
			entries = append(entries, graveler.Entry{Key: currentKey(k), Value: &v})
			keys[k] = true
		}
		// What else a bucket has.
		v, err := Encode(Object{VersionID: NullVersion, DeleteMarker: true})
		require.NoError(t, err)
		u, err := (&Upload{}).value()
		require.NoError(t, err)
		entries = append(entries, graveler.Entry{Key: markerKey("a/gone"), Value: &v}, graveler.Entry{Key: uploadKey("a", newUploadID(1)), Value: &u})
		require.NoError(t, f.SetMany(context.Background(), f.name, "main", entries))
		if rapid.Bool().Draw(t, "commit") {
			_, err := f.Graveler.Commit(context.Background(), f.name, "main", graveler.CommitParams{AllowEmpty: true})
			require.NoError(t, err)
			committed = maps.Clone(keys)
		}
	}
	return keys, committed
}

func TestPagesOfObjectsAreWhatS3Lists(t *testing.T) {
	onMemAndDisk(t, func(t *rapid.T, e *engine) {
		f := e.bucket(t)
		keys, committed := f.fill(t, f.bucket())
		for range 6 {
			b, of := f.bucket(), keys
			if rapid.IntRange(0, 3).Draw(t, "head") == 0 {
				b.Ref, of = "main@", committed
			}
			p := ListParams{Prefix: listedPrefix.Draw(t, "prefix"), Delimiter: listedDelimiter.Draw(t, "delimiter")}
			if rapid.Bool().Draw(t, "behind") {
				p.StartAfter = rapid.OneOf(listedKey, listedPrefix).Draw(t, "start after")
			}
			require.Equal(t, naiveList(slices.Collect(maps.Keys(of)), p), f.pages(t, b, p, false))
			p.Marker, p.StartAfter = p.StartAfter, ""
			require.Equal(t, naiveList(slices.Collect(maps.Keys(of)), p), f.pages(t, b, p, true))
			var all []string
			for o, err := range f.Objects(context.Background(), b, p.Prefix, p.Marker) {
				require.NoError(t, err)
				all = append(all, o.Key)
			}
			require.Equal(t, naiveList(slices.Collect(maps.Keys(of)), ListParams{Prefix: p.Prefix, StartAfter: p.Marker}), all)
		}
	})
}

// onMemAndDisk checks a property on an engine in memory, and, less often, on disk.
func onMemAndDisk(t *testing.T, property func(t *rapid.T, e *engine)) {
	t.Run("mem", func(t *testing.T) {
		e := openEngine(t, "mem:")
		for range rounds() {
			rapid.Check(t, func(t *rapid.T) { property(t, e) })
		}
	})
	t.Run("bolt", func(t *testing.T) {
		e := openEngine(t, "bolt:"+t.TempDir()+"/store")
		few(t, func(t *rapid.T) { property(t, e) })
	})
}

func TestAPageOfKeysInCommonPrefixes(t *testing.T) {
	f := newFixture(t)
	for _, k := range []string{"a", "a/1", "a/2", "a//3", "b", "c/1/x", "c/1/y", "c/2"} {
		f.put(t, k, k)
	}
	for _, c := range []struct {
		p       ListParams
		objects []string
		common  []string
	}{
		{ListParams{}, []string{"a", "a//3", "a/1", "a/2", "b", "c/1/x", "c/1/y", "c/2"}, nil},
		{ListParams{Delimiter: "/"}, []string{"a", "b"}, []string{"a/", "c/"}},
		{ListParams{Prefix: "a/", Delimiter: "/"}, []string{"a/1", "a/2"}, []string{"a//"}},
		{ListParams{Prefix: "a", Delimiter: "/"}, []string{"a"}, []string{"a/"}},
		{ListParams{Prefix: "c", Delimiter: "1/"}, []string{"c/2"}, []string{"c/1/"}},
		{ListParams{Prefix: "c/1/x", Delimiter: "/"}, []string{"c/1/x"}, nil},
		{ListParams{Prefix: "a/", Delimiter: "//"}, []string{"a//3", "a/1", "a/2"}, nil}, // a prefix that ends inside the delimiter
		{ListParams{Delimiter: "//"}, []string{"a", "a/1", "a/2", "b", "c/1/x", "c/1/y", "c/2"}, []string{"a//"}},
		{ListParams{Delimiter: "/", StartAfter: "a"}, []string{"b"}, []string{"a/", "c/"}},
		{ListParams{Delimiter: "/", StartAfter: "a/"}, []string{"b"}, []string{"a/", "c/"}},
		{ListParams{Delimiter: "/", StartAfter: "a/1"}, []string{"b"}, []string{"a/", "c/"}},
		{ListParams{Delimiter: "/", StartAfter: "a/2"}, []string{"b"}, []string{"c/"}},
		{ListParams{Delimiter: "/", Marker: "a/"}, []string{"b"}, []string{"c/"}},
		{ListParams{Delimiter: "/", Marker: "a/1"}, []string{"b"}, []string{"c/"}},
		{ListParams{Prefix: "b", Marker: "c"}, nil, nil},
		{ListParams{Prefix: "c/", StartAfter: "a"}, []string{"c/1/x", "c/1/y", "c/2"}, nil},
		{ListParams{Prefix: "\x00"}, nil, nil},
		{ListParams{Prefix: strings.Repeat("k", 2000), Delimiter: "/"}, nil, nil},
		{ListParams{MaxKeys: new(0)}, nil, nil},
	} {
		page, err := f.Catalog.List(t.Context(), f.bucket(), c.p)
		require.NoError(t, err)
		var objects []string
		for _, o := range page.Objects {
			objects = append(objects, o.Key)
		}
		require.Equal(t, c.objects, objects, "%+v", c.p)
		require.Equal(t, c.common, page.CommonPrefixes, "%+v", c.p)
		require.False(t, page.Truncated)
	}
}

func TestBadListingsAreRefused(t *testing.T) {
	f := newFixture(t)
	f.put(t, "a", "a")
	token := continuationToken("a")
	for _, p := range []ListParams{
		{MaxKeys: new(-1)}, {ContinuationToken: "a"}, {ContinuationToken: token + "A"}, {ContinuationToken: token[:len(token)-1]}, {ContinuationToken: strings.ToUpper(token)}, {ContinuationToken: continuationToken("")},
		{Marker: "a", StartAfter: "a"}, {Marker: "a", ContinuationToken: token},
	} {
		_, err := f.Catalog.List(t.Context(), f.bucket(), p)
		require.ErrorIs(t, err, InvalidArgument, "%+v", p)
	}
	for _, p := range []ListVersionsParams{{MaxKeys: new(-1)}, {VersionIDMarker: newVersionID(1)}, {KeyMarker: "a", VersionIDMarker: "no version"}} {
		_, err := f.ListVersions(t.Context(), f.bucket(), p)
		require.ErrorIs(t, err, InvalidArgument, "%+v", p)
	}
	_, err := f.ListUploads(t.Context(), f.bucket(), ListUploadsParams{MaxUploads: -1})
	require.ErrorIs(t, err, InvalidArgument)
	nowhere := Bucket{Repository: "nowhere"}
	for _, size := range []*int{nil, new(0)} {
		_, err = f.Catalog.List(t.Context(), nowhere, ListParams{MaxKeys: size})
		require.Equal(t, NoSuchBucket, CodeOf(err))
		_, err = f.ListVersions(t.Context(), nowhere, ListVersionsParams{MaxKeys: size})
		require.Equal(t, NoSuchBucket, CodeOf(err))
	}
	_, err = f.ListUploads(t.Context(), nowhere, ListUploadsParams{})
	require.Equal(t, NoSuchBucket, CodeOf(err))
}

func TestAPageIsAtMostAThousand(t *testing.T) {
	f := newFixture(t)
	f.many(t, 1001, func(i int) string { return fmt.Sprintf("%04d", i) })
	page, err := f.Catalog.List(t.Context(), f.bucket(), ListParams{MaxKeys: new(2000)})
	require.NoError(t, err)
	require.Len(t, page.Objects, MaxListed)
	require.True(t, page.Truncated)
	versions, err := f.ListVersions(t.Context(), f.bucket(), ListVersionsParams{})
	require.NoError(t, err)
	require.Len(t, versions.Versions, MaxListed)
	require.True(t, versions.Truncated)
}

// many stages objects.
func (f *fixture) many(t testing.TB, n int, key func(i int) string) {
	t.Helper()
	entries := make([]graveler.Entry, n)
	for i := range entries {
		at, err := ParseKey(graveler.Key(key(i)))
		require.NoError(t, err)
		v, err := Encode(Object{PhysicalAddress: fmt.Sprintf("s3://bucket/data/%d", i), Size: int64(i), Checksum: "d41d8cd98f00b204e9800998ecf8427e", ModifiedAt: f.now(), VersionID: at.VersionID})
		require.NoError(t, err)
		entries[i] = graveler.Entry{Key: graveler.Key(key(i)), Value: &v}
	}
	require.NoError(t, f.SetMany(context.Background(), f.name, "main", entries))
}

func TestEncodedKeysAreReadBack(t *testing.T) {
	require.Equal(t, "test_file%283%29.png", EncodeKey("test_file(3).png"))
	require.Equal(t, "a/b%20c%2B%C3%A9%00-_.*%7E", EncodeKey("a/b c+é\x00-_.*~"))
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(listedKey, rapid.String()).Draw(t, "key")
		for _, decode := range []func(string) (string, error){url.QueryUnescape, url.PathUnescape} {
			back, err := decode(EncodeKey(key))
			require.NoError(t, err)
			require.Equal(t, key, back)
		}
	})
}

// A page reads as much as it has results, however much is below a common prefix, committed or not.
func TestAPageReadsNothingBelowCommonPrefixes(t *testing.T) {
	for _, committed := range []bool{false, true} {
		t.Run(fmt.Sprintf("committed=%t", committed), func(t *testing.T) { deepPrefix(t, 100_000, committed) })
	}
}

func deepPrefix(t *testing.T, n int, committed bool) {
	e, blocks, steps := openCounted(t)
	f := e.bucket(t)
	deep := func(i int) string { return fmt.Sprintf("deep/%07d", i) }
	f.many(t, n, deep)
	f.many(t, n/10, func(i int) string { return string(versionKey(deep(i), newVersionID(int64(i)))) })
	f.many(t, 1500, func(i int) string { return fmt.Sprintf("flat/%d/x", i) })
	f.put(t, "zz", "zz")
	if committed {
		_, err := f.Graveler.Commit(t.Context(), f.name, "main", graveler.CommitParams{})
		require.NoError(t, err)
	}
	cost := func(what string, results int, list func()) {
		f.engine.kv.Reset()
		blocks.Reset()
		steps.steps.Store(0)
		list()
		counts := blocks.Counts()
		t.Logf("%s: %v, %d steps, %d blocks", what, f.engine.kv.Counts(), steps.steps.Load(), counts.GetRange.Calls)
		require.LessOrEqual(t, f.engine.kv.Total(), 40, what)
		require.LessOrEqual(t, int(steps.steps.Load()), 10+2*results, what)
		require.LessOrEqual(t, counts.Get.Calls+counts.GetRange.Calls, 60, what)
	}
	for _, after := range []string{"", "a", "deep/", "deep/0000100"} {
		cost("list after "+after, 3, func() {
			page, err := f.Catalog.List(t.Context(), f.bucket(), ListParams{Delimiter: "/", StartAfter: after})
			require.NoError(t, err)
			require.Equal(t, []string{"deep/", "flat/"}, page.CommonPrefixes)
			require.Len(t, page.Objects, 1)
		})
	}
	cost("list versions", 1200, func() {
		page, err := f.ListVersions(t.Context(), f.bucket(), ListVersionsParams{Delimiter: "/"})
		require.NoError(t, err)
		require.Equal(t, []string{"deep/", "flat/"}, page.CommonPrefixes)
		require.Len(t, page.Versions, 1)
	})
	cost("a page of common prefixes", 1000, func() {
		page, err := f.Catalog.List(t.Context(), f.bucket(), ListParams{Prefix: "flat/", Delimiter: "/"})
		require.NoError(t, err)
		require.Len(t, page.CommonPrefixes, 1000)
		require.True(t, page.Truncated)
	})
}

// listings are pages of a thousand results of 1,000 common prefixes and a plain one, of n keys.
func listings(b *testing.B, n int, committed bool) {
	e, _, _ := openCounted(b)
	f := e.bucket(b)
	f.many(b, n, func(i int) string { return fmt.Sprintf("%04d/%07d", i%2000, i) })
	if committed {
		_, err := f.Graveler.Commit(b.Context(), f.name, "main", graveler.CommitParams{})
		require.NoError(b, err)
	}
	for _, delimiter := range []string{"", "/"} {
		b.Run(fmt.Sprintf("keys=%d/committed=%t/delimiter=%q", n, committed, delimiter), func(b *testing.B) {
			for b.Loop() {
				page, err := f.Catalog.List(b.Context(), f.bucket(), ListParams{Delimiter: delimiter, StartAfter: "0500"})
				require.NoError(b, err)
				require.Len(b, page.Objects, 1000*(1-len(delimiter)))
				require.Len(b, page.CommonPrefixes, 1000*len(delimiter))
			}
		})
	}
}

func BenchmarkAPageOfAThousand(b *testing.B) {
	sizes := []int{100_000}
	if os.Getenv("MORAINE_NIGHTLY") != "" {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		for _, committed := range []bool{false, true} {
			listings(b, n, committed)
		}
	}
}

func FuzzParseContinuationToken(f *testing.F) {
	f.Add(continuationToken("a"))
	f.Fuzz(func(t *testing.T, token string) {
		last, err := parseContinuationToken(token)
		if err == nil {
			require.Equal(t, token, continuationToken(last))
		} else {
			require.ErrorIs(t, err, InvalidArgument)
		}
	})
}
