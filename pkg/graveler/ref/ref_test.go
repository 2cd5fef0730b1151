// SPDX-License-Identifier: Apache-2.0

package ref_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

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

func TestWhatCouldNotBeReadBackIsNotWritten(t *testing.T) {
	store := memStore(t)
	ctx, refs, repo := t.Context(), ref.New(store), repository()
	putRepository := func(change func(*graveler.Repository)) error {
		r := repository()
		change(r)
		_, err := refs.PutRepository(ctx, r)
		return err
	}
	putBranch := func(change func(*graveler.Branch)) error {
		b := branch()
		change(b)
		_, err := refs.PutBranch(ctx, repo, b)
		return err
	}
	for name, c := range map[string]struct{ got, want error }{
		"state of repository": {putRepository(func(r *graveler.Repository) { r.State = 0 }), graveler.ErrInvalidValue},
		"UID of repository":   {putRepository(func(r *graveler.Repository) { r.UID = "" }), graveler.ErrInvalidValue},
		"not UTF-8":           {putRepository(func(r *graveler.Repository) { r.Namespace = "\xff" }), graveler.ErrInvalidValue},
		"time":                {putRepository(func(r *graveler.Repository) { r.CreatedAt = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }), graveler.ErrInvalidValue},
		"stamp":               {putRepository(func(r *graveler.Repository) { r.Stamp = graveler.Stamp("\x0a") }), graveler.ErrInvalidValue},
		"state of branch":     {putBranch(func(b *graveler.Branch) { b.State = 7 }), graveler.ErrInvalidValue},
		"branch without name": {putBranch(func(b *graveler.Branch) { b.ID = "" }), graveler.ErrInvalidValue},
		"item of two kinds":   {putBranch(func(b *graveler.Branch) { b.Items[1].Prefix = graveler.Key("p") }), graveler.ErrInvalidValue},
		"item out of order":   {putBranch(func(b *graveler.Branch) { b.Items[1].Number = 2 }), graveler.ErrInvalidValue},
		"item of the future":  {putBranch(func(b *graveler.Branch) { b.ItemCounter = 1 }), graveler.ErrInvalidValue},
		"move without op":     {putBranch(func(b *graveler.Branch) { b.LastMove.Op = 0 }), graveler.ErrInvalidValue},
		"too large":           {putBranch(func(b *graveler.Branch) { b.Base = graveler.MetaRangeID(make([]byte, kv.MaxValueBytes)) }), graveler.ErrTooLarge},
		"commit without ID":   {refs.PutCommit(ctx, repo, &graveler.Commit{}), graveler.ErrInvalidValue},
		"tag without commit":  {refs.CreateTag(ctx, repo, &graveler.Tag{ID: "v1"}), graveler.ErrInvalidValue},
		"move backwards":      {refs.PutMove(ctx, repo, uid, graveler.Move{Time: 5, Previous: 5, Op: graveler.OpCommit}), graveler.ErrInvalidValue},
		"negative time":       {refs.PutMove(ctx, repo, uid, graveler.Move{Time: -5, Previous: -6, Op: graveler.OpCommit}), graveler.ErrInvalidValue},
		"move of no branch":   {refs.PutMove(ctx, repo, "", graveler.Move{Time: 5, Op: graveler.OpCommit}), graveler.ErrInvalidValue},
		"log in another log":  {refs.PutMove(ctx, repo, "a/b", graveler.Move{Time: 5, Op: graveler.OpCommit}), graveler.ErrInvalidValue},
		"branch with a colon": {refs.PutLogName(ctx, repo, "a:b", uid), graveler.ErrInvalidName},
		"cleanup of nothing":  {refs.PutCleanup(ctx, graveler.Cleanup{}), graveler.ErrInvalidValue},
	} {
		require.ErrorIs(t, c.got, c.want, name)
	}
	for _, partition := range []string{"graveler", "cleanup-tokens", repo.Partition()} {
		require.Empty(t, keys(t, store, partition))
	}
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
