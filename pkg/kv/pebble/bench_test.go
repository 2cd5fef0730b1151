// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
)

// BenchmarkSet compares synced writes of 100 bytes with those of pebble itself, opened in the same way.
func BenchmarkSet(b *testing.B) {
	value := make([]byte, 100)
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("store/%d", writers), func(b *testing.B) {
			var g gate
			s, err := open(b.Context(), g.wrap(private{FS: vfs.Default}), b.TempDir(), false, memTableSize)
			require.NoError(b, err)
			parallel(b, writers, func(key []byte) error { return s.Set(context.Background(), part, key, value) })
			report(b, &g)
			require.NoError(b, s.Close())
		})
		b.Run(fmt.Sprintf("raw/%d", writers), func(b *testing.B) {
			var g gate
			db, err := pebble.Open(b.TempDir(), options(newDisk(g.wrap(vfs.Default)), memTableSize))
			require.NoError(b, err)
			parallel(b, writers, func(key []byte) error { return db.Set(encode(part, key), value, pebble.Sync) })
			report(b, &g)
			require.NoError(b, db.Close())
		})
	}
}

// BenchmarkGetBesideWriters reads what was written before, while others write other keys.
func BenchmarkGetBesideWriters(b *testing.B) {
	s, err := Open(b.Context(), "pebble:"+b.TempDir(), kv.OpenOptions{})
	require.NoError(b, err)
	const keys = 10_000
	writes := make([]kv.Write, keys)
	for i := range writes {
		writes[i] = kv.Write{Key: binary.BigEndian.AppendUint64(nil, uint64(i)), Value: make([]byte, 100)}
	}
	require.NoError(b, kv.SetMany(b.Context(), s, part, writes))
	ctx, cancel := context.WithCancel(b.Context())
	var others sync.WaitGroup
	for w := range 16 {
		others.Go(func() {
			for n := 0; s.Set(ctx, part, fmt.Append(nil, "w", w, n), []byte("v")) == nil; n++ {
			}
		})
	}
	n := 0
	for b.Loop() {
		_, err := s.Get(b.Context(), part, writes[n%keys].Key)
		require.NoError(b, err)
		n++
	}
	cancel()
	others.Wait()
	require.NoError(b, s.Close())
}

// parallel spreads b.N calls over writers, each with a key of its own.
func parallel(b *testing.B, writers int, call func(key []byte) error) {
	b.ResetTimer()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := call(binary.BigEndian.AppendUint64(nil, uint64(n))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
}

// report tells how many syncs of the log a write took.
func report(b *testing.B, g *gate) {
	b.ReportMetric(float64(g.count())/float64(b.N), "syncs/op")
}
