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
	highest int64     // what it said then, or what this process has used since then
}

// moveTime returns the time of a move that follows one at time last: now, or just after last. A clock that is more than
// maxClockSkew behind what other processes have used would make fresh data look old, one that far behind the branch's last move
// would stop its ageing: both are refused with ErrClockSkew.
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
		highest = now
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked, w.highest = time.Now(), highest // what the store says counts, also if it was reset to less
	return highest, nil
}

// use notes that this process has used a time: its own clock must not fall far behind that either.
func (w *watermark) use(t int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.highest = max(w.highest, t)
}

// elapsed returns how much time has passed since began, by whichever of this machine's clocks says more: the monotonic one may
// stand still while the machine sleeps, the other may be set back.
func (g *Graveler) elapsed(began time.Time) time.Duration {
	now := g.now()
	return max(now.Sub(began), now.Round(0).Sub(began.Round(0)))
}

// ClockWatermark returns the newest time that any process has used for a move, give or take a minute; the zero time where none has.
func (g *Graveler) ClockWatermark(ctx context.Context) (time.Time, error) {
	highest, err := g.refs.Watermark(ctx)
	if err != nil || highest == 0 {
		return time.Time{}, err
	}
	return time.Unix(0, highest).UTC(), nil
}

// ResetClock makes the present time of this machine the newest that any process has used. It is for a store in which a machine
// whose clock was far ahead has made moves, so that all others are refused with ErrClockSkew. A branch whose last move lies in
// the future is refused all the same, until it is deleted and made again. Other processes notice within a minute.
func (g *Graveler) ResetClock(ctx context.Context) error {
	now := g.now().UnixNano()
	if err := g.refs.ResetWatermark(ctx, now); err != nil {
		return err
	}
	g.clock.mu.Lock()
	defer g.clock.mu.Unlock()
	g.clock.looked, g.clock.highest = time.Time{}, now
	return nil
}

func (w *watermark) recent() (highest int64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.highest, !w.looked.IsZero() && time.Since(w.looked) < watermarkPeriod
}
