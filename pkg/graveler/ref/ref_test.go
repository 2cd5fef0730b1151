// SPDX-License-Identifier: Apache-2.0

package ref_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/stest"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/bolt"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

const uid = "cv0example0000000000" // as long as an xid

func repository() *graveler.Repository {
	return &graveler.Repository{ID: "lake", UID: uid, State: graveler.RepositoryActive, DefaultBranch: "main"}
}

func branch() *graveler.Branch {
	return &graveler.Branch{
		ID: "main", UID: uid, State: graveler.BranchLive, Head: "c1", Token: "lake-main:t1", Nonce: "n1",
		ItemCounter: 2, Items: []graveler.Item{{Number: 2, Prefix: graveler.Key("logs/")}, {Number: 1, Token: "lake-main:t0"}},
		LastMove: graveler.Move{Time: 10, Op: graveler.OpCreate, New: "c1"},
	}
}

// eachEngine runs a test on an engine in memory and on one on disk.
func eachEngine(t *testing.T, test func(t *testing.T, store kv.Store)) {
	t.Run("mem", func(t *testing.T) { test(t, memStore(t)) })
	t.Run("bolt", func(t *testing.T) { test(t, boltStore(t)) })
}

func boltStore(t *testing.T) kv.Store {
	store, err := bolt.Open(t.Context(), "bolt:"+filepath.Join(t.TempDir(), "meta.db"), kv.OpenOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func memStore(t *testing.T) kv.Store {
	store := mem.New()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// keys lists a partition.
func keys(t require.TestingT, store kv.Store, partition string) []string {
	it, err := store.Scan(context.Background(), []byte(partition), kv.ScanOptions{})
	require.NoError(t, err)
	var all []string
	for it.Next() {
		all = append(all, string(it.Key()))
	}
	require.NoError(t, it.Close())
	return all
}

func TestRecordsAreWhatAnyStoreKeeps(t *testing.T) {
	t.Run("mem", func(t *testing.T) {
		stest.Refs(t, func(t *testing.T) graveler.Refs { return ref.New(memStore(t)) })
	})
	t.Run("bolt", func(t *testing.T) {
		stest.Refs(t, func(t *testing.T) graveler.Refs { return ref.New(boltStore(t)) })
	})
}

func TestStatesOfTheEngineAreTheStoresOwn(t *testing.T) {
	store := mem.New()
	refs := ref.New(store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := refs.GetRepository(ctx, "lake")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, stest.LastError(refs.ScanRepositories(ctx, "")), context.Canceled)

	require.NoError(t, store.Close())
	_, err = refs.PutRepository(t.Context(), repository())
	require.ErrorIs(t, err, graveler.ErrClosed)
	require.ErrorIs(t, stest.LastError(refs.ScanRepositories(t.Context(), "")), graveler.ErrClosed)

	readOnly, err := mem.Open(t.Context(), "mem:", kv.OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	_, err = ref.New(readOnly).PutRepository(t.Context(), repository())
	require.ErrorIs(t, err, graveler.ErrReadOnly)
}

func TestAStampThatIsNoRecordIsRefused(t *testing.T) {
	store := memStore(t)
	r := repository()
	r.Stamp = graveler.Stamp("\x0a")
	_, err := ref.New(store).PutRepository(t.Context(), r)
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	require.Empty(t, keys(t, store, "graveler"))
}

// unknownField is a field that no message has.
func unknownField(value string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 1000, protowire.BytesType), value)
}

// plant adds unknown fields to a stored record.
func plant[M proto.Message](t *testing.T, store kv.Store, partition, key string, m M, add func(M)) {
	t.Helper()
	_, err := kv.GetMessage(t.Context(), store, []byte(partition), []byte(key), m)
	require.NoError(t, err)
	add(m)
	require.NoError(t, kv.SetMessage(t.Context(), store, []byte(partition), []byte(key), m))
}
