// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/kv"
)

func scans(t *testing.T, h Harness) {
	h.check(t, "an empty partition has no entries", scanNothing)
	h.check(t, "keys come in byte order", scanOrder)
	h.check(t, "start and prefix select", scanSelection)
	h.check(t, "a prefix that ends in 0xff ends where it should", scanPrefixOfFF)
	h.check(t, "pages join without a gap, whatever their size", scanPages)
	h.check(t, "large values are all seen", scanLargeValues)
	h.check(t, "seeks go forward, backward and past the end", scanSeeks)
	h.check(t, "any scan with any seeks gives what a sorted list does", scanLikeAList)
	h.check(t, "deletes and inserts between pages hide nothing else", scanWhileChanging)
	h.check(t, "a cancelled scan does not pass for a complete one", scanCancelled)
	h.check(t, "a scan of a closed store does not pass for a complete one", scanClosed)
	h.check(t, "a closed iterator stays at its end", scanAfterClose)
}

func scanNothing(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	require.NoError(t, s.Set(ctx, []byte("other"), []byte("k"), []byte("v")))
	it, err := s.Scan(ctx, part, kv.ScanOptions{})
	require.NoError(t, err)
	require.Nil(t, it.Key())
	require.Nil(t, it.Value())
	require.False(t, it.Next())
	require.False(t, it.Next())
	require.Nil(t, it.Key())
	require.Nil(t, it.Value())
	require.NoError(t, it.Err())
	require.NoError(t, it.Close())
	require.NoError(t, it.Close())
}

func scanOrder(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	keys := []string{"\x00", "\x00\x00", "\x01", "A", "a", "a\x00", "a\x00b", "a/", "aa", "b", "é", "\xfe\xff", "\xff", "\xff\x00", "\xff\xff"}
	for _, i := range []int{7, 3, 14, 0, 9, 12, 1, 5, 11, 2, 13, 8, 4, 10, 6} {
		require.NoError(t, s.Set(ctx, part, []byte(keys[i]), []byte("of "+keys[i])))
	}
	got, values := scanAll(t, s, part, kv.ScanOptions{})
	require.Equal(t, keys, got)
	for _, key := range keys {
		require.Equal(t, "of "+key, values[key])
	}
}

func scanSelection(t *testing.T, h Harness) {
	s := h.open(t)
	for _, key := range []string{"a", "b", "ba", "bb", "bc", "c"} {
		require.NoError(t, s.Set(t.Context(), part, []byte(key), []byte("v")))
	}
	for _, c := range []struct {
		start, prefix string
		want          []string
	}{
		{"", "b", []string{"b", "ba", "bb", "bc"}},
		{"bb", "", []string{"bb", "bc", "c"}},
		{"bb", "b", []string{"bb", "bc"}},
		{"b\x00", "b", []string{"ba", "bb", "bc"}},
		{"a", "b", []string{"b", "ba", "bb", "bc"}},
		{"c", "b", nil},
		{"d", "", nil},
		{"", "bcd", nil},
		{strings.Repeat("b", 2*kv.MaxKeyBytes), "", []string{"bc", "c"}},
	} {
		got, _ := scanAll(t, s, part, kv.ScanOptions{Start: []byte(c.start), Prefix: []byte(c.prefix)})
		require.Equal(t, c.want, got, "start %q, prefix %q", c.start, c.prefix)
	}
}

func scanPrefixOfFF(t *testing.T, h Harness) {
	s := h.open(t)
	keys := []string{"a", "a\xfe", "a\xff", "a\xff\x00", "a\xff\xff", "b", "\xff", "\xff\x01", "\xff\xff", "\xff\xff\xff"}
	for _, key := range keys {
		require.NoError(t, s.Set(t.Context(), part, []byte(key), []byte("v")))
	}
	for _, prefix := range []string{"a\xff", "a\xff\xff", "\xff", "\xff\xff", "\xff\xff\xff\xff"} {
		var want []string
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		got, _ := scanAll(t, s, part, kv.ScanOptions{Prefix: []byte(prefix)})
		require.Equal(t, want, got, "prefix %q", prefix)
	}
}

func scanPages(t *testing.T, h Harness) {
	s := h.open(t)
	keys := fill(t, s, part, 500)
	for _, size := range []int{-1, 0, 1, 2, 3, 499, 500, 501, 1 << 40} {
		got, _ := scanAll(t, s, part, kv.ScanOptions{BatchSize: size})
		require.Equal(t, keys, got, "batch size %d", size)
	}
}

func scanLargeValues(t *testing.T, h Harness) {
	s := h.open(t)
	var keys []string
	for i := range 20 {
		key := fmt.Sprintf("key-%02d", i)
		keys = append(keys, key)
		value := bytes.Repeat([]byte{byte(i)}, s.Limits().ValueBytes)
		require.NoError(t, s.Set(t.Context(), part, []byte(key), value))
	}
	got, values := scanAll(t, s, part, kv.ScanOptions{BatchSize: 1000})
	require.Equal(t, keys, got)
	for i, key := range keys {
		require.Len(t, values[key], s.Limits().ValueBytes)
		require.Equal(t, byte(i), values[key][0])
	}
}

func scanSeeks(t *testing.T, h Harness) {
	s := h.open(t)
	fill(t, s, part, 100)
	it, err := s.Scan(t.Context(), part, kv.ScanOptions{Prefix: []byte("key-00"), Start: []byte("key-000050"), BatchSize: 10})
	require.NoError(t, err)
	next := func(want string) {
		t.Helper()
		if want == "" {
			require.False(t, it.Next())
			require.Nil(t, it.Key())
			require.NoError(t, it.Err())
			return
		}
		require.True(t, it.Next())
		require.Equal(t, want, string(it.Key()))
	}
	next("key-000050")
	it.SeekGE([]byte("key-000053"))
	require.Nil(t, it.Key(), "no entry is current between SeekGE and Next")
	next("key-000053")
	next("key-000054")
	it.SeekGE([]byte("key-000054"))
	next("key-000054")
	it.SeekGE([]byte("key-000090x"))
	next("key-000091")
	it.SeekGE([]byte("key-000010"))
	next("key-000010")
	it.SeekGE([]byte("z"))
	next("")
	next("")
	it.SeekGE([]byte("key-000099"))
	next("key-000099")
	next("")
	it.SeekGE(nil)
	next("key-000000")
	it.SeekGE([]byte("a"))
	it.SeekGE([]byte("key-000077"))
	next("key-000077")
	require.NoError(t, it.Close())
}

func scanLikeAList(t *testing.T, h Harness) {
	s := h.open(t)
	var keys []string
	for _, a := range []string{"", "\x00", "a", "b", "\xff"} {
		for _, b := range []string{"\x00", "a", "b", "\xfe", "\xff"} {
			keys = append(keys, a+b, a+b+"\x00", a+b+"\xff")
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, key := range keys {
		require.NoError(t, s.Set(t.Context(), part, []byte(key), []byte(key)))
	}
	anyKey := rapid.StringMatching(`(\x00|a|b|c){0,3}`)
	rapid.Check(t, func(rt *rapid.T) {
		o := kv.ScanOptions{
			Start:     []byte(anyKey.Draw(rt, "start")),
			Prefix:    []byte(rapid.SampledFrom([]string{"", "a", "b\xff", "\xff", "\xff\xff", "c"}).Draw(rt, "prefix")),
			BatchSize: rapid.IntRange(0, 5).Draw(rt, "batch size"),
		}
		it, err := s.Scan(t.Context(), part, o)
		require.NoError(rt, err)
		rest := keysFrom(keys, o.Start, o.Prefix)
		for range rapid.IntRange(1, 60).Draw(rt, "moves") {
			if rapid.IntRange(0, 9).Draw(rt, "seek") == 0 {
				to := []byte(anyKey.Draw(rt, "to"))
				it.SeekGE(to)
				rest = keysFrom(keys, to, o.Prefix)
			}
			require.Equal(rt, len(rest) > 0, it.Next())
			if len(rest) > 0 {
				require.Equal(rt, rest[0], string(it.Key()))
				require.Equal(rt, rest[0], string(it.Value()))
				rest = rest[1:]
			}
		}
		require.NoError(rt, it.Close())
	})
}

func keysFrom(keys []string, start, prefix []byte) (selected []string) {
	for _, key := range keys {
		if key >= string(start) && strings.HasPrefix(key, string(prefix)) {
			selected = append(selected, key)
		}
	}
	return selected
}

// scanWhileChanging leaves the even keys alone and deletes or adds odd ones around the scan.
func scanWhileChanging(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	keys := fill(t, s, part, 300)
	for _, key := range keys {
		if key[len(key)-1]%4 == 1 {
			require.NoError(t, s.Delete(ctx, part, []byte(key)))
		}
	}
	it, err := s.Scan(ctx, part, kv.ScanOptions{BatchSize: 1})
	require.NoError(t, err)
	var seen []string
	for i := 0; it.Next(); i++ {
		seen = append(seen, string(it.Key()))
		at := slices.Index(keys, string(it.Key()))
		for _, other := range []int{at - 1, at, at + 1, at + 7} {
			if other < 0 || other >= len(keys) || other%2 == 0 {
				continue
			}
			w := kv.Write{Key: []byte(keys[other])}
			if i%3 == 0 {
				w.Value = []byte("new")
			}
			require.NoError(t, kv.SetMany(ctx, s, part, []kv.Write{w}))
		}
	}
	require.NoError(t, it.Close())
	require.True(t, slices.IsSorted(seen))
	require.Len(t, slices.Compact(slices.Clone(seen)), len(seen), "a key was seen twice")
	for i := 0; i < len(keys); i += 2 {
		require.Contains(t, seen, keys[i])
	}
}

func scanCancelled(t *testing.T, h Harness) {
	s := h.open(t)
	keys := fill(t, s, part, 10_000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	it, err := s.Scan(ctx, part, kv.ScanOptions{BatchSize: 1})
	require.NoError(t, err)
	require.True(t, it.Next())
	cancel()
	requireErrorOrAll(t, it, len(keys)-1, context.Canceled)
}

func scanClosed(t *testing.T, h Harness) {
	s := h.open(t)
	keys := fill(t, s, part, 10_000)
	it, err := s.Scan(t.Context(), part, kv.ScanOptions{BatchSize: 1})
	require.NoError(t, err)
	require.True(t, it.Next())
	require.NoError(t, s.Close())
	requireErrorOrAll(t, it, len(keys)-1, kv.ErrClosed)
}

// requireErrorOrAll finishes a scan that is disturbed: it may be complete, or else say why not, and
// keep saying so.
func requireErrorOrAll(t *testing.T, it kv.Iterator, all int, want error) {
	t.Helper()
	n := 0
	for it.Next() {
		n++
	}
	if n == all && it.Err() == nil {
		require.NoError(t, it.Close())
		return
	}
	require.ErrorIs(t, it.Err(), want)
	it.SeekGE(nil)
	require.False(t, it.Next())
	require.ErrorIs(t, it.Err(), want)
	err := it.Close()
	require.ErrorIs(t, err, want)
	require.True(t, errors.Is(it.Close(), want), "closing again: %v", err)
}

func scanAfterClose(t *testing.T, h Harness) {
	s := h.open(t)
	fill(t, s, part, 100)
	it, err := s.Scan(t.Context(), part, kv.ScanOptions{})
	require.NoError(t, err)
	require.True(t, it.Next())
	key := it.Key()
	require.NoError(t, it.Close())
	require.Equal(t, "key-000000", string(key))
	require.False(t, it.Next())
	require.Nil(t, it.Key())
	it.SeekGE(nil)
	require.False(t, it.Next())
	require.NoError(t, it.Err())
	require.NoError(t, it.Close())
}
