// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/reference"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/pkg/kv"
)

// kvWrites measures durable writes to the engine alone: plain ones, and fenced ones, as staging makes them.
type kvWrites struct {
	Goroutines []int         `json:"goroutines"`
	Window     time.Duration `json:"window_ns"`
}

func newKVWrites(s Setting) *kvWrites {
	return &kvWrites{Goroutines: of(s, []int{1, 8, 64}, []int{1, 8, 64}, []int{1, 3}), Window: of(s, 2*time.Second, 150*time.Millisecond, 10*time.Millisecond)}
}

func (w *kvWrites) Flags(f *pflag.FlagSet) {
	f.Var((*numbers)(&w.Goroutines), "goroutines", "numbers of goroutines that write at the same time")
	f.DurationVar(&w.Window, "window", w.Window, "how long they write in each round")
}

// rival is the raw engine, or a way to use it.
type rival struct {
	name string
	set  func(ctx context.Context, key, value []byte) error
}

func (w *kvWrites) run(ctx context.Context, b *bench) (err error) {
	if b.kv == nil {
		return fmt.Errorf("%w: the tables of older deployments are no key/value engine", ErrConfig)
	}
	syncs, err := b.syncRate(ctx)
	if err != nil {
		return err
	}
	b.reference("syncs of the disk", result.PerSecond, syncs...)
	rivals, closeRivals, err := b.rivals(ctx, slices.Max(w.Goroutines))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeRivals()) }()
	fence := kv.Fence{Partition: []byte(fencePartition), Key: []byte("fence"), Predicate: kv.Equals([]byte("held"))}
	if err := b.kv.SetIf(ctx, fence.Partition, fence.Key, []byte("held"), kv.Absent); err != nil {
		return err
	}
	var plain, fenced bursts
	for _, n := range w.Goroutines {
		subjects := []measure.Subject{
			w.subject("set", n, &plain, b, func(ctx context.Context, key, value []byte) error {
				return b.kv.Set(ctx, []byte(rawPartition), key, value)
			}),
			w.subject("fenced", n, &fenced, b, func(ctx context.Context, key, value []byte) error {
				return b.kv.Apply(ctx, []byte(fencedPartition), []kv.Write{{Key: key, Value: value}}, &fence)
			}),
		}
		for _, r := range rivals {
			subjects = append(subjects, w.subject(r.name, n, &bursts{}, b, r.set))
		}
		samples, err := measure.Alternate(ctx, b.Rounds, subjects...)
		if err != nil {
			return err
		}
		w.report(b, n, rivals, samples)
	}
	return w.check(ctx, b, plain.done, fenced.done)
}

// subject writes records that nobody has written before.
func (w *kvWrites) subject(name string, goroutines int, l *bursts, b *bench, set func(ctx context.Context, key, value []byte) error) measure.Subject {
	return measure.Subject{Name: fmt.Sprintf("%s by %d", name, goroutines), Measure: func(ctx context.Context, _ int) (float64, error) {
		return l.run(ctx, goroutines, w.Window, func(ctx context.Context, worker, n int) error {
			e := b.entries(writer(worker), 0).entry(n)
			return set(ctx, e.Key, flat(*e.Value))
		})
	}}
}

func (w *kvWrites) report(b *bench, n int, rivals []rival, samples [][]float64) {
	const of = "goroutines"
	set, fenced, others := samples[0], samples[1], samples[2:]
	b.metricAt("set", n, of, result.PerSecond, set...)
	b.metricAt("fenced", n, of, result.PerSecond, fenced...)
	for i, r := range rivals {
		b.referenceAt(r.name, n, of, result.PerSecond, others[i]...)
	}
	b.metricAt("fenced ÷ set", n, of, result.Speed, result.Ratio(fenced, set)...)
	for i, r := range rivals {
		b.metricAt("set ÷ "+r.name, n, of, result.Speed, result.Ratio(set, others[i])...)
	}
	if b.engine == "bolt" {
		b.referenceAt(groupedLoop+" ÷ "+boltBatch, n, of, result.Speed, result.Ratio(others[0], others[1])...)
	}
}

func (w *kvWrites) check(ctx context.Context, b *bench, plain, fenced []int) error {
	n, err := b.verifyRaw(ctx, rawPartition, b.written(plain))
	if err != nil {
		return err
	}
	m, err := b.verifyRaw(ctx, fencedPartition, b.written(fenced))
	if err != nil {
		return err
	}
	b.checked("%d plain and %d fenced writes are there with their values, and nothing else", n, m)
	return nil
}

// Names of references.
const (
	groupedLoop  = "bare grouped loop"
	boltBatch    = "db.Batch"
	rawPebble    = "raw pebble"
	oneStatement = "one statement per write"
)

// rivals opens what the engine of the run is to be compared with. An engine in memory has none.
func (b *bench) rivals(ctx context.Context, connections int) ([]rival, func() error, error) {
	dir, err := b.subdirectory()
	if err != nil {
		return nil, nil, err
	}
	switch {
	case b.engine == "bolt":
		grouped, err := reference.OpenBolt(filepath.Join(dir, "grouped"))
		if err != nil {
			return nil, nil, err
		}
		batched, err := reference.OpenBolt(filepath.Join(dir, "batched"))
		if err != nil {
			return nil, nil, errors.Join(err, grouped.Close())
		}
		return []rival{{groupedLoop, grouped.Set}, {boltBatch, batched.Batch}}, func() error { return errors.Join(grouped.Close(), batched.Close()) }, nil
	case b.engine == "pebble":
		p, err := reference.OpenPebble(dir)
		if err != nil {
			return nil, nil, err
		}
		return []rival{{rawPebble, p.Set}}, p.Close, nil
	case b.isDatabase():
		s, err := reference.OpenSQL(ctx, b.storeURL, connections)
		if err != nil {
			return nil, nil, err
		}
		return []rival{{oneStatement, s.Set}}, s.Close, nil
	}
	return nil, func() error { return nil }, nil
}
