// SPDX-License-Identifier: Apache-2.0

package fsck_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	blockmem "github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	kvmem "github.com/moraine-store/moraine/pkg/kv/mem"
)

var ctx = context.Background()

// fixture is a store in memory.
type fixture struct {
	*graveler.Graveler
	kv     kv.Store
	refs   *ref.Store
	blocks *blockmem.Storage
	trees  *committed.Store
}

func newFixture(t require.TestingT) *fixture {
	f := &fixture{kv: kvmem.New(), blocks: blockmem.New()}
	f.refs, f.trees = ref.New(f.kv), f.openTrees(t)
	f.Graveler = f.open(t, f.kv)
	return f
}

// openTrees opens the files with caches of their own, as another process would.
func (f *fixture) openTrees(t require.TestingT) *committed.Store {
	trees, err := committed.New(committed.Config{
		Storage: func(_ context.Context, ns string) (block.Storage, error) { return block.Sub(f.blocks, ns), nil }, CacheBytes: 1 << 20,
	})
	require.NoError(t, err)
	return trees
}

// open opens the store again, on what stands between it and the engine.
func (f *fixture) open(t require.TestingT, store kv.Store) *graveler.Graveler {
	g, err := graveler.New(graveler.Config{Refs: ref.New(store), Staging: staging.New(store), Trees: f.trees, Grace: time.Nanosecond})
	require.NoError(t, err)
	return g
}

func (f *fixture) repository(t require.TestingT, id graveler.RepositoryID) *graveler.Repository {
	r, err := f.refs.GetRepository(ctx, id)
	require.NoError(t, err)
	return r
}

// check checks everything, with cold caches.
func (f *fixture) check(t require.TestingT, o fsck.Options) (damage, notes []fsck.Finding, counts fsck.Counts) {
	trees := f.openTrees(t)
	defer func() { require.NoError(t, trees.Close()) }()
	for found, err := range fsck.New(f.kv, trees).Check(ctx, o, &counts) {
		require.NoError(t, err)
		require.NotEmpty(t, found.What)
		if found.Severity == fsck.Damage {
			damage = append(damage, found)
		} else {
			notes = append(notes, found)
		}
	}
	require.Equal(t, []int{len(damage), len(notes)}, []int{counts.Damages, counts.Notes})
	return damage, notes, counts
}

func (f *fixture) requireHealthy(t require.TestingT) {
	damage, _, _ := f.check(t, fsck.Options{})
	require.Empty(t, damage)
}

func value(text string) graveler.Value {
	sum := sha256.Sum256([]byte(text))
	return graveler.Value{Identity: sum[:], Data: []byte(text)}
}

func (f *fixture) set(t require.TestingT, repo graveler.RepositoryID, branch graveler.BranchID, key, text string) {
	require.NoError(t, f.Set(ctx, repo, branch, graveler.Key(key), value(text)))
}

func (f *fixture) commit(t require.TestingT, repo graveler.RepositoryID, branch graveler.BranchID, message string) graveler.Commit {
	res, err := f.Commit(ctx, repo, branch, graveler.CommitParams{Message: message})
	require.NoError(t, err)
	return res.Commit
}

// place is where a record is.
type place struct{ partition, key string }

// places lists all records of the store: of its repositories, tokens and the rest.
func (f *fixture) places(t require.TestingT) (all []place) {
	partitions := map[string]bool{ref.RepositoriesPartition: true, ref.CleanupsPartition: true, kv.SchemaPartition: true}
	for r, err := range f.refs.ScanRepositories(ctx, "") {
		require.NoError(t, err)
		partitions[r.Partition()] = true
		for b, err := range f.refs.ScanBranches(ctx, r, "") {
			require.NoError(t, err)
			for _, token := range listed(b) {
				partitions[token] = true
			}
		}
	}
	for c, err := range f.refs.ScanCleanups(ctx) {
		require.NoError(t, err)
		partitions[c.Partition] = true
	}
	for _, partition := range slices.Sorted(maps.Keys(partitions)) {
		for _, key := range f.keys(t, partition, "") {
			all = append(all, place{partition, key})
		}
	}
	return all
}

func listed(b *graveler.Branch) (tokens []string) {
	for _, item := range append([]graveler.Item{{Token: b.Token}}, b.Items...) {
		if item.Token != "" {
			tokens = append(tokens, string(item.Token))
		}
	}
	return tokens
}

func (f *fixture) keys(t require.TestingT, partition, prefix string) (keys []string) {
	it, err := f.kv.Scan(ctx, []byte(partition), kv.ScanOptions{Prefix: []byte(prefix)})
	require.NoError(t, err)
	for it.Next() {
		keys = append(keys, string(it.Key()))
	}
	require.NoError(t, it.Close())
	return keys
}

func (f *fixture) value(t require.TestingT, p place) []byte {
	item, err := f.kv.Get(ctx, []byte(p.partition), []byte(p.key))
	require.NoError(t, err)
	return item.Value
}

func (f *fixture) write(t require.TestingT, p place, value []byte) {
	require.NoError(t, f.kv.Set(ctx, []byte(p.partition), []byte(p.key), value))
}

func (f *fixture) remove(t require.TestingT, p place) {
	require.NoError(t, f.kv.Delete(ctx, []byte(p.partition), []byte(p.key)))
}

// files lists the files of a repository by name.
func (f *fixture) files(t require.TestingT, r *graveler.Repository) (names []string) {
	for info, err := range f.blocks.List(ctx, r.Namespace+"/") {
		require.NoError(t, err)
		names = append(names, info.Name)
	}
	return names
}

func (f *fixture) alterFile(t require.TestingT, name string, alter func(data []byte) []byte) {
	data, err := f.blocks.Get(ctx, name)
	require.NoError(t, err)
	require.NoError(t, f.blocks.Delete(ctx, name))
	require.NoError(t, f.blocks.Put(ctx, name, alter(data)))
}

// kinds lists what was found, each kind once, in order.
func kinds(found []fsck.Finding) (all []fsck.Kind) {
	for _, f := range found {
		all = append(all, f.Kind)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// expected reports whether an operation may end so in a store that is in order. Where trees have expired, merges and the like may miss one.
func expected(err error) bool {
	for _, e := range []error{
		nil, graveler.ErrNotFound, graveler.ErrRepositoryInDeletion, graveler.ErrExists, graveler.ErrNoChanges, graveler.ErrDirtyBranch, graveler.ErrConflict,
		graveler.ErrDefaultBranch, graveler.ErrChanged, graveler.ErrInvalidValue, graveler.ErrCorrupt,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
