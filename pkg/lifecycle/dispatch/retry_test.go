// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// scripted answers by a script, one step after the other.
type scripted []func() ([][]dispatch.Result, error)

func (s *scripted) Dispatch(context.Context, dispatch.Source, []dispatch.Batch) ([][]dispatch.Result, error) {
	step := (*s)[0]
	*s = (*s)[1:]
	return step()
}

var (
	errTransport = errors.New("connection reset")
	twoBatches   = []dispatch.Batch{{Shard: 1, Items: make([]dispatch.Item, 2)}, {Shard: 4, Items: make([]dispatch.Item, 1)}}
)

func fails() ([][]dispatch.Result, error) { return nil, errTransport }

func answers(results ...[]dispatch.Result) func() ([][]dispatch.Result, error) {
	return func() ([][]dispatch.Result, error) { return results, nil }
}

func of(outcomes ...lifecycle.Outcome) (results []dispatch.Result) {
	for _, o := range outcomes {
		results = append(results, dispatch.Result{Outcome: o})
	}
	return results
}

func TestAnErrorIsTriedAgainTwiceAtMost(t *testing.T) {
	good := answers(of(lifecycle.Done, lifecycle.RetryLater), of(lifecycle.SkippedObjectLock))
	for name, c := range map[string]struct {
		script scripted
		waits  int
		err    error
	}{
		"at once":         {scripted{good}, 0, nil},
		"the second time": {scripted{fails, good}, 1, nil},
		"the third time":  {scripted{fails, fails, good}, 2, nil},
		"never":           {scripted{fails, fails, fails}, 2, errTransport},
	} {
		t.Run(name, func(t *testing.T) {
			var waits []time.Duration
			r := dispatch.Retrier{Dispatcher: &c.script, Wait: func(_ context.Context, d time.Duration) error {
				waits = append(waits, d)
				return nil
			}}
			results, err := r.Dispatch(t.Context(), dispatch.Source{}, twoBatches)
			require.ErrorIs(t, err, c.err)
			require.Empty(t, c.script)
			require.Len(t, waits, c.waits)
			for i, d := range waits {
				require.GreaterOrEqual(t, d, 250*time.Millisecond<<i)
				require.LessOrEqual(t, d, 500*time.Millisecond<<i)
			}
			if c.err == nil {
				want, _ := good()
				require.Equal(t, want, results)
			}
		})
	}
}

func TestNothingIsTriedAgainOnceTheContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	script := scripted{func() ([][]dispatch.Result, error) {
		cancel()
		return nil, errTransport
	}}
	r := dispatch.Retrier{Dispatcher: &script}
	_, err := r.Dispatch(ctx, dispatch.Source{}, twoBatches)
	require.ErrorIs(t, err, errTransport)
	require.NotErrorIs(t, err, context.Canceled, "it is not what went wrong")
	require.Empty(t, script)
}

func TestWhatADispatcherAnswersIsChecked(t *testing.T) {
	for name, results := range map[string][][]dispatch.Result{
		"nothing":          nil,
		"too few batches":  {of(lifecycle.Done, lifecycle.Done)},
		"too many batches": {of(lifecycle.Done, lifecycle.Done), of(lifecycle.Done), {}},
		"too few results":  {of(lifecycle.Done), of(lifecycle.Done)},
		"too many results": {of(lifecycle.Done, lifecycle.Done), of(lifecycle.Done, lifecycle.Done)},
	} {
		t.Run(name, func(t *testing.T) {
			script := scripted{answers(results...)}
			r := dispatch.Retrier{Dispatcher: &script}
			got, err := r.Dispatch(t.Context(), dispatch.Source{}, twoBatches)
			require.ErrorIs(t, err, dispatch.ErrInvalidResults)
			require.Nil(t, got)
		})
	}
	for _, unknown := range []lifecycle.Outcome{-1, 0, lifecycle.Blocked + 1} {
		script := scripted{answers(of(lifecycle.Done, unknown), of(lifecycle.NoopResolved))}
		r := dispatch.Retrier{Dispatcher: &script}
		got, err := r.Dispatch(t.Context(), dispatch.Source{}, twoBatches)
		require.NoError(t, err)
		require.Equal(t, lifecycle.Blocked, got[0][1].Outcome)
		require.Contains(t, got[0][1].Reason, "unknown outcome")
		require.Equal(t, of(lifecycle.NoopResolved), got[1])
	}
}
