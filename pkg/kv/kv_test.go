// SPDX-License-Identifier: Apache-2.0

package kv_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
)

func TestPredicateHolds(t *testing.T) {
	v, empty := []byte("v"), []byte{}
	for _, c := range []struct {
		name                   string
		p                      kv.Predicate
		missing, onEmpty, onV  bool
		isZero, equalToEqualsV bool
	}{
		{name: "absent", p: kv.Absent, missing: true},
		{name: "present", p: kv.Present, onEmpty: true, onV: true},
		{name: "equals v", p: kv.Equals(v), onV: true, equalToEqualsV: true},
		{name: "equals empty", p: kv.Equals(empty), onEmpty: true},
		{name: "equals nil", p: kv.Equals(nil), onEmpty: true},
		{name: "zero", isZero: true},
	} {
		require.Equal(t, c.missing, c.p.Holds(nil, false), c.name)
		require.Equal(t, c.onEmpty, c.p.Holds(empty, true), c.name)
		require.Equal(t, c.onV, c.p.Holds(v, true), c.name)
		require.Equal(t, c.isZero, c.p.IsZero(), c.name)
		require.Equal(t, c.equalToEqualsV, c.p == kv.Equals([]byte("v")), c.name)
	}
}

func TestPredicateKeepsItsOwnBytes(t *testing.T) {
	value := []byte("v")
	p := kv.Equals(value)
	value[0] = 'x'
	require.True(t, p.Holds([]byte("v"), true))
}

func TestWrapNamesTheOperation(t *testing.T) {
	require.NoError(t, kv.Wrap("get", []byte("p"), []byte("k"), nil))
	err := kv.Wrap("get", []byte("p"), []byte("branches/main"), kv.ErrNotFound)
	require.ErrorIs(t, err, kv.ErrNotFound)
	require.EqualError(t, err, "get p/branches/main: key not found")
	require.EqualError(t, kv.Wrap("scan", []byte("p\n\xff"), nil, errors.New("x")), `scan p\n\xff: x`)

	key := []byte("k")
	err = kv.Wrap("get", []byte("p"), key, kv.ErrNotFound)
	key[0] = 'x'
	require.EqualError(t, err, "get p/k: key not found")

	long := kv.Wrap("set", []byte("p"), []byte(strings.Repeat("k", 1e6)), kv.ErrTooLarge)
	require.Less(t, len(long.Error()), 200)
}

func TestTooLargeNamesLimitAndSize(t *testing.T) {
	l := kv.Limits{KeyBytes: 10, ValueBytes: 20, ApplyWrites: 2, ApplyBytes: 30}
	p, k := []byte("p"), []byte("k")
	w := func(n int) []kv.Write {
		var writes []kv.Write
		for i := range n {
			writes = append(writes, kv.Write{Key: fmt.Appendf(nil, "%d", i), Value: make([]byte, 15)})
		}
		return writes
	}
	for want, err := range map[string]error{
		"too large: partition is 513, limit is 512":            l.CheckKey(make([]byte, 513), k),
		"too large: key is 11, limit is 10":                    l.CheckKey(p, make([]byte, 11)),
		"too large: value is 21, limit is 20":                  l.CheckSet(p, k, make([]byte, 21)),
		"too large: number of writes is 3, limit is 2":         l.CheckApply(p, w(3), nil),
		"too large: sum of keys and values is 32, limit is 30": l.CheckApply(p, w(2), nil),
	} {
		require.ErrorIs(t, err, kv.ErrTooLarge)
		require.EqualError(t, err, want)
	}
	require.NoError(t, l.CheckApply(p, w(1), nil))
	require.NoError(t, l.CheckSetMany(p, w(3)))
}

func TestExpectedIsWhatEqualsComparesWith(t *testing.T) {
	p := kv.Equals([]byte("v"))
	p.Expected()[0] = 'X'
	require.Equal(t, []byte("v"), p.Expected())
	require.Equal(t, []byte{}, kv.Equals(nil).Expected())
	for _, p := range []kv.Predicate{kv.Absent, kv.Present, {}} {
		require.Nil(t, p.Expected())
	}
}
