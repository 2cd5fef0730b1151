// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/reference"
	"github.com/moraine-store/moraine/benchmarks/result"
)

// commitSize measures commits of more and more entries into an empty branch, alone on the machine.
type commitSize struct {
	Sizes      []int `json:"sizes"`
	References int   `json:"references"`
	Small      int   `json:"small"`
}

func newCommitSize(s Setting) *commitSize {
	return &commitSize{
		Sizes: of(s, []int{1_000, 10_000, 100_000, 1_000_000, 10_000_000}, []int{1_000, 10_000, 100_000}, []int{100, 1_000}), References: 1_000_000, Small: of(s, 1_000, 1_000, 10),
	}
}

func (w *commitSize) Flags(f *pflag.FlagSet) {
	f.Var((*numbers)(&w.Sizes), "sizes", "numbers of entries, ascending")
	f.Var((*positive)(&w.References), "references", "up to how many entries the commit is repeated and compared with references, which hold all entries in memory")
	f.Var((*positive)(&w.Small), "small", "entries of the commits before and after the staged keys are dropped")
}

func (w *commitSize) run(ctx context.Context, b *bench) error {
	var peaks []float64
	for _, n := range w.Sizes {
		peak, bytes, err := w.alone(ctx, b, n)
		if err != nil {
			return err
		}
		peaks = append(peaks, peak)
		if n <= w.References {
			if err := w.compared(ctx, b, n, bytes); err != nil {
				return err
			}
		}
	}
	if last := len(peaks) - 1; last > 0 && peaks[last-1] > 0 {
		b.metricAt("memory ÷ that of the size before", w.Sizes[last], inEntries, result.Slowdown, peaks[last]/peaks[last-1])
	}
	return nil
}

const (
	inEntries   = "entries"
	tableWriter = "sstable writer"
)

// alone makes one commit while nothing else takes memory, and returns the peak, and the bytes of the files. The process gives
// back what it has free before, and the entries are generated as they are staged.
func (w *commitSize) alone(ctx context.Context, b *bench, n int) (peak float64, bytes int64, err error) {
	repo, err := b.repository(ctx)
	if err != nil {
		return 0, 0, err
	}
	es := b.entries("data", n)
	if err := b.stage(ctx, repo, mainBranch, es); err != nil {
		return 0, 0, err
	}
	b.memory.Mark()
	before := b.blocks.BytesPut()
	err = b.counting(fmt.Sprintf("commit of %d entries", n), func() error {
		_, err := b.commit(ctx, repo, mainBranch)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	peak, bytes = float64(b.memory.Peak()), b.blocks.BytesPut()-before
	b.metricAt("memory", n, inEntries, result.Bytes, peak)
	if _, err := b.verifyBranch(ctx, repo, es.all); err != nil {
		return 0, 0, err
	}
	b.checked("a commit of %d entries has them with their values, and nothing else, and has the root ID of a fresh tree", n)
	return peak, bytes, b.discard(ctx, repo)
}

// compared repeats the commit, in turn with references that are fed from memory.
func (w *commitSize) compared(ctx context.Context, b *bench, n int, bytes int64) error {
	records := b.entries("data", n).records()
	defer debug.FreeOSMemory() // with the records
	var drops, slowdowns []float64
	samples, err := measure.Alternate(ctx, b.Rounds,
		measure.Subject{Name: "commit", Measure: func(ctx context.Context, _ int) (float64, error) {
			took, drop, slowdown, err := w.round(ctx, b, n)
			drops, slowdowns = append(drops, drop), append(slowdowns, slowdown)
			return took, err
		}},
		measure.Subject{Name: tableWriter, Measure: func(context.Context, int) (float64, error) { return b.writeTables(records) }},
		measure.Subject{Name: "sequential write", Measure: func(ctx context.Context, _ int) (float64, error) {
			return timed(func() error { return reference.WriteFile(ctx, b.dir, bytes) })
		}})
	if err != nil {
		return err
	}
	commit, table, sequential := samples[0], samples[1], samples[2]
	b.metricAt("commit", n, inEntries, result.Seconds, commit...)
	b.referenceAt(tableWriter, n, inEntries, result.Seconds, table...)
	b.referenceAt("sequential write and sync of the same bytes", n, inEntries, result.Seconds, sequential...)
	b.metricAt("entries committed", n, inEntries, result.PerSecond, each(commit, func(s float64) float64 { return float64(n) / s })...)
	b.metricAt("commit ÷ "+tableWriter, n, inEntries, result.Speed, result.Ratio(table, commit)...)
	b.metricAt("drop of the staged keys", n, inEntries, result.Seconds, drops...)
	b.metricAt("next commit after the drop ÷ one before it", n, inEntries, result.Slowdown, slowdowns...)
	return nil
}

// writeTables times the reference writer on records in memory.
func (b *bench) writeTables(records []reference.Record) (took float64, err error) {
	dir, err := b.subdirectory()
	if err != nil {
		return 0, err
	}
	took, err = timed(func() error {
		_, err := reference.WriteTables(dir, records)
		return err
	})
	if err != nil {
		return 0, err
	}
	return took, os.RemoveAll(dir)
}

// round times a commit, then the drop of what was staged for it, and how much slower a small commit is after the drop than before.
func (w *commitSize) round(ctx context.Context, b *bench, n int) (took, drop, slowdown float64, err error) {
	repo, err := b.repository(ctx)
	if err != nil {
		return 0, 0, 0, err
	}
	commit := func(es entries) (took float64) {
		if err == nil {
			err = b.stage(ctx, repo, mainBranch, es)
		}
		if err == nil {
			took, err = b.commitTimed(ctx, repo, mainBranch)
		}
		return took
	}
	// All rounds must come to the same trees.
	all, first, second := b.entries("data", n), b.entries("small/1", w.Small), b.entries("small/2", w.Small)
	took = commit(all)
	before := commit(first)
	if err == nil {
		drop, err = timed(func() error { return b.tidy(ctx) })
	}
	after := commit(second)
	if err == nil {
		err = b.verifySame(ctx, repo, fmt.Sprintf("%d entries", n), joined(all.all, first.all, second.all))
	}
	if err == nil {
		err = b.discard(ctx, repo)
	}
	return took, drop, after / before, err
}
