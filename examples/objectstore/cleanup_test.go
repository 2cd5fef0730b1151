// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// Bytes of which no entry was ever put, as a crash leaves them, go when they have been seen twice, a day apart.
func TestBytesWithoutEntryGoADayAfterTheyWereSeen(t *testing.T) {
	f := newBucket(t)
	f.put("k", "stays")
	address := f.bytes.allocate(bucket)
	_, _, err := f.bytes.write(address, strings.NewReader("of a crash"))
	require.NoError(t, err)
	f.bytes.settle(address)
	f.files.advance(72 * time.Hour)
	for _, later := range []time.Duration{0, 23 * time.Hour, time.Hour - time.Minute} {
		f.files.advance(later)
		require.NoError(t, f.cleaner.clean(t.Context()))
		require.Contains(t, f.addresses(), address, "%v", later)
	}
	f.files.advance(2 * time.Minute)
	require.NoError(t, f.cleaner.clean(t.Context()))
	require.Equal(t, []string{f.address("k")}, f.addresses())
}

// A look that was noted under a clock that was wrong is begun again, at once.
func TestALookInTheFutureDoesNotCount(t *testing.T) {
	f := newBucket(t)
	f.put("k", "one")
	overwritten := f.address("k")
	f.put("k", "two")
	require.NoError(t, f.bytes.noteLook(bucket, map[string]time.Time{overwritten: time.Now().AddDate(10, 0, 0)}))
	require.NoError(t, f.cleaner.clean(t.Context()))
	require.Contains(t, f.addresses(), overwritten)
	f.days(1)
	require.NotContains(t, f.addresses(), overwritten)
}

func TestBytesThatWereOverwrittenBeforeACommitGo(t *testing.T) {
	f := newBucket(t)
	for _, content := range []string{"one", "two", "three"} {
		f.put("k", content)
	}
	require.Len(t, f.addresses(), 3)
	f.days(2)
	require.Equal(t, []string{f.address("k")}, f.addresses())
	require.Equal(t, "three", f.do(http.MethodGet, object("k"), "").is(http.StatusOK).body)
}

// gate holds transactions back.
type gate struct {
	*moraine.Store
	reached, open chan struct{}
}

func (g *gate) Transact(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, change func(context.Context, *graveler.Transaction) error) error {
	g.reached <- struct{}{}
	<-g.open
	return g.Store.Transact(ctx, repo, branch, change)
}

// A put that has written its bytes, and puts its entry days later, after looks that found nothing which refers to them, is a put like any other.
func TestAPutThatTakesDaysIsSafe(t *testing.T) {
	g := &gate{reached: make(chan struct{}), open: make(chan struct{})}
	f := newFixture(t, t.TempDir(), func(s *moraine.Store) catalog.Store {
		g.Store = s
		return g
	})
	f.do(http.MethodPut, "/"+bucket, "").is(http.StatusOK)
	done := make(chan response, 1)
	go func() { done <- f.do(http.MethodPut, object("k"), "slow") }()
	<-g.reached
	f.days(3)
	close(g.open)
	(<-done).is(http.StatusOK)
	f.days(3)
	require.Equal(t, "slow", f.do(http.MethodGet, object("k"), "").is(http.StatusOK).body)
}

// Retention hands out the bytes of what was deleted and is in no commit any more, and of nothing else: not those of copies, edits and older versions.
func TestRetentionRemovesTheBytesOfWhatWasDeletedAndOnlyThose(t *testing.T) {
	f := newBucket(t)
	ctx := t.Context()
	for _, key := range []string{"deleted", "copied", "edited", "kept"} {
		f.put(key, key)
	}
	f.do(http.MethodPut, "/"+bucket+"?versioning", "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>").is(http.StatusOK)
	f.put("versions", "one")
	deleted := f.address("deleted")
	first := f.commit()

	f.put("versions", "two")
	_, err := f.catalog.Copy(ctx, photos, "copied", photos, "copy", catalog.CopyParams{})
	require.NoError(t, err)
	require.NoError(t, f.catalog.PutTagging(ctx, photos, "edited", "", map[string]string{"a": "b"}))
	for _, key := range []string{"deleted", "copied"} {
		f.do(http.MethodDelete, object(key)+"?versionId=null", "").is(http.StatusNoContent)
	}
	f.commit()
	require.NoError(t, f.cleaner.setRetention(ctx, bucket))
	days := func(n int) { // without a sweep, which would find the bytes too, later
		for range n {
			f.files.advance(24*time.Hour + time.Minute)
			require.NoError(t, f.cleaner.checkpoint(ctx, bucket))
			require.NoError(t, f.cleaner.retain(ctx, bucket))
		}
	}
	days(1)
	require.Contains(t, f.addresses(), deleted, "a commit of the last day has it")
	o, err := f.catalog.Get(ctx, catalog.Bucket{Repository: bucket, Ref: first}, "deleted", catalog.GetParams{})
	require.NoError(t, err)
	require.Equal(t, deleted, o.PhysicalAddress)

	f.put("today", "today") // so that what was committed first is not what the head follows
	f.commit()
	f.put("today", "again")
	days(8)
	require.NotContains(t, f.addresses(), deleted)
	for key, content := range map[string]string{"copy": "copied", "edited": "edited", "kept": "kept", "versions": "two", "today": "again"} {
		require.Equal(t, content, f.do(http.MethodGet, object(key), "").is(http.StatusOK).body)
	}
	require.Equal(t, f.referred(), f.addresses())
	var listed struct{ Version []listedVersion }
	f.do(http.MethodGet, "/"+bucket+"?versions&prefix=versions", "").is(http.StatusOK).xml(&listed)
	require.Len(t, listed.Version, 2)
	for _, v := range listed.Version {
		f.do(http.MethodGet, object("versions")+"?versionId="+v.VersionId, "").is(http.StatusOK)
	}
}

// What is brought back from a commit in time has its bytes for good, whichever way it comes.
func TestBytesOfWhatIsBroughtBackStay(t *testing.T) {
	for name, bring := range map[string]func(f *fixture, from string) error{
		"copy": func(f *fixture, from string) error {
			_, err := f.catalog.Copy(context.Background(), catalog.Bucket{Repository: bucket, Ref: from}, "k", photos, "k", catalog.CopyParams{})
			return err
		},
		"reset": func(f *fixture, from string) error {
			_, err := f.store.Reset(context.Background(), bucket, "main", from, graveler.ResetParams{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newBucket(t)
			f.put("k", "again")
			from := f.commit()
			f.do(http.MethodDelete, object("k"), "").is(http.StatusNoContent)
			f.commit()
			f.put("other", "x")
			f.commit()
			f.days(1)
			require.NoError(t, bring(f, from))
			f.days(8)
			require.Equal(t, "again", f.do(http.MethodGet, object("k"), "").is(http.StatusOK).body)
			require.Equal(t, f.referred(), f.addresses())
		})
	}
}

// An object that goes from key to key is never away, however the look falls.
func TestBytesOfWhatMovesStay(t *testing.T) {
	f := newBucket(t)
	f.put("k0", "moving")
	for day := range 6 {
		from, to := []string{"k0", "k1"}[day%2], []string{"k1", "k0"}[day%2]
		_, err := f.catalog.Copy(t.Context(), photos, from, photos, to, catalog.CopyParams{})
		require.NoError(t, err)
		f.do(http.MethodDelete, object(from), "").is(http.StatusNoContent)
		f.days(1)
	}
	require.Equal(t, "moving", f.do(http.MethodGet, object("k0"), "").is(http.StatusOK).body)
}

// A step that fails ends the clean-up of the bucket, and the next one goes on.
func TestErrorsKeepBytes(t *testing.T) {
	f := newBucket(t)
	f.put("k", "one")
	f.put("k", "two")
	f.days(1)
	before := f.addresses()
	require.Len(t, before, 2)
	require.NoError(t, f.store.SetReadOnly(t.Context(), bucket, true))
	f.files.advance(48 * time.Hour)
	require.Error(t, f.cleaner.clean(t.Context()))
	require.Equal(t, before, f.addresses())
	require.NoError(t, f.store.SetReadOnly(t.Context(), bucket, false))
	f.days(1)
	require.Equal(t, []string{f.address("k")}, f.addresses())
}

// Bytes are left alone for which there is no metadata: those may be of another day or place.
func TestBytesOfAnUnknownBucketStay(t *testing.T) {
	f := newBucket(t)
	f.put("k", "one")
	require.NoError(t, f.store.DeleteRepository(t.Context(), bucket))
	for range 3 {
		f.files.advance(48 * time.Hour)
		require.ErrorIs(t, f.cleaner.clean(t.Context()), graveler.ErrRepositoryNotFound)
	}
	require.Len(t, f.addresses(), 1)
}

// What others keep in the directory, and in entries of the bucket, is none of ours.
func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	f := newBucket(t)
	f.put("k", "one")
	require.NoError(t, f.bytes.root.WriteFile(bucket+"/notes.txt", []byte("x"), 0o600))
	_, err := f.catalog.Put(t.Context(), photos, "elsewhere", catalog.Object{PhysicalAddress: "../../etc/passwd", Size: 1}, catalog.Conditions{})
	require.NoError(t, err)
	f.do(http.MethodGet, object("elsewhere"), "").fails(catalog.InternalError)
	f.commit()
	f.do(http.MethodDelete, object("elsewhere"), "").is(http.StatusNoContent)
	f.do(http.MethodDelete, object("k"), "").is(http.StatusNoContent)
	f.commit()
	f.put("k2", "two")
	f.days(9)
	require.Equal(t, slices.Sorted(slices.Values([]string{f.address("k2"), bucket + "/notes.txt"})), f.addresses())
}
