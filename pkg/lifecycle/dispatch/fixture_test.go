// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

const bucket = "bucket"

// fixture is a bucket whose clock goes on by a second with each change.
type fixture struct {
	testing.TB
	*graveler.Graveler
	catalog *catalog.Catalog
	clock   time.Time
	mover   dispatch.Mover
	// between, where it is set, is called once, when the first changes of a move have been built.
	between func()
	refuse  error // of the hook
	moves   int   // builds of trees
	bare    bool  // items do not tell what is known of their objects
}

func newFixture(t testing.TB, v catalog.Versioning) *fixture {
	t.Helper()
	f := &fixture{TB: t, clock: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	store := mem.New()
	now := func() time.Time { return f.clock }
	var err error
	f.Graveler, err = graveler.New(graveler.Config{Refs: ref.New(store), Staging: staging.New(store), Trees: memtrees.New(), Now: now, Hooks: graveler.Hooks{
		PreCommit: func(context.Context, graveler.PreCommitEvent) error { return f.refuse },
	}})
	require.NoError(t, err)
	f.catalog, err = catalog.New(catalog.Config{Store: f.Graveler, Now: now})
	require.NoError(t, err)
	require.NoError(t, f.catalog.CreateBucket(t.Context(), bucket, catalog.CreateBucketParams{}))
	f.version(v)
	f.mover = dispatch.Mover{Store: between{f}, Buckets: f.catalog, Committer: "lifecycle", Now: now}
	return f
}

// between lets something happen while a move is made.
type between struct{ *fixture }

func (b between) ChangeTree(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, p graveler.ChangeTreeParams, build func(ctx context.Context, t *graveler.Tree) (iter.Seq2[graveler.Entry, error], error)) (graveler.Commit, error) {
	return b.Graveler.ChangeTree(ctx, repo, branch, p, func(ctx context.Context, t *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
		b.moves++
		changes, err := build(ctx, t)
		if meanwhile := b.between; meanwhile != nil {
			b.between = nil
			meanwhile()
		}
		return changes, err
	})
}

func (f *fixture) version(v catalog.Versioning) {
	if v == catalog.VersioningOff {
		return
	}
	require.NoError(f, f.catalog.SetVersioning(f.Context(), bucket, v))
}

func (f *fixture) tick() { f.clock = f.clock.Add(time.Second) }

func (f *fixture) in() catalog.Bucket { return catalog.Bucket{Repository: bucket} }

// put puts objects, each named by its address; "-" deletes instead.
func (f *fixture) put(key string, names ...string) {
	for _, name := range names {
		f.tick()
		var err error
		if name == "-" {
			_, err = f.catalog.Delete(f.Context(), f.in(), key, catalog.DeleteParams{})
		} else {
			_, err = f.catalog.Put(f.Context(), f.in(), key, catalog.Object{PhysicalAddress: name, Size: int64(len(name))}, catalog.Conditions{})
		}
		require.NoError(f, err)
	}
}

func (f *fixture) commit() {
	f.tick()
	_, err := f.Commit(f.Context(), bucket, "main", graveler.CommitParams{Committer: "user", AllowEmpty: true})
	require.NoError(f, err)
}

// reset makes a commit the head.
func (f *fixture) reset(ref string) {
	f.tick()
	_, err := f.Reset(f.Context(), bucket, "main", ref, graveler.ResetParams{AllowDirty: true})
	require.NoError(f, err)
}

func (f *fixture) source() dispatch.Source {
	b, err := f.GetBranch(f.Context(), bucket, "main")
	require.NoError(f, err)
	return dispatch.Source{Repository: bucket, Branch: "main", UID: b.UID}
}

// entry is what the head has at a key.
type entry struct {
	key    graveler.Key
	value  graveler.Value
	place  catalog.Place
	object catalog.Object
}

// entries returns what a ref has of objects, by key.
func (f *fixture) entries(ref string) (entries []entry) {
	for l, err := range f.List(f.Context(), bucket, ref, graveler.ListOptions{}) {
		require.NoError(f, err)
		place, err := catalog.ParseKey(l.Key)
		require.NoError(f, err)
		o := catalog.Object{PhysicalAddress: string(l.Value.Data)}
		if place.Kind != catalog.KindUpload && place.Kind != catalog.KindPart {
			o, err = catalog.Decode(*l.Value)
			require.NoError(f, err)
		}
		entries = append(entries, entry{l.Key, *l.Value, place, o})
	}
	return entries
}

// item returns the item of what the head has at the place of an object, named by its address, or "-" for a marker.
func (f *fixture) item(a *lifecycle.Action, key, name string) dispatch.Item {
	for _, e := range f.entries("main@") {
		if e.place.Key == key && (e.object.PhysicalAddress == name || e.object.DeleteMarker && name == "-") {
			i := dispatch.Item{Action: a, Key: e.key, LogicalKey: key, VersionID: e.object.VersionID, ContentIdentity: e.object.ContentIdentity()}
			if e.place.Kind == catalog.KindUpload {
				i.VersionID, i.ContentIdentity = e.place.UploadID, []byte(e.place.UploadID)
			} else if !f.bare {
				o, err := lifecycle.NewObject(e.place, e.value, off)
				require.NoError(f, err)
				i.Object, i.Value = &o, e.value.Identity
			}
			return i
		}
	}
	require.FailNow(f, "the head has no such object", "%s of %s in %s", name, key, f.show("main@"))
	return dispatch.Item{}
}

// dispatch dispatches items in the order of their keys, in one batch, and returns their results in the order that they were given in.
func (f *fixture) dispatch(items ...dispatch.Item) []dispatch.Result {
	results, err := f.mover.Dispatch(f.Context(), f.source(), []dispatch.Batch{{Items: items}})
	require.NoError(f, err)
	return results[0]
}

func outcomes(results []dispatch.Result) (outcomes []lifecycle.Outcome) {
	for _, r := range results {
		outcomes = append(outcomes, r.Outcome)
	}
	return outcomes
}

// show returns the objects of a ref, by key: what is current, then the others, newest first, after "|"; "-" is a marker, "~"
// stands before the null version.
func (f *fixture) show(ref string) string {
	var lines []string
	entries := f.entries(ref)
	slices.SortStableFunc(entries, func(a, b entry) int {
		if a.place.Key != b.place.Key {
			return strings.Compare(a.place.Key, b.place.Key)
		}
		if a.place.Kind <= catalog.KindMarker || b.place.Kind <= catalog.KindMarker {
			return int(a.place.Kind) - int(b.place.Kind)
		}
		return b.object.ModifiedAt.Compare(a.object.ModifiedAt)
	})
	last, aside := "", false
	for _, e := range entries {
		if e.place.Key != last {
			lines, last, aside = append(lines, e.place.Key+":"), e.place.Key, false
		}
		if !aside && e.place.Kind > catalog.KindMarker {
			lines, aside = append(lines, "|"), true
		}
		name := e.object.PhysicalAddress
		if e.object.DeleteMarker {
			name = "-"
		}
		if e.object.VersionID == catalog.NullVersion {
			name = "~" + name
		}
		lines = append(lines, name)
	}
	return strings.Join(lines, " ")
}

func ptr[T any](v T) *T { return &v }

// action returns the only action of a rule for everything, enabled or not.
func action(r lifecycle.Rule) *lifecycle.Action {
	r.ID = "rule"
	a := r.Actions()
	if len(a) != 1 {
		panic(fmt.Sprint(len(a), " actions"))
	}
	return &a[0]
}

var (
	days       = action(lifecycle.Rule{Expiration: &lifecycle.Expiration{Days: ptr(1)}})
	date       = action(lifecycle.Rule{Expiration: &lifecycle.Expiration{Date: ptr(time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC))}})
	soleMarker = action(lifecycle.Rule{Expiration: &lifecycle.Expiration{ExpiredObjectDeleteMarker: ptr(true)}})
	noncurrent = action(lifecycle.Rule{NoncurrentVersionExpiration: &lifecycle.NoncurrentVersionExpiration{NoncurrentDays: ptr(1)}})
	abort      = action(lifecycle.Rule{AbortIncompleteMultipartUpload: &lifecycle.AbortIncompleteMultipartUpload{DaysAfterInitiation: 1}})
)

func keep(n int) *lifecycle.Action {
	return action(lifecycle.Rule{NoncurrentVersionExpiration: &lifecycle.NoncurrentVersionExpiration{NewerNoncurrentVersions: &n}})
}

func keepDays(n int) *lifecycle.Action {
	return action(lifecycle.Rule{NoncurrentVersionExpiration: &lifecycle.NoncurrentVersionExpiration{NewerNoncurrentVersions: &n, NoncurrentDays: ptr(1)}})
}
