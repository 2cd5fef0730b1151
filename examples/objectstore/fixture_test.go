// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/xml"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// aheadFiles are files on disk that are stamped by a clock which a test sets ahead, as is the store's.
type aheadFiles struct {
	block.Storage

	mu    sync.Mutex
	ahead time.Duration
	put   map[string]time.Duration // how far the clock was ahead then
}

func (s *aheadFiles) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

func (s *aheadFiles) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

func (s *aheadFiles) stamp(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put[name] = s.ahead
}

func (s *aheadFiles) at(info block.Info) block.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	info.ModTime = info.ModTime.Add(s.put[info.Name])
	return info
}

func (s *aheadFiles) Put(ctx context.Context, name string, data []byte) error {
	if _, err := s.Storage.Stat(ctx, name); err != nil {
		s.stamp(name)
	}
	return s.Storage.Put(ctx, name, data)
}

func (s *aheadFiles) Refresh(ctx context.Context, name string) error {
	s.stamp(name)
	return s.Storage.Refresh(ctx, name)
}

func (s *aheadFiles) Stat(ctx context.Context, name string) (block.Info, error) {
	info, err := s.Storage.Stat(ctx, name)
	return s.at(info), err
}

func (s *aheadFiles) List(ctx context.Context, prefix string) iter.Seq2[block.Info, error] {
	return func(yield func(block.Info, error) bool) {
		for info, err := range s.Storage.List(ctx, prefix) {
			if !yield(s.at(info), err) {
				return
			}
		}
	}
}

// fixture is an object store in a directory, with a client.
type fixture struct {
	t       *testing.T
	files   *aheadFiles
	store   *moraine.Store
	catalog *catalog.Catalog
	bytes   *byteStore
	cleaner *cleaner
	client
}

const bucket = "photos"

var photos = catalog.Bucket{Repository: bucket}

// newFixture opens the store in a directory. wrap, if it is not nil, comes between the catalog that requests use and the store.
func newFixture(t *testing.T, dir string, wrap func(*moraine.Store) catalog.Store) *fixture {
	t.Helper()
	blocks, err := local.OpenDir(filepath.Join(dir, "blocks"), block.OpenOptions{})
	require.NoError(t, err)
	f := &fixture{t: t, files: &aheadFiles{Storage: blocks, put: map[string]time.Duration{}}}
	f.store, err = moraine.Open(t.Context(), moraine.Options{Store: "bolt:" + filepath.Join(dir, "meta.db"), BlockStorage: f.files, Now: f.files.now})
	require.NoError(t, err)
	f.bytes, err = openBytes(filepath.Join(dir, "bytes"))
	require.NoError(t, err)
	f.catalog, err = catalog.New(catalog.Config{Store: f.store, Now: f.files.now})
	require.NoError(t, err)
	requests := f.catalog
	if wrap != nil {
		requests, err = catalog.New(catalog.Config{Store: wrap(f.store), Now: f.files.now})
		require.NoError(t, err)
	}
	log := slog.New(slog.DiscardHandler)
	f.cleaner = &cleaner{store: f.store, catalog: f.catalog, bytes: f.bytes, keepDays: 1, now: f.files.now, log: log}
	server := httptest.NewServer(&handler{requests, f.bytes, log})
	f.client = client{t, server.URL}
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, f.store.Close())
		require.NoError(t, f.bytes.close())
		require.NoError(t, blocks.Close())
	})
	return f
}

func newBucket(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t, t.TempDir(), nil)
	f.do(http.MethodPut, "/"+bucket, "").is(http.StatusOK)
	return f
}

// commit makes a checkpoint of the bucket and returns the commit.
func (f *fixture) commit() string {
	f.t.Helper()
	require.NoError(f.t, f.catalog.Checkpoint(f.t.Context(), photos))
	c, err := f.store.ResolveRef(f.t.Context(), bucket, "main")
	require.NoError(f.t, err)
	return string(c.ID)
}

// days lets days pass, with a clean-up at the end of each.
func (f *fixture) days(n int) {
	f.t.Helper()
	for range n {
		f.files.advance(24*time.Hour + time.Minute)
		require.NoError(f.t, f.cleaner.clean(f.t.Context()))
	}
}

// address returns where the bytes of an object are.
func (f *fixture) address(key string) string {
	f.t.Helper()
	o, err := f.catalog.Get(f.t.Context(), photos, key, catalog.GetParams{})
	require.NoError(f.t, err)
	return o.PhysicalAddress
}

// addresses returns the addresses that have bytes, in order.
func (f *fixture) addresses() []string {
	f.t.Helper()
	var found []string
	err := fs.WalkDir(f.bytes.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(name, ".json") {
			found = append(found, name)
		}
		return err
	})
	require.NoError(f.t, err)
	return found
}

// referred returns the addresses that the branch or any commit whose entries can be read has: each tree is listed as a whole.
func (f *fixture) referred() []string {
	f.t.Helper()
	refs := []string{"main"}
	contents, err := f.store.Contents(f.t.Context(), bucket)
	require.NoError(f.t, err)
	for c, err := range f.store.ListCommits(f.t.Context(), bucket, "") {
		require.NoError(f.t, err)
		expired, err := contents.Expired(f.t.Context(), c.ID)
		require.NoError(f.t, err)
		if !expired {
			refs = append(refs, string(c.ID))
		}
	}
	found := map[string]bool{}
	for _, ref := range refs {
		for e, err := range f.store.List(f.t.Context(), bucket, ref, graveler.ListOptions{}) {
			require.NoError(f.t, err)
			if address, ok := addressOf(bucket, e.Value); ok {
				found[address] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// client speaks to an object store over HTTP.
type client struct {
	t   *testing.T
	url string
}

type response struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// do sends a request. headers are names and values by turns.
func (c client) do(method, path, body string, headers ...string) response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	require.NoError(c.t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(c.t, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	require.NoError(c.t, err)
	return response{c.t, answer.StatusCode, answer.Header, string(content)}
}

func (c client) put(key, body string, headers ...string) response {
	c.t.Helper()
	return c.do(http.MethodPut, object(key), body, headers...).is(http.StatusOK)
}

// object returns the path of an object.
func object(key string) string { return "/" + bucket + "/" + catalog.EncodeKey(key) }

func (r response) is(status int) response {
	r.t.Helper()
	require.Equal(r.t, status, r.status, r.body)
	return r
}

func (r response) fails(code catalog.Code) {
	r.t.Helper()
	r.is(code.HTTPStatus())
	var answer errorResult
	r.xml(&answer)
	require.Equal(r.t, code, answer.Code, r.body)
}

func (r response) xml(into any) {
	r.t.Helper()
	require.NoError(r.t, xml.Unmarshal([]byte(r.body), into), r.body)
}

func TestMain(m *testing.M) {
	if os.Getenv(victim) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}
