// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func records(n int) []Record {
	all := make([]Record, n)
	for i := range all {
		all[i] = Record{fmt.Appendf(nil, "key-%06d", i), make([]byte, 200)}
	}
	return all
}

func TestTablesHoldTheirRecordsInSeveralFiles(t *testing.T) {
	all := records(20_000)
	tables, err := WriteTables(t.TempDir(), all)
	require.NoError(t, err)
	require.Greater(t, len(tables.files), 2)
	for _, c := range []struct{ from, limit, want int }{{0, 100_000, 20_000}, {10_000, 100_000, 10_000}, {4_990, 1000, 1000}, {19_999, 10, 1}} {
		n, err := tables.Scan(all[c.from].Key, c.limit)
		require.NoError(t, err)
		require.Equal(t, c.want, n, "%+v", c)
	}
	require.NoError(t, tables.Close())
}

func TestConcurrentWritesToBoltAllLand(t *testing.T) {
	b, err := OpenBolt(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	require.NoError(t, b.Load(records(100)))
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for n := range 10 {
				key := fmt.Appendf(nil, "%d/%d", w, n)
				if err := b.Set(t.Context(), key, key); err != nil {
					t.Error(err)
				}
				if err := b.Batch(t.Context(), append(key, '+'), key); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	for w := range 8 {
		for n := range 10 {
			key := fmt.Appendf(nil, "%d/%d", w, n)
			for _, suffix := range []string{"", "+"} {
				value, err := b.Get(append(key, suffix...))
				require.NoError(t, err)
				require.Equal(t, key, value)
			}
		}
	}
	value, err := b.Get([]byte("key-000099"))
	require.NoError(t, err)
	require.Len(t, value, 200)
	require.NoError(t, b.Close())
}

func TestPebbleWrites(t *testing.T) {
	p, err := OpenPebble(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, p.Set(t.Context(), []byte("k"), []byte("v")))
	value, closer, err := p.db.Get([]byte("k"))
	require.NoError(t, err)
	require.Equal(t, "v", string(value))
	require.NoError(t, closer.Close())
	require.NoError(t, p.Close())
}

func TestTheDiskLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	rate, err := SyncRate(t.Context(), dir, time.Millisecond)
	require.NoError(t, err)
	require.Positive(t, rate)
	require.NoError(t, WriteFile(t.Context(), dir, 3<<20+5))
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
