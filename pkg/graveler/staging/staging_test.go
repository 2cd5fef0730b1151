// SPDX-License-Identifier: Apache-2.0

package staging_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/graveler/staging/stagingpb"
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

func eachEngine(t *testing.T, test func(t *testing.T, store kv.Store)) {
	t.Run("mem", func(t *testing.T) { test(t, memStore(t)) })
	t.Run("bolt", func(t *testing.T) {
		store, err := bolt.Open(t.Context(), "bolt:"+filepath.Join(t.TempDir(), "meta.db"), kv.OpenOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		test(t, store)
	})
}

func memStore(t *testing.T) kv.Store {
	store := mem.New()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// collect copies what is staged under the token.
func collect(t require.TestingT, s *staging.Store, from, prefix graveler.Key) []graveler.Entry {
	it, err := s.Scan(context.Background(), token, from, prefix)
	require.NoError(t, err)
	var all []graveler.Entry
	for it.Next() {
		all = append(all, it.Item().Clone())
	}
	require.NoError(t, it.Err())
	require.NoError(t, it.Close())
	require.NoError(t, it.Close())
	return all
}

// fenced writes a branch record and returns the fence that it is.
func fenced(t *testing.T, store kv.Store) *graveler.Fence {
	repo := &graveler.Repository{ID: "lake", UID: "cv0example0000000000"}
	b := &graveler.Branch{ID: "feature/x", UID: "cv0example0000000001", State: graveler.BranchLive, Token: token, Nonce: "n1"}
	stamp, err := ref.New(store).PutBranch(t.Context(), repo, b)
	require.NoError(t, err)
	b.Stamp = stamp
	return &graveler.Fence{Repository: repo, Branch: b}
}

func TestStagedEntriesComeBack(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, s := t.Context(), staging.New(store)
		key, v := graveler.Key("\x00a/\xff"), value("id", "data")
		require.NoError(t, s.Apply(ctx, nil, token, []graveler.StagedWrite{
			{Key: key, Value: v},
			{Key: graveler.Key("deleted")},
			{Key: graveler.Key("empty"), Value: value("id", "")},
		}))
		got, err := s.Get(ctx, token, key)
		require.NoError(t, err)
		require.Equal(t, v, got.Value)
		require.NotNil(t, got.Stamp)

		got.Value.Identity[0]++ // what is handed out is the caller's, stamp apart
		got.Value.Data[0]++
		replace := graveler.StagedWrite{Key: key, Value: got.Value, Conditional: true, If: got.Stamp}
		require.NoError(t, s.Apply(ctx, nil, token, []graveler.StagedWrite{replace}))

		deleted, err := s.Get(ctx, token, graveler.Key("deleted"))
		require.NoError(t, err)
		require.Nil(t, deleted.Value)
		require.NotNil(t, deleted.Stamp)

		empty, err := s.Get(ctx, token, graveler.Key("empty"))
		require.NoError(t, err)
		require.Empty(t, empty.Value.Data)

		nothing, err := s.Get(ctx, token, graveler.Key("nothing"))
		require.NoError(t, err)
		require.Zero(t, nothing)
		nothing, err = s.Get(ctx, "lake-main:t2", key)
		require.NoError(t, err)
		require.Zero(t, nothing)
	})
}

func TestFencedWritesLandWhileTheBranchIsAsRead(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, s := t.Context(), staging.New(store)
		fence := fenced(t, store)
		require.NoError(t, s.Apply(ctx, fence, token, []graveler.StagedWrite{put("a", "1")}))
		require.NoError(t, s.Apply(ctx, fence, token, []graveler.StagedWrite{put("b", "1"), put("c", "1")}))
		require.NoError(t, s.Apply(ctx, fence, token, nil))

		sealed := fence.Branch.Clone()
		sealed.Nonce = "n2"
		_, err := ref.New(store).PutBranch(ctx, fence.Repository, sealed)
		require.NoError(t, err)
		for _, writes := range [][]graveler.StagedWrite{{put("a", "2")}, {put("d", "2"), {Key: graveler.Key("b")}}, nil} {
			require.ErrorIs(t, s.Apply(ctx, fence, token, writes), graveler.ErrFenceFailed)
		}
		require.Equal(t, []graveler.Entry{
			{Key: graveler.Key("a"), Value: value("1", "data of 1")},
			{Key: graveler.Key("b"), Value: value("1", "data of 1")},
			{Key: graveler.Key("c"), Value: value("1", "data of 1")},
		}, collect(t, s, nil, nil))
	})
}

func TestConditionalWritesLandOnWhatWasRead(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, s := t.Context(), staging.New(store)
		for name, fence := range map[string]*graveler.Fence{"fenced": fenced(t, store), "unfenced": nil} {
			key := graveler.Key(name)
			write := func(identity string, stamp graveler.Stamp, others ...graveler.StagedWrite) error {
				w := put(name, identity)
				w.Conditional, w.If = true, stamp
				return s.Apply(ctx, fence, token, append(others, w))
			}
			require.NoError(t, write("1", nil))
			require.ErrorIs(t, write("2", nil), graveler.ErrChanged)
			first, err := s.Get(ctx, token, key)
			require.NoError(t, err)
			require.NoError(t, write("2", first.Stamp))
			require.ErrorIs(t, write("3", first.Stamp, put("other", "1")), graveler.ErrChanged)

			second, err := s.Get(ctx, token, key)
			require.NoError(t, err)
			require.Equal(t, "2", string(second.Value.Identity))
			remove := graveler.StagedWrite{Key: key, Conditional: true, If: second.Stamp}
			require.NoError(t, s.Apply(ctx, fence, token, []graveler.StagedWrite{remove}))
			require.ErrorIs(t, write("3", nil), graveler.ErrChanged, "a tombstone is something")

			other, err := s.Get(ctx, token, graveler.Key("other"))
			require.NoError(t, err)
			require.Zero(t, other, "all or none")
		}
	})
}

func TestBadWritesAreRefused(t *testing.T) {
	store := memStore(t)
	s := staging.New(store)
	fence := fenced(t, store)
	fence.Branch.Stamp = nil
	for name, c := range map[string]struct {
		fence  *graveler.Fence
		token  graveler.StagingToken
		writes []graveler.StagedWrite
		want   error
	}{
		"no identity":     {nil, token, []graveler.StagedWrite{put("a", "1"), {Key: graveler.Key("b"), Value: value("", "data")}}, graveler.ErrInvalidValue},
		"no key":          {nil, token, []graveler.StagedWrite{put("", "1")}, graveler.ErrInvalidValue},
		"no token":        {nil, "", []graveler.StagedWrite{put("a", "1")}, graveler.ErrInvalidValue},
		"a key twice":     {nil, token, []graveler.StagedWrite{put("a", "1"), put("a", "2")}, graveler.ErrInvalidValue},
		"fence unread":    {fence, token, []graveler.StagedWrite{put("a", "1")}, graveler.ErrInvalidValue},
		"key too large":   {nil, token, []graveler.StagedWrite{{Key: make(graveler.Key, kv.MaxKeyBytes+1)}}, graveler.ErrTooLarge},
		"value too large": {nil, token, []graveler.StagedWrite{{Key: graveler.Key("a"), Value: value("1", string(make([]byte, kv.MaxValueBytes)))}}, graveler.ErrTooLarge},
	} {
		require.ErrorIs(t, s.Apply(t.Context(), c.fence, c.token, c.writes), c.want, name)
	}
	require.Empty(t, collect(t, s, nil, nil))
}

func TestWhatIsWithinTheLimitsIsNotTooLarge(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		s := staging.New(store)
		fence, limits := fenced(t, store), s.Limits()
		fill := func(key, data int) []graveler.StagedWrite {
			var writes []graveler.StagedWrite
			for size := 0; len(writes) < limits.Writes; {
				w := graveler.StagedWrite{Key: fmt.Appendf(nil, "%0*d", key, len(writes))}
				if data > 0 {
					w.Value = &graveler.Value{Identity: []byte("i"), Data: bytes.Repeat([]byte("d"), data-1)}
				}
				if size += w.Size(); size > limits.Bytes {
					break
				}
				writes = append(writes, w)
			}
			return writes
		}
		const largest = 252 << 10
		for _, c := range []struct{ key, data int }{{8, 0}, {8, 200}, {kv.MaxKeyBytes, 0}, {kv.MaxKeyBytes, 3000}, {kv.MaxKeyBytes, largest}} {
			writes := fill(c.key, c.data)
			require.NotEmpty(t, writes)
			require.NoError(t, s.Apply(t.Context(), fence, token, writes), c)
		}
		more := make([]graveler.StagedWrite, limits.Writes+1)
		for i := range more {
			more[i].Key = fmt.Appendf(nil, "%d", i)
		}
		require.ErrorIs(t, s.Apply(t.Context(), fence, token, more), graveler.ErrTooLarge)
	})
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
