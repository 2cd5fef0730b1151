// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// judging is a workload for tests of what judges workloads.
type judging struct {
	do func(ctx context.Context, b *bench) error
}

func (judging) Flags(*pflag.FlagSet) {}

func (j judging) run(ctx context.Context, b *bench) error { return j.do(ctx, b) }

// judgeOnMem runs one in a store of the suite.
func judgeOnMem(t *testing.T, do func(ctx context.Context, b *bench) error) {
	_, err := Run(t.Context(), config(t, "mem"), []Workload{{"judging", "Runs", judging{do}}})
	require.NoError(t, err)
}

func TestALifecyclePassThatRemovesTooFewOrTooManyIsWrong(t *testing.T) {
	judgeOnMem(t, func(ctx context.Context, b *bench) error {
		p, err := b.past(ctx, 2, 3, 1)
		require.NoError(t, err)
		_, err = p.pass(ctx, 1)
		require.ErrorIs(t, err, ErrWrong, "nothing is due yet")
		p.clock = p.clock.Add(2 * day)
		_, err = p.pass(ctx, 2)
		require.ErrorIs(t, err, ErrWrong, "three are due")

		moves, err := p.moves(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, moves)
		require.ErrorIs(t, p.end(ctx, b.objects(dueLater, 1).all, b.objects(kept, 1).all), ErrWrong)
		require.NoError(t, p.end(ctx, b.objects(kept, 1).all))
		return p.store.Close()
	})
}

func TestALifecycleBucketOfThePastIsAsOldAsItsClockSays(t *testing.T) {
	judgeOnMem(t, func(ctx context.Context, b *bench) error {
		for range 2 { // the clock of the second one begins where that of the first one did
			p, err := b.past(ctx, 1, 1, 0)
			require.NoError(t, err)
			require.NoError(t, p.put(ctx, b.objects(kept, 1).entry(0)))
			p.clock = p.clock.Add(day - 2*time.Second)
			one, err := p.pass(ctx, 0)
			require.NoError(t, err)
			require.Positive(t, one.calls)
			p.clock = p.clock.Add(time.Second)
			_, err = p.pass(ctx, 1)
			require.NoError(t, err)
			require.NoError(t, p.end(ctx, b.objects(kept, 1).all))
			require.NoError(t, p.store.Close())
		}
		return nil
	})
}
