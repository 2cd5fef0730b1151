// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
)

func bulk(t *testing.T, h Harness) {
	h.check(t, "100,000 keys are set and dropped", setAndDropMany)
	h.check(t, "set many replaces and deletes, and the last write of a key wins", setManyMixed)
	h.check(t, "dropping may be repeated, and spares other partitions", dropOne)
}

func setAndDropMany(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	const n = 100_000
	keys := fill(t, s, part, n)
	it, err := s.Scan(ctx, part, kv.ScanOptions{})
	require.NoError(t, err)
	seen := 0
	for it.Next() {
		if keys[seen] != string(it.Key()) { // a comparison cheaper than require's
			require.Equal(t, keys[seen], string(it.Key()))
		}
		seen++
	}
	require.NoError(t, it.Close())
	require.Equal(t, n, seen)
	require.NoError(t, kv.DropPartition(ctx, s, part))
	rest, _ := scanAll(t, s, part, kv.ScanOptions{})
	require.Empty(t, rest)
	requireMissing(t, s, part, []byte(keys[n/2]))
	require.NoError(t, s.Set(ctx, part, []byte(keys[0]), []byte("again")))
	requireValue(t, s, part, []byte(keys[0]), "again")
}

func setManyMixed(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	keys := fill(t, s, part, 1000)
	want := make(map[string]string, len(keys))
	var writes []kv.Write
	for round := range 2 {
		for i, key := range keys {
			w := kv.Write{Key: []byte(key)}
			delete(want, key)
			if (i+round)%3 != 0 {
				want[key] = key + "!"
				w.Value = []byte(want[key])
			}
			writes = append(writes, w)
		}
		half := writes[len(writes)-len(keys):]
		rand.Shuffle(len(half), func(i, j int) { half[i], half[j] = half[j], half[i] })
	}
	require.NoError(t, kv.SetMany(ctx, s, part, writes))
	_, values := scanAll(t, s, part, kv.ScanOptions{})
	require.Equal(t, want, values)
	require.NoError(t, kv.SetMany(ctx, s, part, nil))
}

func dropOne(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	require.NoError(t, kv.DropPartition(ctx, s, part))
	for _, partition := range []string{"par", "part", "part\x00", "partition"} {
		fill(t, s, []byte(partition), 10)
	}
	require.NoError(t, kv.DropPartition(ctx, s, part))
	require.NoError(t, kv.DropPartition(ctx, s, part))
	for partition, n := range map[string]int{"par": 10, "part": 0, "part\x00": 10, "partition": 10} {
		keys, _ := scanAll(t, s, []byte(partition), kv.ScanOptions{})
		require.Len(t, keys, n, partition)
	}
}
