// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// attempts is how often batches are dispatched until an error is taken for final. Between two attempts passes a random part, half
// of it at least, of a time that begins with firstWait and doubles, up to longestWait.
const (
	attempts    = 3
	firstWait   = 500 * time.Millisecond
	longestWait = 5 * time.Second
)

// ErrInvalidResults: a dispatcher did not return a result for each item. What it did is not known.
var ErrInvalidResults = errors.New("invalid results of a dispatcher")

// Retrier hands batches to a dispatcher, up to three times where it returns an error, but not once ctx has ended. The last error
// is the dispatcher's own: that there was no time for more would hide what was wrong. An item whose outcome it does not know is
// Blocked, and says so. Results that cannot be told apart, because there are too few or too many, are ErrInvalidResults, and
// nothing is tried again.
//
// It is safe for concurrent use where its dispatcher is.
type Retrier struct {
	Dispatcher Dispatcher
	// Wait waits, until ctx ends at most; nil: by the clock of the machine.
	Wait func(ctx context.Context, d time.Duration) error
}

// Dispatch implements [Dispatcher].
func (r *Retrier) Dispatch(ctx context.Context, source Source, batches []Batch) ([][]Result, error) {
	wait := r.Wait
	if wait == nil {
		wait = sleep
	}
	for n := 1; ; n++ {
		results, err := r.Dispatcher.Dispatch(ctx, source, batches)
		if err == nil {
			if err = check(batches, results); err != nil {
				return nil, fmt.Errorf("dispatch to %s/%s: %w", source.Repository, source.Branch, err)
			}
			return results, nil
		}
		if n < attempts && wait(ctx, pause(n, rand.Float64())) == nil {
			continue
		}
		return nil, fmt.Errorf("dispatch to %s/%s, attempt %d: %w", source.Repository, source.Branch, n, err)
	}
}

// pause returns how long to wait after the n-th attempt; random is in [0, 1).
func pause(n int, random float64) time.Duration {
	longest := min(firstWait<<(n-1), longestWait)
	return longest/2 + time.Duration(random*float64(longest/2))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// check holds results to the contract of [Dispatcher].
func check(batches []Batch, results [][]Result) error {
	if len(results) != len(batches) {
		return fmt.Errorf("%w: of %d batches, there were %d", ErrInvalidResults, len(results), len(batches))
	}
	for i, b := range batches {
		if len(results[i]) != len(b.Items) {
			return fmt.Errorf("%w: %d for the %d items of shard %d", ErrInvalidResults, len(results[i]), len(b.Items), b.Shard)
		}
		for n := range results[i] {
			if r := &results[i][n]; r.Outcome < lifecycle.Done || r.Outcome > lifecycle.Blocked {
				*r = Result{Outcome: lifecycle.Blocked, Reason: fmt.Sprintf("the dispatcher returned the unknown outcome %d", int(r.Outcome))}
			}
		}
	}
	return nil
}
