// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/benchmarks/measure"
)

// operation is what the workers of a load do again and again: the n-th time, counted from zero, of a worker.
type operation func(ctx context.Context, worker, n int) error

// bursts is a load that comes in bursts, with pauses in which something else is measured. Its workers go on counting where they were.
type bursts struct{ done []int } // by worker: how many operations have succeeded

// run lets workers work in a closed loop, each beginning an operation when its last one has ended, for a while, and returns how
// many operations there were in a second, all workers together.
func (l *bursts) run(ctx context.Context, workers int, window time.Duration, do operation) (perSecond float64, err error) {
	for len(l.done) < workers {
		l.done = append(l.done, 0)
	}
	before := sum(l.done)
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		g.Go(func() error {
			for first := true; first || time.Since(began) < window; first = false {
				if err := do(ctx, w, l.done[w]); err != nil {
					return fmt.Errorf("worker %d, operation %d: %w", w, l.done[w], err)
				}
				l.done[w]++
			}
			return nil
		})
	}
	err = g.Wait()
	return float64(sum(l.done)-before) / time.Since(began).Seconds(), err
}

func sum(all []int) (total int) {
	for _, n := range all {
		total += n
	}
	return total
}

// load is workers that work until they are stopped, and whose latencies are recorded.
type load struct {
	stopping chan struct{}
	group    *errgroup.Group
	done     []int
}

// startLoad starts workers. With a rate, which is that of all together in a second, operations are due at fixed times, and
// latencies count from then, even where the workers cannot keep up: what an operation had to wait for the one before belongs to
// what its user sees. Without one each worker works in a closed loop.
func startLoad(ctx context.Context, workers int, rate float64, rec *measure.Recorder, name string, do operation) *load {
	l := &load{stopping: make(chan struct{}), done: make([]int, workers)}
	l.group, ctx = errgroup.WithContext(ctx)
	began := time.Now()
	for w := range workers {
		l.group.Go(func() error {
			for {
				from := time.Now()
				if rate > 0 {
					from = began.Add(time.Duration(float64(l.done[w]*workers+w) / rate * float64(time.Second)))
				}
				if !l.wait(ctx, time.Until(from)) {
					return ctx.Err()
				}
				if err := do(ctx, w, l.done[w]); err != nil {
					return fmt.Errorf("%s: worker %d, operation %d: %w", name, w, l.done[w], err)
				}
				l.done[w]++
				if err := rec.Add(name, from); err != nil {
					return err
				}
			}
		})
	}
	return l
}

// wait waits for an operation to be due, and reports false where there is to be none any more.
func (l *load) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 { // without a timer in the way of a closed loop
		select {
		case <-l.stopping:
			return false
		default:
			return ctx.Err() == nil
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.stopping:
		return false
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// stop lets the operations under way end, and returns how many have succeeded, by worker. The first error of a worker has ended all others too.
func (l *load) stop() ([]int, error) {
	close(l.stopping)
	err := l.group.Wait()
	return l.done, err
}

// pause waits while a load goes on. It returns early, with an error, where ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writer returns the prefix of the keys that a worker writes. Those of all workers come after those of other entries, and in the order of workers.
func writer(worker int) string { return fmt.Sprintf("writers/%04d", worker) }

// written yields what workers wrote, each the entries of its own prefix from the first on.
func (b *bench) written(done []int) sequence {
	var all []sequence
	for w, n := range done {
		all = append(all, b.entries(writer(w), n).all)
	}
	return joined(all...)
}
