// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// onEngines runs a test on a new bucket of each engine.
func onEngines(t *testing.T, test func(t *testing.T, f *fixture)) {
	for name, url := range engineURLs(t) {
		t.Run(name, func(t *testing.T) { test(t, openEngine(t, url).bucket(t)) })
	}
}

func TestOfConditionalPutsOneWins(t *testing.T) {
	onEngines(t, func(t *testing.T, f *fixture) {
		for _, v := range []Versioning{VersioningOff, VersioningEnabled} {
			if v != VersioningOff {
				f.enable(t, v)
			}
			for round := range 5 {
				var won atomic.Int64
				var all errgroup.Group
				for i := range 8 {
					all.Go(func() error {
						_, err := f.both[i%2].Put(context.Background(), f.bucket(), fmt.Sprint(v, round), Object{PhysicalAddress: fmt.Sprint(i)}, Conditions{IfNoneMatch: "*"})
						if err == nil {
							won.Add(1)
						} else if !errors.Is(err, PreconditionFailed) {
							return err
						}
						return nil
					})
				}
				require.NoError(t, all.Wait())
				require.EqualValues(t, 1, won.Load())
			}
		}
	})
}

// Two processes whose clocks are five minutes apart put versions of one key, beside commits. None is lost, and their order is
// that in which they became current.
func TestVersionsOfAKeyHaveOneOrder(t *testing.T) {
	onEngines(t, func(t *testing.T, f *fixture) {
		f.enable(t, VersioningEnabled)
		const each = 15
		var mu sync.Mutex
		var put []string
		var writers errgroup.Group
		for _, c := range f.both {
			for range 2 {
				writers.Go(func() error {
					last := int64(0)
					for range each {
						o, err := c.Put(context.Background(), f.bucket(), "k", Object{}, Conditions{})
						if err != nil {
							return err
						}
						if at := o.ModifiedAt.UnixNano(); at <= last {
							return fmt.Errorf("a version of %d was put after one of %d", at, last)
						} else {
							last = at
						}
						mu.Lock()
						put = append(put, o.VersionID)
						mu.Unlock()
					}
					return nil
				})
			}
		}
		stop := make(chan struct{})
		var committer errgroup.Group
		committer.Go(func() error {
			for {
				select {
				case <-stop:
					return nil
				default:
				}
				if _, err := f.Graveler.Commit(context.Background(), f.name, "main", graveler.CommitParams{}); err != nil && !errors.Is(err, graveler.ErrNoChanges) {
					return err
				}
			}
		})
		require.NoError(t, writers.Wait())
		close(stop)
		require.NoError(t, committer.Wait())
		shown, err := f.show("main", true) // strict: the times fall
		require.NoError(t, err)
		var kept []string
		for _, v := range shown["k"].versions {
			kept = append(kept, v.id)
		}
		require.ElementsMatch(t, put, kept)
		require.True(t, slices.IsSorted(kept))
	})
}

// A process that has seen that versions are not kept goes on putting while another enables it. What that process put last before
// is kept as the null version by whoever puts the first one with an ID.
func TestAPutByAnOldSettingDestroysNoVersion(t *testing.T) {
	onEngines(t, func(t *testing.T, f *fixture) {
		ctx := context.Background()
		for i := range 10 {
			key := fmt.Sprint(i)
			b := Bucket{Repository: graveler.RepositoryID(fmt.Sprintf("%s-%d", f.name, i))}
			require.NoError(t, f.CreateBucket(ctx, b.Repository, CreateBucketParams{}))
			_, err := f.both[0].Put(ctx, b, key, Object{PhysicalAddress: "first"}, Conditions{})
			require.NoError(t, err)
			var enabled atomic.Bool
			var kept []string // put after versioning was enabled, oldest first
			var lastOff string
			var both errgroup.Group
			both.Go(func() error {
				for n := range 12 {
					known := enabled.Load()
					o, err := f.both[0].Put(ctx, b, key, Object{PhysicalAddress: fmt.Sprint(n)}, Conditions{})
					switch {
					case err != nil:
						return err
					case o.VersionID != "":
						kept = append(kept, o.VersionID)
					case known || len(kept) > 0:
						return fmt.Errorf("put %d was made by an old setting", n)
					default:
						lastOff = o.PhysicalAddress
					}
				}
				return nil
			})
			both.Go(func() error {
				err := f.both[1].SetVersioning(ctx, b.Repository, VersioningEnabled)
				enabled.Store(true)
				return err
			})
			require.NoError(t, both.Wait())
			o, err := f.both[1].Put(ctx, b, key, Object{}, Conditions{})
			require.NoError(t, err)
			kept = append(kept, o.VersionID)
			for _, id := range kept {
				_, err := f.both[0].Get(ctx, b, key, GetParams{VersionID: id})
				require.NoError(t, err)
			}
			null, err := f.both[0].Get(ctx, b, key, GetParams{VersionID: NullVersion})
			require.NoError(t, err)
			if lastOff != "" {
				require.Equal(t, lastOff, null.PhysicalAddress)
			}
		}
	})
}

// Whatever the setting is when a version is put, one that has got an ID stays: only null versions replace each other.
func TestVersionsWithIDsStayWhileVersioningIsSuspendedAndEnabled(t *testing.T) {
	ctx, f := context.Background(), newFixture(t)
	f.enable(t, VersioningEnabled)
	const each, toggles = 60, 20
	var mu sync.Mutex
	var kept []string
	var all errgroup.Group
	for i, c := range slices.Concat(f.both, f.both) {
		all.Go(func() error {
			for n := range each {
				var id string
				if (n+i)%4 == 3 {
					d, err := c.Delete(ctx, f.bucket(), "k", DeleteParams{})
					if err != nil {
						return err
					}
					id = d.DeleteMarkerVersionID
				} else {
					o, err := c.Put(ctx, f.bucket(), "k", Object{PhysicalAddress: fmt.Sprint(i, n)}, Conditions{})
					if err != nil {
						return err
					}
					id = o.VersionID
				}
				if id != NullVersion {
					mu.Lock()
					kept = append(kept, id)
					mu.Unlock()
				}
			}
			return nil
		})
	}
	all.Go(func() error {
		for n := range toggles {
			if err := f.both[n%2].SetVersioning(ctx, f.name, []Versioning{VersioningSuspended, VersioningEnabled}[n%2]); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, all.Wait())
	var shown []string
	latest := 0
	for v, err := range f.Versions(ctx, f.bucket(), "k", "") {
		require.NoError(t, err)
		if v.Latest {
			latest++
		}
		if v.VersionID != NullVersion {
			shown = append(shown, v.VersionID)
		}
	}
	require.ElementsMatch(t, kept, shown)
	require.True(t, slices.IsSorted(shown))
	require.Equal(t, 1, latest)
}

// A process that ends between the two halves of a change of the settings leaves others that know the old ones; whoever reads the
// new ones sees to it first that those fail.
func TestSettingsThatWereNotSettledAreSettledByWhoeverReadsThem(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.both[0].Put(ctx, f.bucket(), "k", Object{PhysicalAddress: "null"}, Conditions{})
	require.NoError(t, err)
	// What SetVersioning of a third process does first.
	require.NoError(t, f.both[1].putSettings(ctx, f.name, settings{Versioning: VersioningEnabled, Unsettled: true}))
	v, err := f.both[1].Versioning(ctx, f.name)
	require.NoError(t, err)
	require.Equal(t, VersioningEnabled, v)
	_, err = f.both[0].Put(ctx, f.bucket(), "k", Object{PhysicalAddress: "next"}, Conditions{})
	require.NoError(t, err)
	require.Equal(t, "null", f.get(t, "k", NullVersion).PhysicalAddress)
	s, err := f.readSettings(ctx, f.name)
	require.NoError(t, err)
	require.False(t, s.Unsettled)
}

func TestDeleteManyBesidePuts(t *testing.T) {
	onEngines(t, func(t *testing.T, f *fixture) {
		f.enable(t, VersioningEnabled)
		ctx := context.Background()
		ids := []ObjectID{}
		for i := range 20 {
			ids = append(ids, ObjectID{Key: fmt.Sprint(i)})
		}
		var mu sync.Mutex
		made := map[string]string{} // versions, by ID, of keys
		note := func(id, key string) {
			mu.Lock()
			defer mu.Unlock()
			made[id] = key
		}
		var all errgroup.Group
		all.Go(func() error {
			for i := range 60 {
				key := fmt.Sprint(i % 20)
				o, err := f.both[0].Put(ctx, f.bucket(), key, Object{}, Conditions{})
				if err != nil {
					return err
				}
				note(o.VersionID, key)
			}
			return nil
		})
		all.Go(func() error {
			for range 5 {
				results, err := f.both[1].DeleteMany(ctx, f.bucket(), ids, false)
				if err != nil {
					return err
				}
				for _, r := range results {
					if r.Err != nil {
						return r.Err
					}
					note(r.DeleteMarkerVersionID, r.Key)
				}
			}
			return nil
		})
		require.NoError(t, all.Wait())
		shown, err := f.show("main", true)
		require.NoError(t, err)
		got := map[string]string{}
		for key, k := range shown {
			for _, v := range k.versions {
				got[v.id] = key
			}
		}
		require.Equal(t, made, got)
	})
}

// A read by version ID never misses a version while it goes from one place to the other.
func TestAVersionIsFoundWhileItMoves(t *testing.T) {
	f := newFixture(t)
	f.enable(t, VersioningEnabled)
	ctx := context.Background()
	id := f.put(t, "k", "kept").VersionID
	stop := make(chan struct{})
	var mover errgroup.Group
	mover.Go(func() error {
		for {
			select {
			case <-stop:
				return nil
			default:
			}
			o, err := f.both[1].Put(ctx, f.bucket(), "k", Object{}, Conditions{})
			if err == nil {
				_, err = f.both[1].Delete(ctx, f.bucket(), "k", DeleteParams{VersionID: o.VersionID})
			}
			if err != nil {
				return err
			}
		}
	})
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		require.Equal(t, "kept", f.get(t, "k", id).PhysicalAddress)
	}
	close(stop)
	require.NoError(t, mover.Wait())
}

// interposed calls a function before each read of an entry, with the number of the read, from 1.
type interposed struct {
	Store
	reads      int
	before     func(read int)
	beforeList func() // nil: nothing
}

func (i *interposed) Get(ctx context.Context, repo graveler.RepositoryID, ref string, key graveler.Key) (*graveler.Value, error) {
	i.reads++
	i.before(i.reads)
	return i.Store.Get(ctx, repo, ref, key)
}

func (i *interposed) List(ctx context.Context, repo graveler.RepositoryID, ref string, o graveler.ListOptions) iter.Seq2[graveler.Listing, error] {
	if i.beforeList != nil {
		i.beforeList()
	}
	return i.Store.List(ctx, repo, ref, o)
}

// A version that is current wherever the reader looks for it aside, and aside wherever he looks at what is current.
func TestAVersionIsFoundThoughItIsNeverWhereTheReaderLooks(t *testing.T) {
	f := newFixture(t)
	f.enable(t, VersioningEnabled)
	id := f.put(t, "k", "kept").VersionID
	above := ""
	store := &interposed{Store: f.Graveler, before: func(read int) {
		switch read { // of the key, its marker and the place aside; then of the first two; and all again
		case 1, 6:
			above = f.put(t, "k", "above").VersionID
		case 3, 8:
			f.remove(t, "k", above)
		}
	}}
	c, err := New(Config{Store: store, Now: f.now})
	require.NoError(t, err)
	o, err := c.Get(t.Context(), Bucket{f.name, "main"}, "k", GetParams{VersionID: id})
	require.NoError(t, err)
	require.Equal(t, "kept", o.PhysicalAddress)
	require.Greater(t, store.reads, 3)
}

// Of a put and the deletion of the bucket at the same time one is refused: what was acknowledged is there, in the bucket that is there.
func TestAPutDuringTheDeletionOfABucketIsRefusedOrStays(t *testing.T) {
	ctx := context.Background()
	onEngines(t, func(t *testing.T, f *fixture) {
		deleted, kept := 0, 0
		for range 30 {
			f := f.engine.bucket(t)
			var all errgroup.Group
			var putErr, deleteErr error
			all.Go(func() error {
				_, putErr = f.both[0].Put(ctx, f.bucket(), "k", Object{PhysicalAddress: "put"}, Conditions{})
				return nil
			})
			all.Go(func() error {
				deleteErr = f.both[1].DeleteBucket(ctx, f.name)
				return nil
			})
			require.NoError(t, all.Wait())
			o, err := f.Catalog.Get(ctx, f.bucket(), "k", GetParams{})
			switch {
			case deleteErr == nil:
				deleted++
				require.Error(t, putErr, "a put was acknowledged, and its bucket deleted")
				require.Contains(t, []Code{NoSuchBucket, AccessDenied}, CodeOf(putErr))
				require.Equal(t, NoSuchBucket, CodeOf(err))
			default:
				kept++
				require.ErrorIs(t, deleteErr, BucketNotEmpty)
				require.NoError(t, putErr)
				require.NoError(t, err)
				require.Equal(t, "put", o.PhysicalAddress)
				f.put(t, "k", "again") // the bucket can be written to as before
			}
		}
		t.Logf("%d buckets were deleted, %d kept", deleted, kept)
	})
}
