// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/internal/oldsql"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
)

var (
	benchStaged  = flag.Int("staged", 100_000, "rows that benchmarks stage")
	benchCommits = flag.Int("commits", 1000, "commits that benchmarks have")
)

// BenchmarkRun compares a run, and a verification, with what bounds them: COPY out of the same rows, piped into SetMany. Only
// what is measured side by side can be compared: run÷piped and verify÷run are ratios of rates. The memory is that of a process of
// its own only where one engine is measured.
func BenchmarkRun(b *testing.B) {
	url := testpg.Start(b).NewDatabase(b)
	conn, err := pgx.Connect(b.Context(), url)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, conn.Close(context.Background())) })
	s := &sides{url: url, conn: conn, trees: memtrees.New()}
	s.fill(b, oldsql.Params{Seed: 1, Repositories: 1, Branches: 4, Commits: *benchCommits, Tags: 10, Staged: *benchStaged})
	rows := float64(*benchStaged + *benchCommits)
	for name, store := range map[string]func() string{
		"bolt":     func() string { return "bolt:" + filepath.Join(b.TempDir(), "meta.db") },
		"pebble":   func() string { return "pebble:" + filepath.Join(b.TempDir(), "meta") },
		"postgres": func() string { return testpg.Start(b).NewDatabase(b) },
	} {
		open := func(b *testing.B) kv.Store {
			to, err := kv.Open(b.Context(), store(), all.Engines(), kv.OpenOptions{})
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, to.Close()) })
			return to
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.kv = open(b)
				began := time.Now()
				_, err := s.migration(b).Plan(b.Context())
				require.NoError(b, err)
				planned := time.Since(began)
				debug.FreeOSMemory() // of what made the rows
				peak, stop := watchMemory()
				began = time.Now()
				s.run(b)
				ran := time.Since(began)
				began = time.Now()
				require.NoError(b, s.verify(b).Err())
				verified := time.Since(began)
				stop()
				piped := pipe(b, conn, open(b))
				b.ReportMetric(planned.Seconds(), "plan-s")
				b.ReportMetric(rows/ran.Seconds(), "run-rows/s")
				b.ReportMetric(rows/verified.Seconds(), "verify-rows/s")
				b.ReportMetric(piped.Seconds()/ran.Seconds(), "run÷piped")
				b.ReportMetric(ran.Seconds()/verified.Seconds(), "verify÷run")
				b.ReportMetric(float64(*peak)/(1<<20), "peak-MiB")
			}
		})
	}
}

// pipe copies commits and staged rows out as text, and into one partition as they come.
func pipe(b *testing.B, conn *pgx.Conn, to kv.Store) time.Duration {
	b.Helper()
	began := time.Now()
	for _, table := range []string{"graveler_commits", "graveler_staging_kv"} {
		w := &lineWriter{write: func(batch []kv.Write) error { return kv.SetMany(b.Context(), to, []byte("piped"), batch) }}
		_, err := conn.PgConn().CopyTo(b.Context(), w, "COPY (SELECT * FROM "+table+") TO STDOUT")
		require.NoError(b, err)
		require.NoError(b, w.flush())
	}
	return time.Since(began)
}

// lineWriter turns lines of COPY into writes: token and key are the key, the rest is the value.
type lineWriter struct {
	rest  []byte
	batch []kv.Write
	write func([]kv.Write) error
}

func (w *lineWriter) Write(text []byte) (int, error) {
	w.rest = append(w.rest, text...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(text), nil
		}
		fields := bytes.SplitN(line, []byte("\t"), 3)
		key := append(append(bytes.Clone(fields[0]), 0), fields[1]...)
		w.batch = append(w.batch, kv.Write{Key: key[:min(len(key), kv.MaxKeyBytes)], Value: bytes.Clone(fields[2])})
		w.rest = rest
		if len(w.batch) == 1000 {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
}

func (w *lineWriter) flush() error {
	if len(w.batch) == 0 {
		return nil
	}
	batch := w.batch
	w.batch = nil
	return w.write(batch)
}

// watchMemory notes the most anonymous memory that this process has, in bytes, until stop is called.
func watchMemory() (peak *int64, stop func()) {
	peak = new(int64)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			*peak = max(*peak, anonymous())
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	}()
	return peak, func() {
		close(done)
		<-ended
	}
}

func anonymous() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if kib, found := strings.CutPrefix(line, "RssAnon:"); found {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kib), "kB")), 10, 64)
			if err != nil {
				panic(fmt.Errorf("RssAnon: %w", err))
			}
			return n << 10
		}
	}
	return 0
}
