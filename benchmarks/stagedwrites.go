// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/result"
)

// stagedWrites measures what a branch adds to the writes of its engine.
type stagedWrites struct {
	Goroutines []int         `json:"goroutines"`
	Window     time.Duration `json:"window_ns"`
}

func newStagedWrites(s Setting) *stagedWrites {
	return &stagedWrites{Goroutines: of(s, []int{1, 16, 64}, []int{1, 16, 64}, []int{1, 3}), Window: of(s, 2*time.Second, 200*time.Millisecond, 10*time.Millisecond)}
}

func (w *stagedWrites) Flags(f *pflag.FlagSet) {
	f.Var((*numbers)(&w.Goroutines), "goroutines", "numbers of goroutines that write at the same time")
	f.DurationVar(&w.Window, "window", w.Window, "how long they write in each round")
}

const engineSet = "set of the engine"

func (w *stagedWrites) run(ctx context.Context, b *bench) error {
	repo, err := b.repository(ctx)
	if err != nil {
		return err
	}
	var staged, plain bursts
	for _, n := range w.Goroutines {
		var samples [][]float64
		err := b.counting(fmt.Sprintf("staged writes and sets of the engine by %d goroutines", n), func() (err error) {
			subjects := []measure.Subject{{Name: "staged writes", Measure: func(ctx context.Context, _ int) (float64, error) {
				return staged.run(ctx, n, w.Window, func(ctx context.Context, worker, n int) error {
					e := b.entries(writer(worker), 0).entry(n)
					return b.store.Set(ctx, repo, mainBranch, e.Key, *e.Value)
				})
			}}}
			if b.kv != nil {
				subjects = append(subjects, measure.Subject{Name: engineSet, Measure: func(ctx context.Context, _ int) (float64, error) {
					return plain.run(ctx, n, w.Window, func(ctx context.Context, worker, n int) error {
						e := b.entries(writer(worker), 0).entry(n)
						return b.kv.Set(ctx, []byte(rawPartition), e.Key, flat(*e.Value))
					})
				}})
			}
			samples, err = measure.Alternate(ctx, b.Rounds, subjects...)
			return err
		})
		if err != nil {
			return err
		}
		const of = "goroutines"
		b.metricAt("staged writes", n, of, result.PerSecond, samples[0]...)
		if b.kv != nil {
			b.referenceAt(engineSet, n, of, result.PerSecond, samples[1]...)
			b.metricAt("staged writes ÷ "+engineSet, n, of, result.Speed, result.Ratio(samples[0], samples[1])...)
		}
	}
	if b.kv != nil {
		if _, err := b.verifyRaw(ctx, rawPartition, b.written(plain.done)); err != nil {
			return err
		}
	}
	n, err := b.verifyBranch(ctx, repo, b.written(staged.done))
	b.checked("all %d entries that were staged are there with their values and nothing else, and so are the engine's if it is a key/value engine; committed, they have the root ID of a fresh tree", n)
	return err
}
