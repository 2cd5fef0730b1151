// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// pass is the engine under test. It walks only where the log is too short for some rules, since a walk would find what the lanes overlook.
func pass(ctx context.Context, w *world, d dispatch.Dispatcher) error {
	at := w.clock
	c := dailyrun.Config{
		Store: w.engine, Records: w.records, Dispatcher: d, Day: w.Day, DayBoundary: w.Boundary, RetentionWindow: w.Window, Shards: w.settings.Shards, EventBudget: w.settings.Budget, WalkerInterval: w.settings.WalkEvery, Now: func() time.Time { return at },
	}
	if w.Window > 0 {
		c.Walker = walker.New(w.engine)
	}
	if w.limiter != nil {
		c.Limiter = w.limiter
	}
	_, err := dailyrun.Run(ctx, dailyrun.Chunked(c, w.settings.Chunk))
	return err
}

func TestEachPassRemovesWhatIsDueAndNothingElse(t *testing.T) {
	seed, h, err := tryHistories(t.Context(), histories(), pass)
	require.NoError(t, err, "seed %d, %s", seed, h)
}
