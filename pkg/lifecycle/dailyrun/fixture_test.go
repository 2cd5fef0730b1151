// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

const bucket graveler.RepositoryID = "lake"

// fixture is a store whose clock the test turns, with a bucket. Each change is committed at once.
type fixture struct {
	testing.TB
	*graveler.Graveler
	records kv.Store
	catalog *catalog.Catalog
	clock   time.Time
	// config is that of the passes.
	config dailyrun.Config
	// sent are the items of the last pass; results say what comes of some of them in place of being carried out.
	sent    []dispatch.Item
	results func(item dispatch.Item) dispatch.Result
	before  func() // called once, before anything is dispatched
	mover   dispatch.Mover
}

func newFixture(t testing.TB, v catalog.Versioning) *fixture {
	t.Helper()
	return newFixtureOn(t, mem.New(), memtrees.New(), v)
}

func newFixtureOn(t testing.TB, store kv.Store, trees graveler.Trees, v catalog.Versioning) *fixture {
	t.Helper()
	f := &fixture{TB: t, records: store, clock: time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)}
	now := func() time.Time { return f.clock }
	var err error
	f.Graveler, err = graveler.New(graveler.Config{Refs: ref.New(store), Staging: staging.New(store), Trees: trees, Now: now})
	require.NoError(t, err)
	f.catalog, err = catalog.New(catalog.Config{Store: f.Graveler, Now: now})
	require.NoError(t, err)
	f.bucket(bucket, v)
	f.mover = dispatch.Mover{Store: f.Graveler, Buckets: f.catalog, Committer: "lifecycle", Now: now}
	f.config = dailyrun.Config{Store: f.Graveler, Records: f.records, Dispatcher: f, Now: now, DayBoundary: lifecycle.Exact}
	return f
}

func (f *fixture) bucket(repo graveler.RepositoryID, v catalog.Versioning) {
	require.NoError(f, f.catalog.CreateBucket(f.Context(), repo, catalog.CreateBucketParams{}))
	if v != catalog.VersioningOff {
		require.NoError(f, f.catalog.SetVersioning(f.Context(), repo, v))
	}
}

// Dispatch implements dispatch.Dispatcher.
func (f *fixture) Dispatch(ctx context.Context, source dispatch.Source, batches []dispatch.Batch) ([][]dispatch.Result, error) {
	if before := f.before; before != nil {
		f.before = nil
		before()
	}
	results := make([][]dispatch.Result, len(batches))
	rest := make([]dispatch.Batch, len(batches))
	for i, b := range batches {
		results[i] = make([]dispatch.Result, len(b.Items))
		rest[i].Shard = b.Shard
		for n, item := range b.Items {
			f.sent = append(f.sent, item)
			if require.Equal(f, lifecycle.ShardOf(source.Repository, item.LogicalKey), b.Shard); f.results != nil {
				results[i][n] = f.results(item)
			}
			if results[i][n].Outcome == 0 {
				rest[i].Items = append(rest[i].Items, item)
			}
		}
	}
	done, err := f.mover.Dispatch(ctx, source, rest)
	if err != nil {
		return nil, err
	}
	for i := range results {
		for n := range results[i] {
			if results[i][n].Outcome == 0 {
				results[i][n], done[i] = done[i][0], done[i][1:]
			}
		}
	}
	return results, nil
}

func in(repo graveler.RepositoryID) catalog.Bucket { return catalog.Bucket{Repository: repo} }

func (f *fixture) put(keys ...string) {
	f.Helper()
	f.putIn(bucket, keys...)
}

func (f *fixture) putIn(repo graveler.RepositoryID, keys ...string) {
	f.Helper()
	for _, key := range keys {
		f.clock = f.clock.Add(time.Second)
		_, err := f.catalog.Put(f.Context(), in(repo), key, catalog.Object{PhysicalAddress: fmt.Sprint(key, f.clock), Size: 1}, catalog.Conditions{})
		require.NoError(f, err)
	}
	f.commit(repo)
}

func (f *fixture) delete(key string) {
	f.Helper()
	f.clock = f.clock.Add(time.Second)
	_, err := f.catalog.Delete(f.Context(), in(bucket), key, catalog.DeleteParams{})
	require.NoError(f, err)
	f.commit(bucket)
}

func (f *fixture) commit(repo graveler.RepositoryID) {
	f.Helper()
	_, err := f.Commit(f.Context(), repo, "main", graveler.CommitParams{Committer: "user"})
	require.NoError(f, err)
}

func (f *fixture) days(n int) { f.clock = f.clock.Add(time.Duration(n) * 24 * time.Hour) }

// rules sets the rules of a bucket, from JSON: those of a configuration, without what is the same in all.
func (f *fixture) rules(repo graveler.RepositoryID, rules ...string) {
	f.Helper()
	text := ""
	for i, r := range rules {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(`{"ID":"%d","Status":"Enabled",%s}`, i, r)
	}
	c, err := lifecycle.ParseJSON([]byte(`{"Rules":[` + text + `]}`))
	require.NoError(f, err)
	require.NoError(f, dailyrun.SetConfiguration(f.Context(), f.Graveler, repo, c))
}

func expire(days int) string {
	return fmt.Sprintf(`"Filter":{},"Expiration":{"Days":%d}`, days)
}

// run makes a pass that must not fail.
func (f *fixture) run() *dailyrun.Report {
	f.Helper()
	r, err := f.tryRun()
	require.NoError(f, err)
	return r
}

func (f *fixture) tryRun() (*dailyrun.Report, error) {
	f.clock = f.clock.Add(time.Second)
	f.sent = nil
	return dailyrun.Run(f.Context(), f.config)
}

// keys returns the objects that users see at the head.
func (f *fixture) keys(repo graveler.RepositoryID) (keys []string) {
	f.Helper()
	for l, err := range f.List(f.Context(), repo, "main", graveler.ListOptions{}) {
		require.NoError(f, err)
		if place, err := catalog.ParseKey(l.Key); err == nil && place.Kind == catalog.KindCurrent {
			keys = append(keys, place.Key)
		}
	}
	return keys
}

// versions returns what there is of a key: "object" or "marker" for what is current, and an address or "-" for what is not.
func (f *fixture) versions(key string) (versions []string) {
	f.Helper()
	b, err := f.GetBranch(f.Context(), bucket, "main")
	require.NoError(f, err)
	c, err := f.ResolveRef(f.Context(), bucket, string(b.Head))
	require.NoError(f, err)
	t, err := walker.Open(f.Context(), f.Graveler, bucket, c.Tree, catalog.VersioningEnabled)
	require.NoError(f, err)
	for o, err := range t.Group(key).Objects(f.Context()) {
		require.NoError(f, err)
		text := o.Kind.String()
		if o.Kind == lifecycle.Noncurrent && o.DeleteMarker {
			text += " marker"
		}
		versions = append(versions, text)
	}
	require.NoError(f, t.Close())
	return versions
}

// moves returns how many moves passes have made.
func (f *fixture) moves() (n int) {
	f.Helper()
	for m, err := range f.BranchLog(f.Context(), bucket, "main", 0) {
		require.NoError(f, err)
		if m.Op == graveler.OpLifecycle {
			n++
		}
	}
	return n
}

func (f *fixture) sentKeys() (keys []string) {
	for _, item := range f.sent {
		keys = append(keys, item.LogicalKey)
	}
	slices.Sort(keys)
	return keys
}

// spy is a store that notes which trees are listed as a whole.
type spy struct {
	*graveler.Graveler
	whole []graveler.RepositoryID
}

func (s *spy) DiffTrees(ctx context.Context, repo graveler.RepositoryID, left, right graveler.MetaRangeID, o graveler.DiffOptions) iter.Seq2[graveler.Diff, error] {
	if left == s.EmptyTree() {
		s.whole = append(s.whole, repo)
	}
	return s.Graveler.DiffTrees(ctx, repo, left, right, o)
}
