// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// watermark is what this process knows of the newest time that any process has used.
type watermark struct {
	mu      sync.Mutex
	looked  time.Time // when the store was last asked; monotonic
	highest int64     // what it said then, or what this process has used since
}

// moveTime returns the time of a move that follows one at time last: now, or just after last. A clock that is more than maxClockSkew behind what other
// processes have used would make fresh data look old, one that far behind the branch's last move would stop its ageing: both are refused with ErrClockSkew.
func (g *Graveler) moveTime(ctx context.Context, last int64) (int64, error) {
	now := g.now().UnixNano()
	highest, err := g.highestTime(ctx, now)
	if err != nil {
		return 0, err
	}
	if ahead := max(highest, last); time.Duration(ahead-now) > maxClockSkew {
		return 0, fmt.Errorf("%w: this machine's clock says %s, but the store has seen %s; correct the clock", ErrClockSkew,
			time.Unix(0, now).UTC().Format(time.RFC3339), time.Unix(0, ahead).UTC().Format(time.RFC3339))
	}
	g.clock.use(now)
	return max(now, last+1), nil
}

// highestTime returns the store's watermark as of at most watermarkPeriod ago, having advanced it when now is well ahead.
func (g *Graveler) highestTime(ctx context.Context, now int64) (int64, error) {
	w := &g.clock
	if highest, recent := w.recent(); recent {
		return highest, nil
	}
	highest, err := g.refs.Watermark(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the clock watermark: %w", err)
	}
	if now-highest > int64(watermarkPeriod) {
		if err := g.refs.AdvanceWatermark(ctx, now); err != nil {
			return 0, fmt.Errorf("advance the clock watermark: %w", err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked, w.highest = time.Now(), max(w.highest, highest)
	return w.highest, nil
}

// use notes that this process has used a time: its own clock must not fall far behind that either.
func (w *watermark) use(t int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.highest = max(w.highest, t)
}

func (w *watermark) recent() (highest int64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.highest, !w.looked.IsZero() && time.Since(w.looked) < watermarkPeriod
}
