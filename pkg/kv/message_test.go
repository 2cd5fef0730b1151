// SPDX-License-Identifier: Apache-2.0

package kv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

var part, key = []byte("p"), []byte("k")

func TestMessagesAreStoredAndRead(t *testing.T) {
	ctx, s := t.Context(), mem.New()
	got := &durationpb.Duration{Seconds: 99}
	_, err := kv.GetMessage(ctx, s, part, key, got)
	require.ErrorIs(t, err, kv.ErrNotFound)

	require.NoError(t, kv.SetMessageIf(ctx, s, part, key, &durationpb.Duration{Seconds: 1}, kv.Absent))
	p, err := kv.GetMessage(ctx, s, part, key, got)
	require.NoError(t, err)
	require.Equal(t, int64(1), got.Seconds)
	require.NoError(t, kv.SetMessage(ctx, s, part, key, &durationpb.Duration{Nanos: 2}))
	require.ErrorIs(t, kv.SetMessageIf(ctx, s, part, key, got, p), kv.ErrPredicateFailed)
	_, err = kv.GetMessage(ctx, s, part, key, got)
	require.NoError(t, err)
	require.True(t, proto.Equal(&durationpb.Duration{Nanos: 2}, got), "what was in the message before is gone")
}

func TestAnEmptyMessageIsAnEmptyValue(t *testing.T) {
	ctx, s := t.Context(), mem.New()
	require.NoError(t, kv.SetMessage(ctx, s, part, key, &durationpb.Duration{}))
	got := &durationpb.Duration{Seconds: 99}
	p, err := kv.GetMessage(ctx, s, part, key, got)
	require.NoError(t, err)
	require.Zero(t, got.Seconds)
	require.Equal(t, kv.Equals(nil), p)
}

func TestUnknownFieldsSurviveReadModifyWrite(t *testing.T) {
	ctx, s := t.Context(), mem.New()
	newer := protowire.AppendTag(nil, 1, protowire.VarintType)
	newer = protowire.AppendVarint(newer, 5)
	newer = protowire.AppendTag(newer, 100, protowire.BytesType)
	newer = protowire.AppendString(newer, "from a newer program")
	require.NoError(t, s.Set(ctx, part, key, newer))

	m := &durationpb.Duration{}
	p, err := kv.GetMessage(ctx, s, part, key, m)
	require.NoError(t, err)
	require.Equal(t, int64(5), m.Seconds)
	m.Nanos = 7
	require.NoError(t, kv.SetMessageIf(ctx, s, part, key, m, p))

	item, err := s.Get(ctx, part, key)
	require.NoError(t, err)
	require.Contains(t, string(item.Value), "from a newer program")
	again := &durationpb.Duration{}
	_, err = kv.GetMessage(ctx, s, part, key, again)
	require.NoError(t, err)
	require.True(t, proto.Equal(m, again))
}

func TestEqualMessagesAreEqualBytes(t *testing.T) {
	fields := make(map[string]any)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		fields[name] = name
	}
	first, err := structpb.NewStruct(fields)
	require.NoError(t, err)
	want, err := kv.MarshalMessage(first)
	require.NoError(t, err)
	for range 20 {
		next, err := structpb.NewStruct(fields)
		require.NoError(t, err)
		got, err := kv.MarshalMessage(next)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestUndecodableMessagesAreErrorsWithTheirKey(t *testing.T) {
	ctx, s := t.Context(), mem.New()
	require.NoError(t, s.Set(ctx, part, key, []byte{0xff}))
	_, err := kv.GetMessage(ctx, s, part, key, &durationpb.Duration{})
	require.ErrorContains(t, err, "decode p/k: ")
	err = kv.SetMessage(ctx, s, part, key, wrapperspb.String("\xff"))
	require.ErrorContains(t, err, "encode p/k: ")
}

func newInt64() *wrapperspb.Int64Value { return &wrapperspb.Int64Value{} }

func TestScanMessages(t *testing.T) {
	ctx, s := t.Context(), mem.New()
	for i := range 200 {
		require.NoError(t, kv.SetMessage(ctx, s, part, []byte{'k', byte(i)}, wrapperspb.Int64(int64(i))))
	}
	n := 0
	for item, err := range kv.ScanMessages(ctx, s, part, kv.ScanOptions{}, newInt64) {
		require.NoError(t, err)
		require.Equal(t, []byte{'k', byte(n)}, item.Key)
		require.Equal(t, int64(n), item.Message.Value)
		require.NoError(t, kv.SetMessageIf(ctx, s, part, item.Key, item.Message, kv.Equals(item.Value)))
		n++
	}
	require.Equal(t, 200, n)
	n = 0
	for item, err := range kv.ScanMessages(ctx, s, part, kv.ScanOptions{Start: []byte{'k', 190}}, newInt64) {
		require.NoError(t, err)
		require.Equal(t, int64(190+n), item.Message.Value)
		n++
	}
	require.Equal(t, 10, n)
}

func TestScanMessagesEndsWithTheError(t *testing.T) {
	ctx, s := t.Context(), mem.New()
	require.NoError(t, kv.SetMessage(ctx, s, part, []byte("a"), wrapperspb.Int64(1)))
	require.NoError(t, s.Set(ctx, part, []byte("b"), []byte{0xff}))
	require.NoError(t, kv.SetMessage(ctx, s, part, []byte("c"), wrapperspb.Int64(3)))
	var values []int64
	var last error
	for item, err := range kv.ScanMessages(ctx, s, part, kv.ScanOptions{}, newInt64) {
		require.NoError(t, last, "something came after an error")
		if last = err; err == nil {
			values = append(values, item.Message.Value)
		}
	}
	require.Equal(t, []int64{1}, values)
	require.ErrorContains(t, last, "decode p/b: ")

	for _, err := range kv.ScanMessages(ctx, s, nil, kv.ScanOptions{}, newInt64) {
		require.ErrorIs(t, err, kv.ErrMissingPartition)
	}
}

// watched is a store whose scans fail at the end and tell whether they were closed.
type watched struct {
	kv.Store
	err    error
	closed int
}

type watchedIterator struct {
	kv.Iterator
	w *watched
}

func (w *watched) Scan(ctx context.Context, partition []byte, o kv.ScanOptions) (kv.Iterator, error) {
	it, err := w.Store.Scan(ctx, partition, o)
	return &watchedIterator{it, w}, err
}

func (it *watchedIterator) Close() error {
	it.w.closed++
	return errors.Join(it.Iterator.Close(), it.w.err)
}

func TestScanMessagesReleasesTheScan(t *testing.T) {
	ctx, s := t.Context(), &watched{Store: mem.New()}
	for _, k := range []string{"a", "b", "c"} {
		require.NoError(t, kv.SetMessage(ctx, s, part, []byte(k), wrapperspb.Int64(1)))
	}
	for _, err := range kv.ScanMessages(ctx, s, part, kv.ScanOptions{}, newInt64) {
		require.NoError(t, err)
		break
	}
	require.Positive(t, s.closed)

	s.closed = 0
	require.Panics(t, func() {
		for range kv.ScanMessages(ctx, s, part, kv.ScanOptions{}, newInt64) {
			panic("in the loop")
		}
	})
	require.Positive(t, s.closed)

	s.err = errors.New("connection lost")
	var last error
	for _, err := range kv.ScanMessages(ctx, s, part, kv.ScanOptions{}, newInt64) {
		last = err
	}
	require.ErrorIs(t, last, s.err, "an error of the scan must not be dropped")
}
