// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Whatever part of a move took place, in whichever order, after Mend every key is in form, it shows the same versions as before,
// but for a delete marker on top where none was current, and nothing else has changed.
func TestHalvesOfEveryMoveAreMended(t *testing.T) {
	onMemAndDisk(t, func(t *rapid.T, e *engine) {
		f := e.bucket(t)
		f.history(t)
		ctx := context.Background()
		before, err := f.show("main", false)
		require.NoError(t, err)
		_, outOfForm := f.show("main", true)
		report, err := f.Mend(ctx, f.bucket())
		require.NoError(t, err)
		after, err := f.show("main", false)
		require.NoError(t, err)
		require.GreaterOrEqual(t, report.Keys, requireMended(t, before, after))
		require.Empty(t, report.Parts)
		if outOfForm == nil {
			require.Zero(t, report.Keys)
		}
		for key, n := range f.formOf(t, "main") {
			require.Equal(t, 1, n, key)
		}
		again, err := f.Mend(ctx, f.bucket())
		require.NoError(t, err)
		require.Equal(t, MendReport{}, again)
	})
}

// requireMended holds a branch after Mend to the versions that it had before, and returns how many keys got a delete marker because none was current.
func requireMended(t fataler, before, after modelBranch) (mended int) {
	t.Helper()
	got := modelBranch{}
	for key, k := range after {
		require.False(t, k.headless, key)
		was := before[key]
		if was.headless && len(was.versions) > 0 {
			require.True(t, k.versions[0].marker)
			k.versions = k.versions[1:]
			mended++
		}
		got[key] = modelKey{versions: k.versions, headless: was.headless}
	}
	require.Empty(t, got.differ(before))
	return mended
}

// formOf counts what is current of each key, and fails where a version is in two places.
func (f *fixture) formOf(t fataler, ref string) map[string]int {
	heads, places := map[string]int{}, map[string]bool{}
	for l, err := range f.Graveler.List(context.Background(), f.name, ref, graveler.ListOptions{}) {
		require.NoError(t, err)
		at, err := ParseKey(l.Key)
		require.NoError(t, err)
		if at.Kind == KindUpload || at.Kind == KindPart {
			continue
		}
		o, err := Decode(*l.Value)
		require.NoError(t, err)
		id := o.VersionID
		if isNull(id) {
			id = NullVersion
		}
		require.False(t, places[at.Key+"\x00"+id], "%q has version %s twice", at.Key, id)
		places[at.Key+"\x00"+id] = true
		heads[at.Key] += 0
		if at.Kind == KindCurrent || at.Kind == KindMarker {
			heads[at.Key]++
			require.True(t, o.NoncurrentSince.IsZero())
		} else {
			require.False(t, o.NoncurrentSince.IsZero(), "%q has version %s", at.Key, id)
		}
	}
	return heads
}

// Each transition, cut after each of its steps in three orders, is mended.
func TestEveryStepOfEveryTransitionIsMended(t *testing.T) {
	e := openEngine(t, "mem:")
	ctx := t.Context()
	starts := map[string]func(f *fixture){
		"nothing":   func(*fixture) {},
		"an object": func(f *fixture) { f.put(t, "k", "1") },
		"a version": func(f *fixture) { f.put(t, "k", "1"); f.enable(t, VersioningEnabled); f.put(t, "k", "2") },
		"a null version": func(f *fixture) {
			f.enable(t, VersioningEnabled)
			f.put(t, "k", "1")
			f.enable(t, VersioningSuspended)
			f.put(t, "k", "2")
		},
		"a marker": func(f *fixture) { f.put(t, "k", "1"); f.enable(t, VersioningEnabled); f.remove(t, "k", "") },
		"a null marker": func(f *fixture) {
			f.enable(t, VersioningEnabled)
			f.put(t, "k", "1")
			f.enable(t, VersioningSuspended)
			f.remove(t, "k", "")
		},
		"a lone marker": func(f *fixture) { f.enable(t, VersioningEnabled); f.remove(t, "k", "") },
		"several markers": func(f *fixture) {
			f.enable(t, VersioningEnabled)
			f.put(t, "k", "1")
			f.remove(t, "k", "")
			f.remove(t, "k", "")
		},
	}
	for start, make := range starts {
		for _, versioning := range []Versioning{VersioningEnabled, VersioningSuspended} {
			for _, kind := range []string{"put", "delete", "delete version"} {
				for _, order := range []string{"given", "by key", "backward"} {
					for steps := 0; ; steps++ {
						name := fmt.Sprintf("%s, %s, %s, %s, %d steps", start, versioning, kind, order, steps)
						f := e.bucket(t)
						make(f)
						f.enable(t, versioning)
						f.clock.Add(1000)
						f.put(t, "another", "x")
						before, err := f.show("main", true)
						require.NoError(t, err)
						entries := f.transition(t, kind, versioning, before["k"])
						switch order {
						case "by key":
							slices.SortFunc(entries, func(x, y graveler.Entry) int { return bytes.Compare(x.Key, y.Key) })
						case "backward":
							slices.Reverse(entries)
						}
						if steps > len(entries) {
							break
						}
						require.NoError(t, f.SetMany(ctx, f.name, "main", entries[:steps]))
						half, err := f.show("main", false)
						require.NoError(t, err)
						report, err := f.Mend(ctx, f.bucket())
						require.NoError(t, err, name)
						if steps == 0 || steps == len(entries) {
							require.Equal(t, MendReport{}, report, name)
						}
						for key, n := range f.formOf(t, "main") {
							require.Equal(t, 1, n, "%s: %s", name, key)
						}
						after, err := f.show("main", false)
						require.NoError(t, err)
						if half["k"].headless && len(half["k"].versions) > 0 {
							after["k"] = modelKey{versions: after["k"].versions[1:], headless: true}
						}
						require.Empty(t, after.differ(half), name)
					}
				}
			}
		}
	}
}

func (f *fixture) remove(t fataler, key, version string) {
	t.Helper()
	_, err := f.Catalog.Delete(context.Background(), f.bucket(), key, DeleteParams{VersionID: version})
	require.NoError(t, err)
}

func (f *fixture) transition(t fataler, kind string, versioning Versioning, k modelKey) (entries []graveler.Entry) {
	t.Helper()
	ctx := context.Background()
	tr := Transition{reader{f.Graveler, f.name, "main"}, versioning, f.now()}
	var err error
	switch {
	case kind == "put":
		_, entries, err = tr.Put(ctx, "k", Object{PhysicalAddress: "next"})
	case kind == "delete":
		_, entries, err = tr.Delete(ctx, "k")
	case len(k.versions) > 0:
		_, entries, err = tr.DeleteVersion(ctx, "k", k.versions[0].id, false)
	}
	require.NoError(t, err)
	return entries
}

func TestPartsWithoutUploadAreRemoved(t *testing.T) {
	f := newFixture(t)
	kept := f.upload(t, "k", bigPart(1, "kept"), bigPart(2, "kept too"))
	var want []string
	for i := range 3 {
		gone := f.upload(t, "k", bigPart(1, fmt.Sprint("gone ", i)))
		want = append(want, fmt.Sprint("gone ", i))
		require.NoError(t, f.Graveler.Delete(t.Context(), f.name, "main", gone.place()))
	}
	report, err := f.Mend(t.Context(), f.bucket())
	require.NoError(t, err)
	var addresses []string
	for _, p := range report.Parts {
		addresses = append(addresses, p.PhysicalAddress)
	}
	slices.Sort(addresses)
	require.Equal(t, want, addresses)
	require.Zero(t, report.Keys)
	page, err := f.ListParts(t.Context(), f.bucket(), "k", kept.UploadID, ListPartsParams{})
	require.NoError(t, err)
	require.Len(t, page.Parts, 2)
	require.Equal(t, map[Kind]int{KindUpload: 1, KindPart: 2}, f.entries(t))
}

// What is in form costs one read per key, besides the listing of the versions.
func TestMendLooksOnceAtWhatIsInForm(t *testing.T) {
	f := newFixture(t)
	f.enable(t, VersioningEnabled)
	const keys = 50
	for i := range keys {
		for range i%3 + 1 {
			f.put(t, fmt.Sprint("k", i), "x")
		}
		if i%5 == 0 {
			f.remove(t, fmt.Sprint("k", i), "")
		}
	}
	for range nearby + 5 {
		f.put(t, "many", "x")
	}
	store := &interposed{Store: f.Graveler, before: func(int) {}}
	c, err := New(Config{Store: store, Now: f.now})
	require.NoError(t, err)
	report, err := c.Mend(t.Context(), Bucket{f.name, "main"})
	require.NoError(t, err)
	require.Equal(t, MendReport{}, report)
	require.LessOrEqual(t, store.reads, keys+4)
}
