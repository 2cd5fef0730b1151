// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
)

func inputs(t *testing.T, h Harness) {
	h.check(t, "limits are within the contract", limits)
	h.check(t, "the largest of everything is accepted", largest)
	h.check(t, "too large is refused", tooLarge)
	h.check(t, "missing parts are refused", missingParts)
}

func limits(t *testing.T, h Harness) {
	l := h.open(t).Limits()
	require.InDelta(t, kv.MaxKeyBytes/2, l.KeyBytes, kv.MaxKeyBytes/2)
	require.Positive(t, l.KeyBytes)
	require.InDelta(t, kv.MaxValueBytes/2, l.ValueBytes, kv.MaxValueBytes/2)
	require.Positive(t, l.ValueBytes)
	require.Positive(t, l.ApplyWrites)
	require.GreaterOrEqual(t, l.ApplyBytes, l.KeyBytes+l.ValueBytes)
	if l.CheapFences {
		require.GreaterOrEqual(t, l.ApplyWrites, 100)
		require.GreaterOrEqual(t, l.ApplyBytes, 1<<20)
	}
}

func largest(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	l := s.Limits()
	value := bytes.Repeat([]byte{'v'}, l.ValueBytes)
	for _, b := range []byte{0x00, 'x', 0xff} {
		partition, key := bytes.Repeat([]byte{b}, kv.MaxPartitionBytes), bytes.Repeat([]byte{b}, l.KeyBytes)
		require.NoError(t, s.Set(ctx, partition, key, value))
		requireValue(t, s, partition, key, string(value))
		require.NoError(t, s.SetIf(ctx, partition, key, []byte("w"), kv.Equals(value)))
		keys, _ := scanAll(t, s, partition, kv.ScanOptions{Start: key, Prefix: key})
		require.Equal(t, []string{string(key)}, keys)
	}
}

func tooLarge(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	l := s.Limits()
	ok := []byte("ok")
	partition := make([]byte, kv.MaxPartitionBytes+1)
	key := make([]byte, l.KeyBytes+1)
	value := make([]byte, l.ValueBytes+1)

	refused := func(err error, size, limit int) {
		t.Helper()
		require.ErrorIs(t, err, kv.ErrTooLarge)
		require.ErrorContains(t, err, strconv.Itoa(size))
		require.ErrorContains(t, err, strconv.Itoa(limit))
	}
	for _, err := range everyCall(ctx, s, partition, ok, ok, kv.Present) {
		refused(err, len(partition), kv.MaxPartitionBytes)
	}
	for name, err := range everyCall(ctx, s, ok, key, ok, kv.Present) {
		if name != "Scan" && name != "DropPartition" {
			refused(err, len(key), l.KeyBytes)
		}
	}
	for _, name := range []string{"Set", "SetIf", "Apply", "SetMany", "Publish"} {
		refused(everyCall(ctx, s, ok, ok, value, kv.Absent)[name], len(value), l.ValueBytes)
	}
	requireMissing(t, s, ok, ok)
}

func missingParts(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	ok := []byte("ok")
	for _, nothing := range [][]byte{nil, {}} {
		for name, err := range everyCall(ctx, s, nothing, ok, ok, kv.Present) {
			require.ErrorIs(t, err, kv.ErrMissingPartition, name)
		}
		for name, err := range everyCall(ctx, s, ok, nothing, ok, kv.Present) {
			if name != "Scan" && name != "DropPartition" {
				require.ErrorIs(t, err, kv.ErrMissingKey, name)
			}
		}
		fence := &kv.Fence{Partition: nothing, Key: ok, Predicate: kv.Absent}
		require.ErrorIs(t, s.Apply(ctx, ok, nil, fence), kv.ErrMissingPartition)
		fence = &kv.Fence{Partition: ok, Key: nothing, Predicate: kv.Absent}
		require.ErrorIs(t, s.Apply(ctx, ok, nil, fence), kv.ErrMissingKey)
	}
	calls := everyCall(ctx, s, ok, ok, nil, kv.Absent)
	require.ErrorIs(t, calls["Set"], kv.ErrMissingValue)
	require.ErrorIs(t, calls["SetIf"], kv.ErrMissingValue)

	calls = everyCall(ctx, s, ok, []byte("unconditional"), ok, kv.Predicate{})
	for _, name := range []string{"SetIf", "DeleteIf", "Apply", "Publish"} {
		require.ErrorIs(t, calls[name], kv.ErrMissingPredicate)
	}
	require.ErrorIs(t, s.Apply(ctx, ok, nil, &kv.Fence{Partition: ok, Key: ok}), kv.ErrMissingPredicate)
	p := kv.Absent
	require.ErrorIs(t, kv.SetMany(ctx, s, ok, []kv.Write{{Key: ok, Value: ok, If: &p}}), kv.ErrUnexpectedPredicate)
	requireMissing(t, s, ok, ok)
}
