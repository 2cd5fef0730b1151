// SPDX-License-Identifier: Apache-2.0

package staging_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/graveler/staging/stagingpb"
	"github.com/moraine-store/moraine/pkg/graveler/stest"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/bolt"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

const token = graveler.StagingToken("lake-main:t1")

func value(identity, data string) *graveler.Value {
	return &graveler.Value{Identity: []byte(identity), Data: []byte(data)}
}

func put(key, identity string) graveler.StagedWrite {
	return graveler.StagedWrite{Key: graveler.Key(key), Value: value(identity, "data of "+identity)}
}

func memStore(t *testing.T) kv.Store {
	store := mem.New()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func TestStagedEntriesAreWhatAnyStoreKeeps(t *testing.T) {
	t.Run("mem", func(t *testing.T) {
		stest.Staging(t, func(t *testing.T) (graveler.Refs, graveler.Staging) { return stores(memStore(t)) })
	})
	t.Run("bolt", func(t *testing.T) {
		stest.Staging(t, func(t *testing.T) (graveler.Refs, graveler.Staging) {
			store, err := bolt.Open(t.Context(), "bolt:"+filepath.Join(t.TempDir(), "meta.db"), kv.OpenOptions{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			return stores(store)
		})
	})
}

func stores(store kv.Store) (graveler.Refs, graveler.Staging) {
	return ref.New(store), staging.New(store)
}

func TestLimitsSayWhetherFencesAreCheap(t *testing.T) {
	require.True(t, staging.New(memStore(t)).Limits().CheapFences)
	costly, err := mem.Open(t.Context(), "mem:?fences=costly", kv.OpenOptions{})
	require.NoError(t, err)
	require.False(t, staging.New(costly).Limits().CheapFences)
}

func TestStatesOfTheEngineAreTheStoresOwn(t *testing.T) {
	store := mem.New()
	s := staging.New(store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Get(ctx, token, graveler.Key("a"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.Apply(ctx, nil, token, []graveler.StagedWrite{put("a", "1")}), context.Canceled)

	it, err := s.Scan(t.Context(), token, nil, nil)
	require.NoError(t, err)
	require.NoError(t, store.Close())
	require.False(t, it.Next())
	require.ErrorIs(t, it.Err(), graveler.ErrClosed)
	require.ErrorIs(t, it.Close(), graveler.ErrClosed)
	_, err = s.Scan(t.Context(), token, nil, nil)
	require.ErrorIs(t, err, graveler.ErrClosed)
}

func TestDamagedEntriesAreErrorsThatNameThem(t *testing.T) {
	for name, record := range map[string][]byte{
		"no message":            []byte("\xff"),
		"nothing":               {},
		"truncated":             []byte("\x0a\x01"),
		"other key":             []byte("\x0a\x01c"),
		"data without identity": []byte("\x0a\x01b\x1a\x01d"),
	} {
		t.Run(name, func(t *testing.T) {
			store := memStore(t)
			ctx, s := t.Context(), staging.New(store)
			require.NoError(t, s.Apply(ctx, nil, token, []graveler.StagedWrite{put("a", "1"), put("c", "1")}))
			require.NoError(t, store.Set(ctx, []byte(token), []byte("b"), record))

			_, err := s.Get(ctx, token, graveler.Key("b"))
			require.ErrorIs(t, err, graveler.ErrCorrupt)
			require.ErrorContains(t, err, `partition "lake-main:t1", key "b"`)

			it, err := s.Scan(ctx, token, nil, nil)
			require.NoError(t, err)
			require.True(t, it.Next())
			require.Equal(t, "a", string(it.Item().Key))
			for range 2 {
				require.False(t, it.Next())
				require.ErrorIs(t, it.Err(), graveler.ErrCorrupt)
				it.SeekGE(graveler.Key("c"))
			}
			require.ErrorIs(t, it.Close(), graveler.ErrCorrupt)
		})
	}
}

func TestOnlyStagedEntriesDecode(t *testing.T) {
	store := memStore(t)
	require.NoError(t, staging.New(store).Apply(t.Context(), nil, token, []graveler.StagedWrite{put("a", "1")}))
	item, err := store.Get(t.Context(), []byte(token), []byte("a"))
	require.NoError(t, err)
	m, ok := staging.Decode(string(token), item.Value)
	require.True(t, ok)
	require.Equal(t, "1", string(m.(*stagingpb.StagedEntryData).Identity))

	_, ok = staging.Decode("lake-cv0example0000000000", item.Value)
	require.False(t, ok)
	_, ok = staging.Decode(string(token), []byte("\xff"))
	require.False(t, ok)
}
