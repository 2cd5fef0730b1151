// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// The benchmarks run on files with every write synced, on trees of a million entries (see entry).
const million = 1_000_000

func benchStore(b *testing.B) *Store {
	storage, err := local.OpenDir(b.TempDir(), block.OpenOptions{})
	require.NoError(b, err)
	s, err := New(Config{Storage: func(context.Context, string) (block.Storage, error) { return storage, nil }})
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, s.Close())
		require.NoError(b, storage.Close())
	})
	return s
}

// made are entries that exist before the clock starts, so that a benchmark does not measure their making.
func premade(n int) *sliceIterator {
	es := make([]graveler.Entry, n)
	for i := range es {
		es[i] = entry(i)
	}
	return &sliceIterator{entries: es, at: -1}
}

func BenchmarkWriteMillion(b *testing.B) {
	all := premade(million)
	size := 0
	for _, e := range all.entries {
		size += len(e.Key) + len(e.Value.Identity) + len(e.Value.Data)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		b.StopTimer()
		s := benchStore(b)
		all.at = -1
		b.StartTimer()
		_, err := s.Apply(b.Context(), ns, s.EmptyTree(), all)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.N)*million/b.Elapsed().Seconds(), "entries/s")
}

func BenchmarkApplyOneInMillion(b *testing.B) {
	s := benchStore(b)
	tree := large(b, s, million)
	i := 0
	for b.Loop() {
		i++
		_, err := s.Apply(b.Context(), ns, tree, one(rand.IntN(million), fmt.Sprint(i)))
		require.NoError(b, err)
	}
}

func BenchmarkApplyScattered(b *testing.B) {
	s := benchStore(b)
	tree := large(b, s, million)
	round := 0
	for b.Loop() { // 10,000 changes all over the tree: every range is rewritten
		round++
		_, err := s.Apply(b.Context(), ns, tree, &counted{n: 10_000, entry: func(i int) graveler.Entry {
			e := entry(100 * i)
			e.Value.Identity = fmt.Append(nil, round)
			return e
		}})
		require.NoError(b, err)
	}
}

func BenchmarkDiffOneInMillion(b *testing.B) {
	s := benchStore(b)
	tree := large(b, s, million)
	other, err := s.Apply(b.Context(), ns, tree, one(million/2, "other"))
	require.NoError(b, err)
	for b.Loop() {
		it := s.Diff(b.Context(), ns, tree, other)
		require.True(b, it.Next())
		require.False(b, it.Next())
		require.NoError(b, it.Close())
	}
}

func BenchmarkGet(b *testing.B) {
	s := benchStore(b)
	tree := large(b, s, million)
	for name, span := range map[string]int{"hot": 10_000, "everywhere": million} {
		keys := make([]graveler.Key, 1<<16)
		for i := range keys {
			keys[i] = entry(rand.IntN(span)).Key
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				if _, err := s.Get(b.Context(), ns, tree, keys[i%len(keys)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkScanMillion(b *testing.B) {
	s := benchStore(b)
	tree := large(b, s, million)
	for b.Loop() {
		it := s.Scan(b.Context(), ns, tree)
		n := 0
		for it.Next() {
			n++
		}
		require.NoError(b, it.Close())
		require.Equal(b, million, n)
	}
	b.ReportMetric(float64(b.N)*million/b.Elapsed().Seconds(), "entries/s")
}

func BenchmarkListPage(b *testing.B) {
	s := benchStore(b)
	tree := large(b, s, million)
	for b.Loop() {
		it := s.Scan(b.Context(), ns, tree)
		it.SeekGE(entry(rand.IntN(million - 1000)).Key)
		for range 1000 {
			require.True(b, it.Next())
		}
		require.NoError(b, it.Close())
	}
}
