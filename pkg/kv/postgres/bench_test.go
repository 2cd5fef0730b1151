// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/kv"
)

// BenchmarkWrites compares what a store does with what its statements cost one by one: an upsert of
// one row on as many connections, in the same table of a database with fsync.
func BenchmarkWrites(b *testing.B) {
	url := testpg.Start(b).NewDatabase(b)
	s := open(b, url)
	require.NoError(b, s.SetIf(b.Context(), fenced.Partition, fenced.Key, []byte("old"), kv.Absent))
	value := make([]byte, 256)
	for _, c := range []struct {
		name  string
		write func(ctx context.Context, key []byte) error
	}{
		{"raw upsert", rawUpsert(b, url, value)},
		{"Set", func(ctx context.Context, key []byte) error { return s.Set(ctx, part, key, value) }},
		{"Apply fenced", func(ctx context.Context, key []byte) error {
			return s.Apply(ctx, part, []kv.Write{{Key: key, Value: value}}, &fenced)
		}},
		{"Apply fenced if absent", func(ctx context.Context, key []byte) error {
			return s.Apply(ctx, part, []kv.Write{{Key: key, Value: value, If: new(kv.Absent)}}, &fenced)
		}},
		{"Apply fenced two, one if absent", func(ctx context.Context, key []byte) error {
			other := append([]byte("other "), key...)
			return s.Apply(ctx, part, []kv.Write{{Key: key, Value: value, If: new(kv.Absent)}, {Key: other, Value: value}}, &fenced)
		}},
		{"SetIf absent", func(ctx context.Context, key []byte) error { return s.SetIf(ctx, part, key, value, kv.Absent) }},
	} {
		for _, writers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/writers=%d", c.name, writers), func(b *testing.B) { inParallel(b, writers, c.write) })
		}
	}
}

var benchKeys atomic.Uint64

// inParallel divides the iterations among writers, each with keys that nobody had before.
func inParallel(b *testing.B, writers int, write func(ctx context.Context, key []byte) error) {
	var begun atomic.Int64
	errs := make(chan error, writers)
	for range writers {
		go func() {
			for begun.Add(1) <= int64(b.N) {
				// Scattered over the index, as keys of many partitions are.
				key := binary.BigEndian.AppendUint64(nil, benchKeys.Add(1)*0x9e3779b97f4a7c15)
				if err := write(b.Context(), key); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range writers {
		require.NoError(b, <-errs)
	}
}

func rawUpsert(b *testing.B, url string, value []byte) func(context.Context, []byte) error {
	config, err := pgxpool.ParseConfig(url)
	require.NoError(b, err)
	config.MaxConns = 64
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	require.NoError(b, err)
	b.Cleanup(pool.Close)
	return func(ctx context.Context, key []byte) error {
		_, err := pool.Exec(ctx, `insert into moraine.kv (partition_key, key, value) values ($1, $2, $3)
			on conflict (partition_key, key) do update set value = excluded.value`, part, key, value)
		return err
	}
}

func BenchmarkReads(b *testing.B) {
	s := open(b, testpg.Start(b).NewDatabase(b))
	writes := make([]kv.Write, 20_000)
	for i := range writes {
		writes[i] = kv.Write{Key: fmt.Appendf(nil, "%08d", i), Value: make([]byte, 256)}
	}
	b.Run("SetMany 20,000", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, s.SetMany(b.Context(), part, writes))
		}
	})
	b.Run("Get", func(b *testing.B) {
		for b.Loop() {
			_, err := s.Get(b.Context(), part, []byte("00010000"))
			require.NoError(b, err)
		}
	})
	b.Run("Scan 20,000", func(b *testing.B) {
		for b.Loop() {
			it, err := s.Scan(b.Context(), part, kv.ScanOptions{})
			require.NoError(b, err)
			for it.Next() {
				continue
			}
			require.NoError(b, it.Close())
		}
	})
}
