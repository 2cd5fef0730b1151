// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// A merge knows nothing of versions. One without conflicts loses none all the same: what neither side has removed is there, and
// stays when the branch is mended.
func TestAMergeWithoutConflictsKeepsTheVersionsOfBothSides(t *testing.T) {
	ctx := context.Background()
	e := openEngine(t, "mem:")
	rapid.Check(t, func(t *rapid.T) {
		f := e.bucket(t)
		f.enable(t, VersioningEnabled)
		puts := 0
		change := func(on Bucket) {
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
				c := f.both[rapid.IntRange(0, 1).Draw(t, "process")]
				var err error
				switch rapid.IntRange(0, 4).Draw(t, "change") {
				case 0, 1:
					puts++
					address := fmt.Sprintf("address %d", puts)
					_, err = c.Put(ctx, on, key, Object{PhysicalAddress: address, Checksum: address}, Conditions{})
				case 2:
					_, err = c.Delete(ctx, on, key, DeleteParams{})
				case 3:
					if ids := versionsIn(t, f, on, key); len(ids) > 0 {
						_, err = c.Delete(ctx, on, key, DeleteParams{VersionID: rapid.SampledFrom(ids).Draw(t, "version")})
					}
				case 4:
					err = c.SetVersioning(ctx, f.name, rapid.SampledFrom([]Versioning{VersioningEnabled, VersioningSuspended}).Draw(t, "versioning"))
				}
				require.NoError(t, err)
			}
			_, err := f.Commit(ctx, f.name, graveler.BranchID(on.Ref), graveler.CommitParams{AllowEmpty: true})
			require.NoError(t, err)
		}
		main, other := Bucket{f.name, "main"}, Bucket{f.name, "other"}
		change(main)
		_, err := f.CreateBranch(ctx, f.name, "other", "main")
		require.NoError(t, err)
		base := [][]string{versionsIn(t, f, main, "a"), versionsIn(t, f, main, "b")}
		change(main)
		change(other)
		var want [2][]string
		for i, key := range []string{"a", "b"} {
			ours, theirs := versionsIn(t, f, main, key), versionsIn(t, f, other, key)
			for _, id := range append(ours, theirs...) {
				if !slices.Contains(base[i], id) || slices.Contains(ours, id) && slices.Contains(theirs, id) {
					want[i] = append(want[i], id)
				}
			}
		}
		_, err = f.Merge(ctx, f.name, "other", "main", graveler.MergeParams{CommitParams: graveler.CommitParams{AllowEmpty: true}})
		if errors.Is(err, graveler.ErrConflict) {
			return
		}
		require.NoError(t, err)
		for range 2 {
			for i, key := range []string{"a", "b"} {
				require.Subset(t, versionsIn(t, f, main, key), want[i])
			}
			_, err = f.Mend(ctx, main)
			require.NoError(t, err)
		}
	})
}

// versionsIn returns the IDs of the versions of a key.
func versionsIn(t fataler, f *fixture, b Bucket, key string) (ids []string) {
	t.Helper()
	for v, err := range f.Versions(context.Background(), b, key, "") {
		require.NoError(t, err)
		ids = append(ids, v.VersionID)
	}
	return ids
}

// On one branch a null version was put aside, on the other a null marker was made: both cannot be the null version, and the object is.
func TestANullObjectCountsBesideANullMarker(t *testing.T) {
	ctx := t.Context()
	merged := func(t *testing.T) (f *fixture, current string) {
		f = newFixture(t)
		main, other := Bucket{f.name, "main"}, Bucket{f.name, "other"}
		f.enable(t, VersioningSuspended)
		_, err := f.CreateBranch(ctx, f.name, "other", "main")
		require.NoError(t, err)
		_, err = f.Catalog.Delete(ctx, other, "k", DeleteParams{})
		require.NoError(t, err)
		f.put(t, "k", "null")
		f.enable(t, VersioningEnabled)
		current = f.put(t, "k", "current").VersionID
		for _, b := range []Bucket{main, other} {
			_, err = f.Commit(ctx, f.name, graveler.BranchID(b.Ref), graveler.CommitParams{})
			require.NoError(t, err)
		}
		_, err = f.Merge(ctx, f.name, "other", "main", graveler.MergeParams{})
		require.NoError(t, err)
		return f, current
	}
	isThere := func(t *testing.T, f *fixture) {
		t.Helper()
		require.Equal(t, "null", f.get(t, "k", NullVersion).PhysicalAddress)
		for v, err := range f.Versions(ctx, f.bucket(), "", "") {
			require.NoError(t, err)
			require.False(t, v.VersionID == NullVersion && v.DeleteMarker)
		}
	}
	for name, change := range map[string]func(t *testing.T, f *fixture, current string){
		"nothing": func(*testing.T, *fixture, string) {},
		"mended": func(t *testing.T, f *fixture, _ string) {
			report, err := f.Mend(ctx, f.bucket())
			require.NoError(t, err)
			require.Equal(t, 1, report.Keys)
			require.Equal(t, map[Kind]int{KindCurrent: 1, KindNull: 1}, f.entries(t))
		},
		"overwritten": func(t *testing.T, f *fixture, _ string) { f.put(t, "k", "next") },
		"deleted":     func(t *testing.T, f *fixture, _ string) { f.remove(t, "k", "") },
		"removed for good": func(t *testing.T, f *fixture, current string) {
			f.remove(t, "k", current)
			require.Equal(t, "null", f.get(t, "k", "").PhysicalAddress)
			require.Equal(t, map[Kind]int{KindCurrent: 1}, f.entries(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, current := merged(t)
			isThere(t, f)
			v, err := ReadVersions(ctx, reader{f.Graveler, f.name, "main"}, "k")
			require.NoError(t, err)
			require.True(t, v.Half(markerKey("k"), NullVersion))
			require.False(t, v.Half(nullKey("k"), NullVersion))
			change(t, f, current)
			isThere(t, f)
		})
	}
	t.Run("locked", func(t *testing.T) {
		f, _ := merged(t)
		require.NoError(t, f.SetObjectLock(ctx, f.name, ObjectLockConfig{Enabled: true}))
		require.NoError(t, f.PutLegalHold(ctx, f.bucket(), "k", NullVersion, true))
		_, err := f.Catalog.Delete(ctx, f.bucket(), "k", DeleteParams{VersionID: NullVersion})
		require.ErrorIs(t, err, AccessDenied)
	})
	t.Run("suspended, removed and put again", func(t *testing.T) {
		f, _ := merged(t)
		f.enable(t, VersioningSuspended)
		f.put(t, "k", "next")
		require.Equal(t, "next", f.get(t, "k", NullVersion).PhysicalAddress)
		require.Equal(t, map[Kind]int{KindCurrent: 1, KindNoncurrent: 1}, f.entries(t))
		f.remove(t, "k", NullVersion)
		require.Equal(t, "current", f.get(t, "k", "").PhysicalAddress)
	})
}
