// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// naiveVersions lists the versions of a branch by the rules of S3, each as "key id latest"; a common prefix is as in naiveList.
func naiveVersions(branch modelBranch, p ListVersionsParams) (results []string) {
	for _, key := range slices.Sorted(maps.Keys(branch)) {
		rest, ok := strings.CutPrefix(key, p.Prefix)
		if !ok {
			continue
		}
		if i := strings.Index(rest, p.Delimiter); p.Delimiter != "" && i >= 0 {
			name := key[:len(p.Prefix)+i+len(p.Delimiter)]
			if name > p.KeyMarker && (len(results) == 0 || results[len(results)-1] != common(name)) {
				results = append(results, common(name))
			}
			continue
		}
		k, from := branch[key].clone(), 0
		k.order()
		switch {
		case key < p.KeyMarker, key == p.KeyMarker && p.VersionIDMarker == "":
			continue
		case key == p.KeyMarker:
			from = k.find(p.VersionIDMarker) + 1
		}
		for i := from; i < len(k.versions); i++ {
			results = append(results, versionLine(key, k.versions[i].String(), i == 0 && !k.headless))
		}
	}
	return results
}

// order orders versions that were made at the same time, which only interruptions leave.
func (k *modelKey) order() {
	rest := k.versions
	if !k.headless && len(rest) > 0 {
		rest = rest[1:]
	}
	id := func(v modelVersion) string { return strings.TrimPrefix(v.id, NullVersion) }
	slices.SortFunc(rest, func(a, b modelVersion) int {
		return cmp.Or(cmp.Compare(b.at, a.at), strings.Compare(id(a), id(b)))
	})
}

func versionLine(key, version string, latest bool) string {
	return fmt.Sprintf("%q %s latest=%t", key, version, latest)
}

// versionPages follows the markers to the end.
func (f *fixture) versionPages(t *rapid.T, b Bucket, p ListVersionsParams) (results []string) {
	for {
		p.MaxKeys = drawSize(t)
		page, err := f.ListVersions(context.Background(), b, p)
		require.NoError(t, err)
		type line struct{ key, text string }
		var found []line
		for _, v := range page.Versions {
			found = append(found, line{v.Key, versionLine(v.Key, modelOf(v.Object).String(), v.Latest)})
		}
		require.True(t, slices.IsSortedFunc(found, func(a, b line) int { return strings.Compare(a.key, b.key) }))
		for _, c := range page.CommonPrefixes {
			found = append(found, line{c, common(c)})
		}
		require.LessOrEqual(t, len(found), *p.MaxKeys)
		slices.SortStableFunc(found, func(a, b line) int { return strings.Compare(a.key, b.key) })
		for _, l := range found {
			results = append(results, l.text)
		}
		require.Equal(t, page.Truncated, page.NextKeyMarker != "")
		if !page.Truncated {
			require.Empty(t, page.NextVersionIDMarker)
			return results
		}
		p.KeyMarker, p.VersionIDMarker = page.NextKeyMarker, page.NextVersionIDMarker
	}
}

// history makes versions at random, interrupts some moves, and commits in between.
func (f *fixture) history(t *rapid.T) {
	ctx := context.Background()
	keys := rapid.SliceOfN(listedKey, 1, 5).Draw(t, "keys")
	versioning := VersioningOff
	for range rapid.IntRange(1, 25).Draw(t, "steps") {
		f.clock.Add(rapid.Int64Range(0, 2).Draw(t, "later"))
		key, c := rapid.SampledFrom(keys).Draw(t, "key"), f.both[rapid.IntRange(0, 1).Draw(t, "process")]
		var err error
		switch rapid.IntRange(0, 10).Draw(t, "step") {
		case 0, 1, 2, 3:
			_, err = c.Put(ctx, f.bucket(), key, Object{PhysicalAddress: "x"}, Conditions{})
		case 4, 5:
			_, err = c.Delete(ctx, f.bucket(), key, DeleteParams{})
		case 6:
			var branch modelBranch
			branch, err = f.show("main", false)
			if v := branch[key].versions; err == nil && len(v) > 0 {
				_, err = c.Delete(ctx, f.bucket(), key, DeleteParams{VersionID: rapid.SampledFrom(v).Draw(t, "version").id})
			}
		case 7:
			versioning = rapid.SampledFrom([]Versioning{VersioningEnabled, VersioningEnabled, VersioningSuspended}).Draw(t, "versioning")
			err = c.SetVersioning(ctx, f.name, versioning)
		case 8:
			_, err = f.Graveler.Commit(ctx, f.name, "main", graveler.CommitParams{AllowEmpty: true})
		case 9:
			f.interrupt(t, key, versioning)
		case 10:
			// Someone who knows nothing of versions.
			err = f.Graveler.Delete(ctx, f.name, "main", currentKey(key))
		}
		require.NoError(t, err)
	}
}

// interrupt makes a part of a change of a key, in whichever order, and returns the number of entries that it left out.
func (f *fixture) interrupt(t *rapid.T, key string, versioning Versioning) {
	ctx := context.Background()
	tr := Transition{reader{f.Graveler, f.name, "main"}, versioning, f.now()}
	var entries []graveler.Entry
	var err error
	if rapid.Bool().Draw(t, "put") {
		_, entries, err = tr.Put(ctx, key, Object{PhysicalAddress: "half"})
	} else {
		_, entries, err = tr.Delete(ctx, key)
	}
	require.NoError(t, err)
	switch rapid.IntRange(0, 2).Draw(t, "order") {
	case 1:
		slices.SortFunc(entries, func(x, y graveler.Entry) int { return bytes.Compare(x.Key, y.Key) })
	case 2:
		slices.Reverse(entries)
	}
	require.NoError(t, f.SetMany(ctx, f.name, "main", entries[:rapid.IntRange(0, len(entries)).Draw(t, "steps")]))
}

func TestPagesOfVersionsAreWhatS3Lists(t *testing.T) {
	onMemAndDisk(t, func(t *rapid.T, e *engine) {
		f := e.bucket(t)
		f.history(t)
		for range 6 {
			b, ref := f.bucket(), "main"
			if rapid.IntRange(0, 3).Draw(t, "head") == 0 {
				ref = "main@"
			}
			b.Ref = ref
			branch, err := f.show(ref, false)
			require.NoError(t, err)
			p := ListVersionsParams{Prefix: listedPrefix.Draw(t, "prefix"), Delimiter: listedDelimiter.Draw(t, "delimiter")}
			keys := slices.Sorted(maps.Keys(branch))
			if rapid.Bool().Draw(t, "marker") {
				p.KeyMarker = rapid.OneOf(listedKey, listedPrefix).Draw(t, "key marker")
				if len(keys) > 0 && rapid.Bool().Draw(t, "of a key") {
					p.KeyMarker = rapid.SampledFrom(keys).Draw(t, "key")
					if v := branch[p.KeyMarker].versions; len(v) > 0 && rapid.Bool().Draw(t, "of a version") {
						p.VersionIDMarker = rapid.SampledFrom(v).Draw(t, "version").id
					}
				}
			}
			want := naiveVersions(branch, p)
			require.Equal(t, want, f.versionPages(t, b, p))
			if p.Delimiter == "" && p.VersionIDMarker == "" {
				var all []string
				for v, err := range f.Versions(context.Background(), b, p.Prefix, p.KeyMarker) {
					require.NoError(t, err)
					all = append(all, versionLine(v.Key, modelOf(v.Object).String(), v.Latest))
				}
				require.Equal(t, want, all)
			}
		}
	})
}

func TestAVersionMarkerThatIsGoneLeavesOutNothing(t *testing.T) {
	f := newFixture(t)
	f.put(t, "k", "0")
	f.enable(t, VersioningEnabled)
	var ids []string
	for range 5 {
		ids = append(ids, f.put(t, "k", "x").VersionID)
	}
	slices.Reverse(ids)
	f.put(t, "l", "x")
	// In the order of the listing: ids, the null version.
	for i, id := range ids {
		_, err := f.Catalog.Delete(t.Context(), f.bucket(), "k", DeleteParams{VersionID: id})
		require.NoError(t, err)
		page, err := f.ListVersions(t.Context(), f.bucket(), ListVersionsParams{KeyMarker: "k", VersionIDMarker: id})
		require.NoError(t, err)
		require.Len(t, page.Versions, len(ids)-i+1)
		require.Equal(t, NullVersion, page.Versions[len(ids)-i-1].VersionID)
	}
}

// Versions go from one place to another all the time. None that stays is ever missing, and none is there twice.
func TestAListingMissesNoVersionThatStays(t *testing.T) {
	f := newFixture(t)
	f.enable(t, VersioningEnabled)
	var stays []string
	for i := range 20 {
		stays = append(stays, f.put(t, fmt.Sprint("k", i), "x").VersionID)
	}
	ctx := t.Context()
	var wg sync.WaitGroup
	done := make(chan struct{})
	defer wg.Wait()
	defer close(done)
	for w := range 2 {
		wg.Go(func() {
			for i := w; ; i += 2 {
				select {
				case <-done:
					return
				default:
				}
				// The version that stays goes aside, and back.
				key := fmt.Sprint("k", i%20)
				d, err := f.Catalog.Delete(ctx, f.bucket(), key, DeleteParams{})
				if err == nil && i%3 == 0 {
					_, err = f.Put(ctx, f.bucket(), key, Object{}, Conditions{})
				}
				for err == nil {
					var page VersionPage
					page, err = f.ListVersions(ctx, f.bucket(), ListVersionsParams{Prefix: key, Delimiter: "0", MaxKeys: new(5)})
					rest := slices.DeleteFunc(page.Versions, func(v ListedVersion) bool { return v.Key != key || slices.Contains(stays, v.VersionID) })
					if len(rest) == 0 || err != nil {
						break
					}
					_, err = f.Catalog.Delete(ctx, f.bucket(), key, DeleteParams{VersionID: rest[0].VersionID})
				}
				if err != nil {
					t.Errorf("%v, %v", d, err)
					return
				}
			}
		})
	}
	for range 300 {
		seen := map[string]int{}
		for v, err := range f.Versions(ctx, f.bucket(), "", "") {
			require.NoError(t, err)
			seen[v.VersionID]++
		}
		for _, id := range stays {
			require.Equal(t, 1, seen[id], id)
		}
	}
}

func TestVersionsOfOneKeyAreReadFromTheMarkerOn(t *testing.T) {
	f := newFixture(t)
	f.put(t, "k", "x")
	f.many(t, 20_000, func(i int) string { return string(versionKey("k", newVersionID(int64(i)))) })
	f.engine.kv.Reset()
	page, err := f.ListVersions(t.Context(), f.bucket(), ListVersionsParams{KeyMarker: "k", VersionIDMarker: newVersionID(1000), MaxKeys: new(10)})
	require.NoError(t, err)
	require.Len(t, page.Versions, 10)
	require.True(t, page.Truncated)
	require.LessOrEqual(t, f.engine.kv.Total(), 50, "and not 20,000 versions")
}
