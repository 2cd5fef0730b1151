// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
)

// engine is an engine with trees in memory, in which each fixture has a repository of its own.
type engine struct {
	kv     *kvtest.Counter
	config graveler.Config
	made   atomic.Int64
}

// engineURLs are the engines that a test of all of them runs on.
func engineURLs(t testing.TB) map[string]string {
	dir := t.TempDir()
	return map[string]string{
		"mem": "mem:", "mem with costly fences": "mem:?fences=costly", "bolt": "bolt:" + dir + "/store", "pebble": "pebble:" + dir + "/pebble", "postgres": testpg.Start(t).NewDatabase(t),
	}
}

func openEngine(t testing.TB, url string) *engine {
	t.Helper()
	store, err := kv.Open(context.Background(), url, all.Engines(), kv.OpenOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	e := &engine{kv: kvtest.Counting(store)}
	e.config = graveler.Config{Refs: ref.New(e.kv), Staging: staging.New(e.kv), Trees: memtrees.New()}
	return e
}

// fixture is an empty bucket, and two processes that work on it, whose clocks are five minutes apart.
type fixture struct {
	*graveler.Graveler
	engine *engine
	name   graveler.RepositoryID
	clock  atomic.Int64 // nanoseconds since the epoch, of the process that is behind
	both   []*Catalog
	*Catalog
}

const apart = 5 * time.Minute

// fataler is what testing.TB and rapid.T share.
type fataler interface {
	require.TestingT
	Helper()
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return openEngine(t, "mem:").bucket(t)
}

func (e *engine) bucket(t fataler) *fixture {
	t.Helper()
	f := &fixture{engine: e, name: graveler.RepositoryID(fmt.Sprintf("bucket-%d", e.made.Add(1)))}
	f.clock.Store(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	for _, ahead := range []time.Duration{0, apart} {
		now := func() time.Time { return f.now().Add(ahead) }
		config := e.config
		config.Hooks.Guard = KeepLocked(now)
		g, err := graveler.New(config)
		require.NoError(t, err)
		c, err := New(Config{Store: g, Now: now})
		require.NoError(t, err)
		f.both = append(f.both, c)
		f.Graveler = g
	}
	f.Catalog = f.both[0]
	require.NoError(t, f.CreateBucket(context.Background(), f.name, CreateBucketParams{}))
	return f
}

func (f *fixture) now() time.Time { return time.Unix(0, f.clock.Load()).UTC() }

func (f *fixture) bucket() Bucket { return Bucket{Repository: f.name} }

func (f *fixture) put(t fataler, key, address string) Object {
	t.Helper()
	o, err := f.Put(context.Background(), f.bucket(), key, Object{PhysicalAddress: address, Checksum: address}, Conditions{})
	require.NoError(t, err)
	return o
}

func (f *fixture) enable(t fataler, v Versioning) {
	t.Helper()
	require.NoError(t, f.SetVersioning(context.Background(), f.name, v))
}

// Get and List are those of the catalog.
func (f *fixture) get(t fataler, key, version string) Object {
	t.Helper()
	o, err := f.Catalog.Get(context.Background(), f.bucket(), key, GetParams{VersionID: version})
	require.NoError(t, err)
	return o
}
