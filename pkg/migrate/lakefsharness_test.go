// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// lake is a deployment of lakeFS, and a target in memory.
type lake struct {
	*sides
	dir        string // the disk with its files
	deployment *lakegen.Deployment
	blocks     string           // where the target has its files
	files      *committed.Store // nil: it has them in memory
	reads      *reads
}

// reads counts how often each file of the source was read, by its path.
type reads struct {
	mu    sync.Mutex
	times map[string]int
}

func (r *reads) open(ctx context.Context, url string, o block.OpenOptions) (block.Storage, error) {
	storage, err := local.Open(ctx, url, o)
	return countedStorage{storage, strings.TrimPrefix(url, "file:"), r}, err
}

type countedStorage struct {
	block.Storage
	dir   string
	reads *reads
}

func (s countedStorage) Get(ctx context.Context, name string) ([]byte, error) {
	s.reads.mu.Lock()
	s.reads.times[filepath.Join(s.dir, name)]++
	s.reads.mu.Unlock()
	return s.Storage.Get(ctx, name)
}

func emptyLake(t testing.TB) *lake {
	t.Helper()
	l := &lake{sides: emptySides(t), dir: t.TempDir(), reads: &reads{times: map[string]int{}}}
	l.url = "lakefs+" + l.url
	return l
}

func newLake(t testing.TB, p lakegen.Params) *lake {
	t.Helper()
	l := emptyLake(t)
	l.fillLake(t, lakegen.Random(p), p.Tables)
	return l
}

// fillLake writes a deployment in the place of what is there, and empties the target.
func (l *lake) fillLake(t fataler, d *lakegen.Deployment, tables bool) {
	t.Helper()
	ctx := context.Background()
	l.exec(t, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
	l.deployment, l.kv, l.trees = d, mem.New(), memtrees.New()
	require.NoError(t, os.RemoveAll(l.dir))
	require.NoError(t, os.MkdirAll(l.dir, 0o755))
	require.NoError(t, d.WriteFiles(ctx, l.dir))
	if tables {
		require.NoError(t, d.WriteTables(ctx, l.conn))
	} else {
		require.NoError(t, d.WriteKV(ctx, l.conn))
	}
}

func (l *lake) migration(t fataler) *migrate.Migration {
	t.Helper()
	return l.over(t, l.kv)
}

func (l *lake) over(t fataler, store kv.Store) *migrate.Migration {
	t.Helper()
	trees := graveler.Trees(l.trees)
	if l.files != nil {
		trees = l.files
	}
	g, err := graveler.New(graveler.Config{Refs: ref.New(store), Staging: staging.New(store), Trees: trees})
	require.NoError(t, err)
	return &migrate.Migration{Source: l.url, KV: store, Graveler: g, SourceBlocks: "file:" + l.dir, BlockEngines: block.Engines{"file": l.reads.open}}
}

// onDisk gives the target files on disk; again, it empties the caches.
func (l *lake) onDisk(t testing.TB) {
	t.Helper()
	if l.blocks == "" {
		l.blocks = t.TempDir()
	}
	blocks, err := local.OpenDir(l.blocks, block.OpenOptions{})
	require.NoError(t, err)
	l.files, err = committed.New(committed.Config{Storage: func(_ context.Context, namespace string) (block.Storage, error) {
		return block.Sub(blocks, namespace), nil
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, blocks.Close()) })
}

func (l *lake) run(t fataler) migrate.Report {
	t.Helper()
	r, err := l.migration(t).Run(context.Background())
	require.NoError(t, err)
	return r
}

func (l *lake) verify(t fataler) migrate.Verified {
	t.Helper()
	v, err := l.migration(t).Verify(context.Background())
	require.NoError(t, err)
	return v
}

// repository returns one by name.
func (l *lake) repository(id string) *lakegen.Repository {
	for _, r := range l.deployment.Repositories {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// file is where a file of a repository is.
func (l *lake) file(r *lakegen.Repository, id string) string {
	_, path, _ := strings.Cut(r.Namespace, "://")
	return filepath.Join(l.dir, path, "_lakefs", id)
}

// aRange is a range that a branch of a repository shows.
func (l *lake) aRange(t fataler, r *lakegen.Repository) string {
	t.Helper()
	ctx := context.Background()
	storage, err := local.OpenDir(filepath.Dir(l.file(r, "")), block.OpenOptions{})
	require.NoError(t, err)
	files := lakefs.NewFiles(storage, r.Namespace)
	for _, b := range r.Branches {
		ranges, err := files.Metarange(ctx, r.Commit(b.Commit).Metarange)
		require.NoError(t, err)
		if len(ranges) > 0 {
			require.NoError(t, files.Close())
			return ranges[0].ID
		}
	}
	require.Fail(t, "no branch shows anything")
	return ""
}
