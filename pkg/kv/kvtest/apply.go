// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
)

func applies(t *testing.T, h Harness) {
	h.check(t, "all writes land", applyAll)
	h.check(t, "a failing predicate in the middle leaves nothing", applyFailing)
	h.check(t, "a fence that holds lets the writes through", applyFence)
	h.check(t, "a fence that does not hold leaves nothing", applyFenceFailed)
	h.check(t, "without writes the fence is checked", applyNothing)
	h.check(t, "the same key twice is refused", applyDuplicate)
	h.check(t, "as much as the limits say is accepted, and no more", applyLimits)
}

func applyAll(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	require.NoError(t, s.Set(ctx, part, []byte("old"), []byte("1")))
	require.NoError(t, s.Set(ctx, part, []byte("gone"), []byte("1")))
	absent, present, one := kv.Absent, kv.Present, kv.Equals([]byte("1"))
	require.NoError(t, s.Apply(ctx, part, []kv.Write{
		{Key: []byte("new"), Value: []byte("2"), If: &absent},
		{Key: []byte("old"), Value: []byte("2"), If: &one},
		{Key: []byte("gone"), If: &present},
		{Key: []byte("empty"), Value: []byte{}},
		{Key: []byte("never there")},
		{Key: []byte("never there either"), If: &absent},
	}, nil))
	_, values := scanAll(t, s, part, kv.ScanOptions{})
	require.Equal(t, map[string]string{"new": "2", "old": "2", "empty": ""}, values)
}

func applyFailing(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	require.NoError(t, s.Set(ctx, part, []byte("b"), []byte("1")))
	absent, present, two := kv.Absent, kv.Present, kv.Equals([]byte("2"))
	for name, failing := range map[string]kv.Write{
		"absent":            {Key: []byte("b"), Value: []byte("9"), If: &absent},
		"present":           {Key: []byte("x"), Value: []byte("9"), If: &present},
		"equals":            {Key: []byte("b"), Value: []byte("9"), If: &two},
		"equals of nothing": {Key: []byte("x"), If: &two},
		"delete":            {Key: []byte("x"), If: &present},
	} {
		for _, at := range []int{0, 1, 2} {
			writes := []kv.Write{{Key: []byte("a"), Value: []byte("9")}, {Key: []byte("c"), Value: []byte("9")}}
			writes = append(writes[:at], append([]kv.Write{failing}, writes[at:]...)...)
			require.ErrorIs(t, s.Apply(ctx, part, writes, nil), kv.ErrPredicateFailed, name)
			_, values := scanAll(t, s, part, kv.ScanOptions{})
			require.Equal(t, map[string]string{"b": "1"}, values, name)
		}
	}
}

func applyFence(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	other, fenceKey := []byte("other"), []byte("fence")
	for i, partition := range [][]byte{part, other} {
		require.NoError(t, s.SetIf(ctx, partition, fenceKey, []byte("1"), kv.Absent))
		for j, p := range []kv.Predicate{kv.Present, kv.Equals([]byte("1"))} {
			fence := &kv.Fence{Partition: partition, Key: fenceKey, Predicate: p}
			key := fmt.Appendf(nil, "k-%d-%d", i, j)
			require.NoError(t, s.Apply(ctx, part, []kv.Write{{Key: key, Value: []byte("v")}}, fence))
			requireValue(t, s, part, key, "v")
		}
	}
	fence := &kv.Fence{Partition: other, Key: []byte("k"), Predicate: kv.Absent}
	require.NoError(t, s.Apply(ctx, part, []kv.Write{{Key: []byte("k"), Value: []byte("v")}}, fence))
	requireValue(t, s, other, fenceKey, "1")
}

func applyFenceFailed(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	absent := kv.Absent
	require.NoError(t, s.SetIf(ctx, part, []byte("fence"), []byte("1"), kv.Absent))
	for _, fence := range []kv.Fence{
		{Partition: part, Key: []byte("fence"), Predicate: kv.Absent},
		{Partition: part, Key: []byte("fence"), Predicate: kv.Equals([]byte("2"))},
		{Partition: part, Key: []byte("other"), Predicate: kv.Present},
		{Partition: []byte("other"), Key: []byte("fence"), Predicate: kv.Equals([]byte("1"))},
	} {
		err := s.Apply(ctx, part, []kv.Write{
			{Key: []byte("a"), Value: []byte("v")},
			{Key: []byte("b"), Value: []byte("v"), If: &absent},
		}, &fence)
		require.ErrorIs(t, err, kv.ErrFenceFailed)
		require.NotErrorIs(t, err, kv.ErrPredicateFailed)
		keys, _ := scanAll(t, s, part, kv.ScanOptions{})
		require.Equal(t, []string{"fence"}, keys)
	}
}

func applyNothing(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	require.NoError(t, s.Apply(ctx, part, nil, nil))
	fence := &kv.Fence{Partition: part, Key: []byte("fence"), Predicate: kv.Present}
	require.ErrorIs(t, s.Apply(ctx, part, nil, fence), kv.ErrFenceFailed)
	require.NoError(t, s.SetIf(ctx, part, []byte("fence"), []byte("1"), kv.Absent))
	require.NoError(t, s.Apply(ctx, part, nil, fence))
}

func applyDuplicate(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	w := func(key string) kv.Write { return kv.Write{Key: []byte(key), Value: []byte("v")} }
	require.ErrorIs(t, s.Apply(ctx, part, []kv.Write{w("a"), w("b"), w("a")}, nil), kv.ErrDuplicateKey)
	require.ErrorIs(t, s.Apply(ctx, part, []kv.Write{w("a"), {Key: []byte("a")}}, nil), kv.ErrDuplicateKey)
	fence := &kv.Fence{Partition: part, Key: []byte("b"), Predicate: kv.Absent}
	require.ErrorIs(t, s.Apply(ctx, part, []kv.Write{w("a"), w("b")}, fence), kv.ErrDuplicateKey)
	keys, _ := scanAll(t, s, part, kv.ScanOptions{})
	require.Empty(t, keys)
}

func applyLimits(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	l := s.Limits()
	most := make([]kv.Write, l.ApplyWrites)
	for i := range most {
		most[i] = kv.Write{Key: fmt.Appendf(nil, "%08d", i), Value: []byte("v")}
	}
	require.NoError(t, s.Apply(ctx, part, most, nil))
	keys, _ := scanAll(t, s, part, kv.ScanOptions{})
	require.Len(t, keys, len(most))
	tooMany := append(most, kv.Write{Key: []byte("one too many"), Value: []byte("v")})
	require.ErrorIs(t, s.Apply(ctx, []byte("many"), tooMany, nil), kv.ErrTooLarge)

	var heavy []kv.Write
	for size, i := 0, 0; size <= l.ApplyBytes && len(heavy) < l.ApplyWrites; i++ {
		w := kv.Write{Key: fmt.Appendf(nil, "%08d", i), Value: bytes.Repeat([]byte("v"), l.ValueBytes)}
		heavy = append(heavy, w)
		size += len(w.Key) + len(w.Value)
		if size > l.ApplyBytes {
			require.ErrorIs(t, s.Apply(ctx, []byte("heavy"), heavy, nil), kv.ErrTooLarge)
			heavy = heavy[:i]
		}
	}
	require.NoError(t, s.Apply(ctx, []byte("heavy"), heavy, nil))
	keys, _ = scanAll(t, s, []byte("heavy"), kv.ScanOptions{})
	require.Len(t, keys, len(heavy))
	keys, _ = scanAll(t, s, []byte("many"), kv.ScanOptions{})
	require.Empty(t, keys)
}
