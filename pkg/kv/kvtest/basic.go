// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/kv"
)

func basics(t *testing.T, h Harness) {
	h.check(t, "a value that was set is read back", readBack)
	h.check(t, "a missing key is not found", missing)
	h.check(t, "a set replaces", replace)
	h.check(t, "a delete removes and may be repeated", remove)
	h.check(t, "an empty value is a value", emptyValue)
	h.check(t, "partitions do not run into each other", separatePartitions)
	h.check(t, "slices passed in may be reused", passedSlices)
	h.check(t, "slices handed out belong to the caller", returnedSlices)
	h.check(t, "any sequence of calls gives what a map does", likeAMap)
}

func readBack(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	for _, key := range []string{"k", "\x00", "\x00\x00", "\xff", "\xff\xff", "k\x00", "a/b", "ключ"} {
		require.NoError(t, s.Set(ctx, part, []byte(key), []byte("of "+key)))
	}
	for _, key := range []string{"k", "\x00", "\x00\x00", "\xff", "\xff\xff", "k\x00", "a/b", "ключ"} {
		requireValue(t, s, part, []byte(key), "of "+key)
	}
}

func missing(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	requireMissing(t, s, part, []byte("k"))
	require.NoError(t, s.Set(ctx, part, []byte("k"), []byte("v")))
	requireMissing(t, s, part, []byte("k\x00"))
	requireMissing(t, s, part, []byte("j"))
	requireMissing(t, s, []byte("other"), []byte("k"))
}

func replace(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	for _, value := range []string{"one", "a longer one", "", "x"} {
		require.NoError(t, s.Set(ctx, part, []byte("k"), []byte(value)))
		requireValue(t, s, part, []byte("k"), value)
	}
}

func remove(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	require.NoError(t, s.Delete(ctx, part, []byte("k")))
	require.NoError(t, s.Set(ctx, part, []byte("k"), []byte("v")))
	require.NoError(t, s.Set(ctx, part, []byte("l"), []byte("v")))
	require.NoError(t, s.Delete(ctx, part, []byte("k")))
	requireMissing(t, s, part, []byte("k"))
	requireValue(t, s, part, []byte("l"), "v")
	require.NoError(t, s.Delete(ctx, part, []byte("k")))
}

func emptyValue(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	require.NoError(t, s.Set(ctx, part, []byte("k"), []byte{}))
	item, err := s.Get(ctx, part, []byte("k"))
	require.NoError(t, err)
	require.NotNil(t, item.Value)
	require.Empty(t, item.Value)

	it, err := s.Scan(ctx, part, kv.ScanOptions{})
	require.NoError(t, err)
	require.True(t, it.Next())
	require.NotNil(t, it.Value())
	require.Empty(t, it.Value())
	require.False(t, it.Next())
	require.NoError(t, it.Close())
}

func separatePartitions(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	places := [][2]string{
		{"a", "b/c"}, {"a/b", "c"}, {"a", "b\x00c"}, {"a\x00b", "c"}, {"a", "bc"}, {"ab", "c"},
		{"a\xff", "b"}, {"a", "\xffb"}, {"\x00", "\x00"}, {"\x00\x00", "\x00"}, {"\xff", "\xff"},
	}
	for _, p := range places {
		require.NoError(t, s.Set(ctx, []byte(p[0]), []byte(p[1]), []byte(p[0]+"|"+p[1])))
	}
	counts := make(map[string]int)
	for _, p := range places {
		requireValue(t, s, []byte(p[0]), []byte(p[1]), p[0]+"|"+p[1])
		counts[p[0]]++
	}
	for partition, n := range counts {
		keys, _ := scanAll(t, s, []byte(partition), kv.ScanOptions{})
		require.Len(t, keys, n, "partition %q", partition)
	}
	require.NoError(t, kv.DropPartition(ctx, s, []byte("a")))
	for _, p := range places {
		if p[0] == "a" {
			requireMissing(t, s, []byte(p[0]), []byte(p[1]))
		} else {
			requireValue(t, s, []byte(p[0]), []byte(p[1]), p[0]+"|"+p[1])
		}
	}
}

func passedSlices(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	partition, key, value := []byte("p"), []byte("k"), []byte("v")
	scribble := func() {
		for _, b := range [][]byte{partition, key, value} {
			b[0] ^= 0xff
		}
	}
	require.NoError(t, s.Set(ctx, partition, key, value))
	scribble()
	requireValue(t, s, []byte("p"), []byte("k"), "v")
	scribble()
	require.NoError(t, s.SetIf(ctx, partition, key, value, kv.Present))
	scribble()
	requireValue(t, s, []byte("p"), []byte("k"), "v")
	scribble()
	require.NoError(t, s.Apply(ctx, partition, []kv.Write{{Key: key, Value: value}}, nil))
	scribble()
	requireValue(t, s, []byte("p"), []byte("k"), "v")
	scribble()
	require.NoError(t, kv.SetMany(ctx, s, partition, []kv.Write{{Key: key, Value: value}}))
	p := kv.Equals(value)
	it, err := s.Scan(ctx, partition, kv.ScanOptions{Start: key, Prefix: key})
	require.NoError(t, err)
	scribble()
	requireValue(t, s, []byte("p"), []byte("k"), "v")
	require.True(t, it.Next())
	require.NoError(t, it.Close())
	require.NoError(t, s.DeleteIf(ctx, []byte("p"), []byte("k"), p))
}

func returnedSlices(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	require.NoError(t, s.Set(ctx, part, []byte("k"), []byte("v")))
	require.NoError(t, s.Set(ctx, part, []byte("l"), []byte("w")))
	item, err := s.Get(ctx, part, []byte("k"))
	require.NoError(t, err)
	item.Value[0] = 'X'
	requireValue(t, s, part, []byte("k"), "v")
	require.NoError(t, s.SetIf(ctx, part, []byte("k"), []byte("v"), item.Predicate))

	it, err := s.Scan(ctx, part, kv.ScanOptions{})
	require.NoError(t, err)
	require.True(t, it.Next())
	key, value := it.Key(), it.Value()
	require.True(t, it.Next())
	require.Equal(t, "k", string(key))
	require.Equal(t, "v", string(value))
	key[0], value[0] = 'X', 'X'
	_, _ = append(key, 'Y'), append(value, 'Y')
	require.Equal(t, "l", string(it.Key()))
	require.Equal(t, "w", string(it.Value()))
	it.SeekGE([]byte("a"))
	require.True(t, it.Next())
	require.Equal(t, "k", string(it.Key()))
	require.NoError(t, it.Close())
	requireValue(t, s, part, []byte("k"), "v")
}

// likeAMap runs random calls and compares each answer with that of a map.
func likeAMap(t *testing.T, h Harness) {
	s := h.open(t)
	rapid.Check(t, func(rt *rapid.T) {
		partition := []byte("model")
		require.NoError(rt, kv.DropPartition(t.Context(), s, partition))
		m := &model{store: s, partition: partition, want: make(map[string]string)}
		for range rapid.IntRange(1, 12).Draw(rt, "calls") {
			m.step(rt)
		}
		keys, values := scanAll(rt, s, partition, kv.ScanOptions{})
		require.Equal(rt, m.want, values)
		require.Equal(rt, slices.Sorted(maps.Keys(m.want)), keys)
	})
}

type model struct {
	store     kv.Store
	partition []byte
	want      map[string]string
}

var (
	modelKeys       = rapid.SampledFrom([]string{"\x00", "a", "a\x00", "b", "\xff", "\xff\xff"})
	modelValues     = rapid.SampledFrom([]string{"", "x", "y"})
	modelPredicates = rapid.SampledFrom([]kv.Predicate{
		kv.Absent, kv.Present, kv.Equals(nil), kv.Equals([]byte("x")), kv.Equals([]byte("y")),
	})
)

func (m *model) step(t *rapid.T) {
	key, value := modelKeys.Draw(t, "key"), modelValues.Draw(t, "value")
	p := modelPredicates.Draw(t, "predicate")
	k, v := []byte(key), []byte(value)
	switch rapid.SampledFrom([]string{"get", "set", "setIf", "delete", "deleteIf", "apply"}).Draw(t, "call") {
	case "get":
		m.get(t, key)
	case "set":
		require.NoError(t, m.store.Set(t.Context(), m.partition, k, v))
		m.want[key] = value
	case "delete":
		require.NoError(t, m.store.Delete(t.Context(), m.partition, k))
		delete(m.want, key)
	case "setIf":
		if m.outcome(t, m.store.SetIf(t.Context(), m.partition, k, v, p), m.holds(key, p)) {
			m.want[key] = value
		}
	case "deleteIf":
		if m.outcome(t, m.store.DeleteIf(t.Context(), m.partition, k, p), m.holds(key, p)) {
			delete(m.want, key)
		}
	case "apply":
		m.apply(t)
	}
}

func (m *model) get(t *rapid.T, key string) {
	item, err := m.store.Get(t.Context(), m.partition, []byte(key))
	want, found := m.want[key]
	if !found {
		require.ErrorIs(t, err, kv.ErrNotFound)
		return
	}
	require.NoError(t, err)
	require.True(t, bytes.Equal([]byte(want), item.Value))
	require.Equal(t, kv.Equals([]byte(want)), item.Predicate)
}

func (m *model) apply(t *rapid.T) {
	keys := rapid.SliceOfNDistinct(modelKeys, 0, 4, rapid.ID).Draw(t, "keys")
	var writes []kv.Write
	holds := true
	for _, key := range keys {
		w := kv.Write{Key: []byte(key)}
		if rapid.Bool().Draw(t, "set") {
			w.Value = []byte(modelValues.Draw(t, "value"))
		}
		if rapid.IntRange(0, 3).Draw(t, "conditional") == 0 {
			p := modelPredicates.Draw(t, "predicate")
			w.If = &p
			holds = holds && m.holds(key, p)
		}
		writes = append(writes, w)
	}
	if !m.outcome(t, m.store.Apply(t.Context(), m.partition, writes, nil), holds) {
		return
	}
	for _, w := range writes {
		if w.Value == nil {
			delete(m.want, string(w.Key))
		} else {
			m.want[string(w.Key)] = string(w.Value)
		}
	}
}

func (m *model) holds(key string, p kv.Predicate) bool {
	value, found := m.want[key]
	return p.Holds([]byte(value), found)
}

// outcome checks that a conditional write did what its predicate says, and returns whether it did.
func (m *model) outcome(t *rapid.T, err error, holds bool) bool {
	if holds {
		require.NoError(t, err)
	} else {
		require.ErrorIs(t, err, kv.ErrPredicateFailed)
	}
	return holds
}
