// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"encoding/binary"
	"flag"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

var (
	lakeEntries    = flag.Int("lake-entries", 100_000, "entries that benchmarks of lakeFS have")
	lakeCommits    = flag.Int("lake-commits", 100, "commits that benchmarks of lakeFS have")
	lakeChanges    = flag.Int("lake-changes", 100, "entries that each commit changes there")
	lakeRaggedness = flag.Int("lake-raggedness", 5000, "entries of a range there")
)

// BenchmarkRunOfLakeFS compares a run with what bounds the conversion of trees: reading every range of the source once, and
// writing all of their entries as one stream. run÷once is a ratio of rates; records are those of the distinct ranges.
func BenchmarkRunOfLakeFS(b *testing.B) {
	l := emptyLake(b)
	storage, err := local.OpenDir(filepath.Join(l.dir, "large"), block.OpenOptions{})
	require.NoError(b, err)
	p := lakegen.LargeParams{Seed: 1, Entries: *lakeEntries, Commits: *lakeCommits, Changes: *lakeChanges, Raggedness: *lakeRaggedness}
	large, err := lakegen.Large(b.Context(), storage, p)
	require.NoError(b, err)
	l.deployment = &lakegen.Deployment{Repositories: []*lakegen.Repository{large}}
	require.NoError(b, l.deployment.WriteKV(b.Context(), l.conn))
	for b.Loop() {
		l.blocks = ""
		l.onDisk(b)
		l.kv, err = kv.Open(b.Context(), "bolt:"+filepath.Join(b.TempDir(), "meta.db"), all.Engines(), kv.OpenOptions{})
		require.NoError(b, err)
		peak, stop := watchMemory()
		began := time.Now()
		l.run(b)
		ran := time.Since(began)
		stop()
		began = time.Now()
		v := l.verify(b)
		require.NoError(b, v.Err())
		verified := time.Since(began)
		require.NoError(b, l.kv.Close())
		began = time.Now()
		records := l.once(b, large)
		once := time.Since(began)
		b.ReportMetric(float64(records), "records")
		b.ReportMetric(ran.Seconds(), "run-s")
		b.ReportMetric(once.Seconds(), "once-s")
		b.ReportMetric(once.Seconds()/ran.Seconds(), "run÷once")
		b.ReportMetric(ran.Seconds()/verified.Seconds(), "verify÷run")
		b.ReportMetric(float64(*peak)/(1<<20), "peak-MiB")
	}
}

// once reads every range once, and writes its entries, behind a number of the range.
func (l *lake) once(b *testing.B, r *lakegen.Repository) (records int) {
	b.Helper()
	storage, err := local.OpenDir(filepath.Join(l.dir, "large"), block.OpenOptions{})
	require.NoError(b, err)
	blocks, err := local.OpenDir(b.TempDir(), block.OpenOptions{})
	require.NoError(b, err)
	trees, err := committed.New(committed.Config{Storage: func(context.Context, string) (block.Storage, error) { return blocks, nil }})
	require.NoError(b, err)
	files := lakefs.NewFiles(storage, "large")
	all := &numberedEntries{}
	distinct := l.distinctRanges(b, files, r)
	all.next = func() (entries []graveler.Entry) {
		if len(distinct) == 0 {
			return nil
		}
		found, err := files.Range(b.Context(), distinct[0])
		require.NoError(b, err)
		all.number, distinct = all.number+1, distinct[1:]
		for _, record := range found {
			v, err := lakefs.Value(record, r.Namespace)
			require.NoError(b, err)
			entries = append(entries, graveler.Entry{Key: append(binary.BigEndian.AppendUint32(nil, all.number), record.Key...), Value: &v})
		}
		records += len(entries)
		return entries
	}
	_, err = trees.Apply(b.Context(), "", trees.EmptyTree(), all)
	require.NoError(b, err)
	require.NoError(b, files.Close())
	return records
}

func (l *lake) distinctRanges(b *testing.B, files *lakefs.Files, r *lakegen.Repository) (distinct []lakefs.Range) {
	b.Helper()
	seen := map[string]bool{}
	for _, c := range r.Commits {
		ranges, err := files.Metarange(b.Context(), c.Metarange)
		require.NoError(b, err)
		for _, part := range ranges {
			if !seen[part.ID] {
				seen[part.ID] = true
				distinct = append(distinct, part)
			}
		}
	}
	return distinct
}

// numberedEntries iterates over the entries of one range after another.
type numberedEntries struct {
	number  uint32
	entries []graveler.Entry
	next    func() []graveler.Entry
}

func (n *numberedEntries) Next() bool {
	if len(n.entries) > 1 {
		n.entries = n.entries[1:]
		return true
	}
	n.entries = n.next()
	return len(n.entries) > 0
}

func (n *numberedEntries) SeekGE(graveler.Key)  {}
func (n *numberedEntries) Item() graveler.Entry { return n.entries[0] }
func (n *numberedEntries) Err() error           { return nil }
func (n *numberedEntries) Close() error         { return nil }
