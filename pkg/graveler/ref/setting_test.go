// SPDX-License-Identifier: Apache-2.0

package ref_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
	"github.com/moraine-store/moraine/pkg/graveler/stest"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

const setting = "lifecycle"

// large takes several chunks.
func large(seed uint64) []byte { return stest.Document(seed, 700<<10) }

func chunkKeys(t require.TestingT, store kv.Store) []string {
	var chunks []string
	for _, key := range keys(t, store, repository().Partition()) {
		if strings.HasPrefix(key, "setting-chunks/") {
			chunks = append(chunks, key)
		}
	}
	return chunks
}

func requireSetting(t *testing.T, refs *ref.Store, want []byte) graveler.Stamp {
	t.Helper()
	got, stamp, err := refs.GetSetting(t.Context(), repository(), setting)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "another document")
	return stamp
}

// hooked runs something before a call of the engine: the first for a key that contains a string.
// It offers no capabilities.
type hooked struct {
	kv.Store
	mu     sync.Mutex
	get    hook
	setIf  hook
	delete hook
}

type hook struct {
	key string
	run func() error
}

func (h *hooked) fire(which *hook, key []byte) error {
	h.mu.Lock()
	run := which.run
	if run == nil || !strings.Contains(string(key), which.key) {
		h.mu.Unlock()
		return nil
	}
	which.run = nil
	h.mu.Unlock()
	return run()
}

func (h *hooked) Get(ctx context.Context, partition, key []byte) (kv.Item, error) {
	if err := h.fire(&h.get, key); err != nil {
		return kv.Item{}, err
	}
	return h.Store.Get(ctx, partition, key)
}

func (h *hooked) SetIf(ctx context.Context, partition, key, value []byte, p kv.Predicate) error {
	if err := h.fire(&h.setIf, key); err != nil {
		return err
	}
	return h.Store.SetIf(ctx, partition, key, value, p)
}

func (h *hooked) Delete(ctx context.Context, partition, key []byte) error {
	if err := h.fire(&h.delete, key); err != nil {
		return err
	}
	return h.Store.Delete(ctx, partition, key)
}

func TestSettingsOfAnySizeComeBack(t *testing.T) {
	for _, size := range []int{0, 1, 1000, kv.MaxValueBytes - 200, kv.MaxValueBytes, 1 << 20, ref.MaxSettingBytes} {
		store := memStore(t)
		refs, repo := ref.New(store), repository()
		for _, data := range [][]byte{stest.Document(uint64(size), size), make([]byte, size)} {
			_, err := refs.PutSetting(t.Context(), repo, setting, data, nil)
			require.NoError(t, err)
			stamp := requireSetting(t, refs, data)
			require.NoError(t, refs.RemoveSetting(t.Context(), repo, setting, stamp))
		}
	}
}

func TestASmallSettingIsOneRecord(t *testing.T) {
	store := memStore(t)
	refs, repo := ref.New(store), repository()
	_, err := refs.PutSetting(t.Context(), repo, setting, bytes.Repeat([]byte("rule "), 100_000), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"settings/" + setting}, keys(t, store, repo.Partition()))
}

func TestOnlyTheChunksOfTheStoredDocumentRemain(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, refs, repo := t.Context(), ref.New(store), repository()
		other := []byte("another setting, whose name is a prefix")
		_, err := refs.PutSetting(ctx, repo, setting[:4], other, nil)
		require.NoError(t, err)

		var stamp graveler.Stamp
		for seed := range uint64(3) {
			stamp, err = refs.PutSetting(ctx, repo, setting, large(seed), stamp)
			require.NoError(t, err)
			require.Equal(t, stamp, requireSetting(t, refs, large(seed)))
			require.Len(t, chunkKeys(t, store), 3)
		}
		stamp, err = refs.PutSetting(ctx, repo, setting, []byte("small"), stamp)
		require.NoError(t, err)
		require.Empty(t, chunkKeys(t, store))

		stamp, err = refs.PutSetting(ctx, repo, setting, large(9), stamp)
		require.NoError(t, err)
		require.NoError(t, refs.RemoveSetting(ctx, repo, setting, stamp))
		require.Empty(t, chunkKeys(t, store))
		_, stamp, err = refs.GetSetting(ctx, repo, setting)
		require.ErrorIs(t, err, graveler.ErrSettingNotFound)
		require.Nil(t, stamp)

		got, _, err := refs.GetSetting(ctx, repo, setting[:4])
		require.NoError(t, err)
		require.Equal(t, other, got)
	})
}

func TestAReaderIsNotDisturbedByAReplacement(t *testing.T) {
	store := &hooked{Store: memStore(t)}
	ctx, refs, repo := t.Context(), ref.New(store), repository()
	stamp, err := refs.PutSetting(ctx, repo, setting, large(1), nil)
	require.NoError(t, err)

	store.get = hook{"/00000001", func() error {
		_, err := refs.PutSetting(ctx, repo, setting, large(2), stamp)
		return err
	}}
	stamp = requireSetting(t, refs, large(2))

	store.get = hook{"/00000002", func() error { return refs.RemoveSetting(ctx, repo, setting, stamp) }}
	_, _, err = refs.GetSetting(ctx, repo, setting)
	require.ErrorIs(t, err, graveler.ErrSettingNotFound)
}

func TestALoserLeavesNoChunks(t *testing.T) {
	store := &hooked{Store: memStore(t)}
	ctx, refs, repo := t.Context(), ref.New(store), repository()
	store.setIf = hook{setting, func() error {
		_, err := refs.PutSetting(ctx, repo, setting, large(2), nil)
		return err
	}}
	_, err := refs.PutSetting(ctx, repo, setting, large(1), nil)
	require.ErrorIs(t, err, graveler.ErrChanged, "overtaken with its chunks in place")
	second := requireSetting(t, refs, large(2))
	require.Len(t, chunkKeys(t, store), 3)

	third, err := refs.PutSetting(ctx, repo, setting, []byte("small"), second)
	require.NoError(t, err)
	_, err = refs.PutSetting(ctx, repo, setting, large(4), second)
	require.ErrorIs(t, err, graveler.ErrChanged, "overtaken before it began")
	require.Equal(t, third, requireSetting(t, refs, []byte("small")))
	require.Empty(t, chunkKeys(t, store))
}

func TestLeftOverChunksGoWithTheNextWrite(t *testing.T) {
	store := &hooked{Store: memStore(t)}
	ctx, refs, repo := t.Context(), ref.New(store), repository()
	lost := errors.New("connection lost")
	store.setIf = hook{setting, func() error { return lost }}
	_, err := refs.PutSetting(ctx, repo, setting, large(1), nil)
	require.ErrorIs(t, err, lost)
	require.Len(t, chunkKeys(t, store), 3, "the head might still come to name them")

	_, err = refs.PutSetting(ctx, repo, setting, []byte("small"), nil)
	require.NoError(t, err)
	require.Empty(t, chunkKeys(t, store))
}

func TestAWriterWhoWasOvertakenByARemovalDoesNotLand(t *testing.T) {
	store := &hooked{Store: memStore(t)}
	ctx, refs, repo := t.Context(), ref.New(store), repository()
	store.setIf = hook{setting, func() error { // its chunks are written, its head is not
		stamp, err := refs.PutSetting(ctx, repo, setting, []byte("short-lived"), nil)
		require.NoError(t, err)
		return refs.RemoveSetting(ctx, repo, setting, stamp)
	}}
	_, err := refs.PutSetting(ctx, repo, setting, large(1), nil)
	require.ErrorIs(t, err, graveler.ErrChanged)
	_, _, err = refs.GetSetting(ctx, repo, setting)
	require.ErrorIs(t, err, graveler.ErrSettingNotFound)
	require.Empty(t, chunkKeys(t, store))
}

func TestAWriterWhoCleansUpLateLeavesLaterChunksAlone(t *testing.T) {
	store := &hooked{Store: memStore(t)}
	ctx, refs, repo := t.Context(), ref.New(store), repository()
	stamp, err := refs.PutSetting(ctx, repo, setting, large(1), nil)
	require.NoError(t, err)
	store.delete = hook{"setting-chunks/", func() error { // version 2 is stored and about to remove version 1
		_, head, err := refs.GetSetting(ctx, repo, setting)
		require.NoError(t, err)
		_, err = refs.PutSetting(ctx, repo, setting, large(3), head)
		return err
	}}
	_, err = refs.PutSetting(ctx, repo, setting, large(2), stamp)
	require.NoError(t, err)
	requireSetting(t, refs, large(3))
	require.Len(t, chunkKeys(t, store), 3)
}

func TestADamagedSettingIsAnError(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, store kv.Store, partition []byte, chunks []string){
		"missing chunk": func(t *testing.T, store kv.Store, partition []byte, chunks []string) {
			require.NoError(t, store.Delete(t.Context(), partition, []byte(chunks[1])))
		},
		"chunk of another": func(t *testing.T, store kv.Store, partition []byte, chunks []string) {
			m := &refpb.SettingChunk{Data: large(2)[:1000]}
			require.NoError(t, kv.SetMessage(t.Context(), store, partition, []byte(chunks[2]), m))
		},
		"chunk that does not decode": func(t *testing.T, store kv.Store, partition []byte, chunks []string) {
			require.NoError(t, store.Set(t.Context(), partition, []byte(chunks[0]), []byte("\xff")))
		},
		"other checksum": func(t *testing.T, store kv.Store, partition []byte, _ []string) {
			plant(t, store, string(partition), "settings/"+setting, &refpb.SettingData{}, func(m *refpb.SettingData) { m.Checksum++ })
		},
		"number of chunks without bound": func(t *testing.T, store kv.Store, partition []byte, _ []string) {
			plant(t, store, string(partition), "settings/"+setting, &refpb.SettingData{}, func(m *refpb.SettingData) { m.Chunks = 1 << 31 })
		},
		"more than a document can be": func(t *testing.T, store kv.Store, partition []byte, _ []string) {
			plant(t, store, string(partition), "settings/"+setting, &refpb.SettingData{}, func(m *refpb.SettingData) {
				m.Size, m.Chunks = ref.MaxSettingBytes+1, 0
				m.Data = s2.Encode(nil, make([]byte, m.Size))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := memStore(t)
			ctx, refs, repo := t.Context(), ref.New(store), repository()
			_, err := refs.PutSetting(ctx, repo, setting, large(1), nil)
			require.NoError(t, err)
			damage(t, store, []byte(repo.Partition()), chunkKeys(t, store))
			_, _, err = refs.GetSetting(ctx, repo, setting)
			require.ErrorIs(t, err, graveler.ErrCorrupt)
			require.ErrorContains(t, err, repo.Partition())
		})
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	store := memStore(t)
	ctx, refs, repo := t.Context(), ref.New(store), repository()
	for _, name := range []string{"", "Lifecycle", "1st", "-a", "a/b", "a b", "a\n", strings.Repeat("a", 65)} {
		_, err := refs.PutSetting(ctx, repo, name, nil, nil)
		require.ErrorIs(t, err, graveler.ErrInvalidName)
		_, _, err = refs.GetSetting(ctx, repo, name)
		require.ErrorIs(t, err, graveler.ErrInvalidName)
		require.ErrorIs(t, refs.RemoveSetting(ctx, repo, name, nil), graveler.ErrInvalidName)
	}
	_, err := refs.PutSetting(ctx, repo, setting, make([]byte, ref.MaxSettingBytes+1), nil)
	require.ErrorIs(t, err, graveler.ErrTooLarge)
	_, err = refs.PutSetting(ctx, repo, setting, nil, graveler.Stamp("\xff"))
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	require.Empty(t, keys(t, store, repo.Partition()))
}

func TestUnknownFieldsOfASettingSurvive(t *testing.T) {
	store := memStore(t)
	ctx, refs, repo := t.Context(), ref.New(store), repository()
	_, err := refs.PutSetting(ctx, repo, setting, large(1), nil)
	require.NoError(t, err)
	plant(t, store, repo.Partition(), "settings/"+setting, &refpb.SettingData{}, func(m *refpb.SettingData) {
		m.ProtoReflect().SetUnknown(unknownField("setting"))
	})
	_, err = refs.PutSetting(ctx, repo, setting, []byte("small"), requireSetting(t, refs, large(1)))
	require.NoError(t, err)
	m := &refpb.SettingData{}
	_, err = kv.GetMessage(ctx, store, []byte(repo.Partition()), []byte("settings/"+setting), m)
	require.NoError(t, err)
	require.Equal(t, unknownField("setting"), []byte(m.ProtoReflect().GetUnknown()))
}

// narrow is an engine whose values are small.
type narrow struct{ kv.Store }

const narrowBytes = 500

func (n narrow) Limits() kv.Limits {
	l := n.Store.Limits()
	l.ValueBytes = narrowBytes
	return l
}

func TestSettingsBehaveLikeAVariableOnAnyEngine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := narrow{mem.New()}
		defer func() { require.NoError(t, store.Close()) }()
		ctx, refs, repo := context.Background(), ref.New(store), repository()
		var want []byte // nil: none
		var stamp graveler.Stamp
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				got, s, err := refs.GetSetting(ctx, repo, setting)
				require.Equal(t, want == nil, errors.Is(err, graveler.ErrSettingNotFound))
				require.Equal(t, stamp, s)
				require.True(t, bytes.Equal(want, got))
				for _, key := range keys(t, store, repo.Partition()) {
					item, err := store.Get(ctx, []byte(repo.Partition()), []byte(key))
					require.NoError(t, err)
					require.LessOrEqual(t, len(item.Value), narrowBytes)
				}
			},
			"put": func(t *rapid.T) {
				data := stest.Document(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 3000).Draw(t, "size"))
				s, err := refs.PutSetting(ctx, repo, setting, data, stamp)
				require.NoError(t, err)
				want, stamp = data, s
			},
			"put on another": func(t *rapid.T) {
				_, err := refs.PutSetting(ctx, repo, setting, stest.Document(0, 2000), graveler.Stamp{})
				require.ErrorIs(t, err, graveler.ErrChanged)
			},
			"remove": func(t *rapid.T) {
				require.NoError(t, refs.RemoveSetting(ctx, repo, setting, stamp))
				want, stamp = nil, nil
			},
		})
	})
}
