// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/reference"
	"github.com/moraine-store/moraine/benchmarks/result"
)

const syncWindow = 50 * time.Millisecond

// begin begins a run of a variant of the workload. The run before, if there is one, ends.
func (b *bench) begin(variant string) {
	b.endRun()
	run := b.template
	run.Variant, run.Began = variant, time.Now().UTC()
	b.run, b.counted = &run, b.counts()
	b.memory = measure.SampleMemory()
}

func (b *bench) endRun() {
	if b.run == nil {
		return
	}
	b.run.Took = time.Since(b.run.Began).Seconds()
	b.run.Memory = b.memory.Stop()
	b.count("whole run, checks included", b.counted)
	b.runs = append(b.runs, b.run)
	b.run = nil
}

// end returns all runs.
func (b *bench) end() []*result.Run {
	b.endRun()
	return b.runs
}

// metric adds a figure of the store to the run.
func (b *bench) metric(name string, unit result.Unit, samples ...float64) {
	b.add(result.Metric{Name: name, Unit: unit, Samples: samples})
}

// metricAt is metric at a point of something, such as a number of goroutines.
func (b *bench) metricAt(name string, at int, of string, unit result.Unit, samples ...float64) {
	b.add(result.Metric{Name: name, At: float64(at), Of: of, Unit: unit, Samples: samples})
}

// reference adds a figure to compare with.
func (b *bench) reference(name string, unit result.Unit, samples ...float64) {
	b.add(result.Metric{Name: name, Unit: unit, Reference: true, Samples: samples})
}

// referenceAt is reference at a point of something.
func (b *bench) referenceAt(name string, at int, of string, unit result.Unit, samples ...float64) {
	b.add(result.Metric{Name: name, At: float64(at), Of: of, Unit: unit, Reference: true, Samples: samples})
}

// add leaves out samples that are no numbers: ratios to nothing, latencies of no operation. Without any that is one there is no metric.
func (b *bench) add(m result.Metric) {
	m.Samples = slices.DeleteFunc(slices.Clone(m.Samples), func(s float64) bool { return math.IsNaN(s) || math.IsInf(s, 0) })
	if len(m.Samples) > 0 {
		b.run.Metrics = append(b.run.Metrics, m.Complete())
	}
}

// checked says what was found to be as it must be.
func (b *bench) checked(format string, args ...any) {
	b.run.Checked = append(b.run.Checked, fmt.Sprintf(format, args...))
}

// counting adds to the run what fn asks of the engine and of the block storage. Where it is repeated, the last time counts.
func (b *bench) counting(part string, fn func() error) error {
	before := b.counts()
	if err := fn(); err != nil {
		return err
	}
	b.count(part, before)
	return nil
}

// count adds what was asked for since the counts were as they were before.
func (b *bench) count(part string, before map[string]int64) {
	calls := b.counts()
	for name, n := range before {
		calls[name] -= n
	}
	maps.DeleteFunc(calls, func(_ string, n int64) bool { return n == 0 })
	b.run.Counts = slices.DeleteFunc(b.run.Counts, func(c result.Counts) bool { return c.Part == part })
	if len(calls) > 0 {
		b.run.Counts = append(b.run.Counts, result.Counts{Part: part, Calls: calls})
	}
}

func (b *bench) counts() map[string]int64 {
	counts := b.blocks.Counts()
	if b.kv != nil {
		maps.Copy(counts, b.kv.Counts())
	}
	return counts
}

// calls returns how often the engine and the block storage were asked for something so far.
func (b *bench) calls() int64 { return b.kv.Calls() + b.blocks.Calls() }

// syncs returns how many syncs were made so far: those of files and directories that a local block storage makes, and those of
// the engine. bbolt makes two per transaction, and says how many it made of these. Of the other engines each call that writes
// counts as one, although concurrent ones share them.
func (b *bench) syncs() (int64, error) {
	path, isBolt := strings.CutPrefix(b.storeURL, "bolt:")
	if b.kv == nil {
		return b.blocks.Syncs() + b.tables.Writes(), nil
	}
	if !isBolt {
		return b.blocks.Syncs() + b.kv.Writes(), nil
	}
	n, err := measure.BoltTransactions(strings.TrimPrefix(path, "//"))
	return b.blocks.Syncs() + 2*n, err
}

// syncRate measures what the disk does.
func (b *bench) syncRate(ctx context.Context) ([]float64, error) {
	return one(measure.Alternate(ctx, b.Rounds, measure.Subject{Name: "sync rate", Measure: func(ctx context.Context, _ int) (float64, error) {
		return reference.SyncRate(ctx, b.dir, syncWindow)
	}}))
}

// one is what Alternate returns of a single subject.
func one(samples [][]float64, err error) ([]float64, error) {
	if err != nil {
		return nil, err
	}
	return samples[0], nil
}
