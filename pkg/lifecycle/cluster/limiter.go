// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// ErrNoShare is returned by Wait where a worker holds no shard, and so has no part of the rate.
var ErrNoShare = errors.New("no shard is held")

// Limiter bounds how fast a process removes things: its part of a rate that holds for all processes together. It is safe for concurrent use.
type Limiter struct {
	perSecond float64
	burst     int
	bucket    *rate.Limiter // nil: there is no bound

	mu     sync.Mutex
	shards int // of all shards, those that this process has
	waited time.Duration
}

// NewLimiter returns a Limiter for a process that has all shards, and so the whole rate. A rate of 0 is no bound; a burst of 0 is
// twice the rate, and at least 1. Anything that makes no sense is [graveler.ErrInvalidValue].
func NewLimiter(perSecond float64, burst int) (*Limiter, error) {
	switch {
	case math.IsNaN(perSecond) || math.IsInf(perSecond, 0) || perSecond < 0:
		return nil, fmt.Errorf("%w: %v deletes per second", graveler.ErrInvalidValue, perSecond)
	case burst < 0:
		return nil, fmt.Errorf("%w: a burst of %d deletes", graveler.ErrInvalidValue, burst)
	case burst > 0 && perSecond == 0:
		return nil, fmt.Errorf("%w: a burst of %d deletes, and no rate", graveler.ErrInvalidValue, burst)
	}
	l := &Limiter{perSecond: perSecond, burst: burst, shards: lifecycle.Shards}
	if perSecond == 0 {
		return l, nil
	}
	if burst == 0 {
		l.burst = int(min(max(1, math.Ceil(2*perSecond)), math.MaxInt32))
	}
	l.bucket = rate.NewLimiter(rate.Limit(perSecond), l.burst)
	return l, nil
}

// Wait waits until n more may be removed, and returns how long that took. It takes them in slices of at most the burst, so that a
// change of this process's part counts at once. It returns the error of a context that ends meanwhile, and ErrNoShare where there
// is a rate and this process has no part of it.
func (l *Limiter) Wait(ctx context.Context, n int) (time.Duration, error) {
	if l.bucket == nil {
		return 0, ctx.Err()
	}
	began := time.Now()
	err := l.wait(ctx, n)
	waited := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waited += waited
	return waited, err
}

func (l *Limiter) wait(ctx context.Context, n int) error {
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		slice, reserved, err := l.reserve(n)
		if err != nil {
			return err
		}
		if err := pause(ctx, reserved.Delay()); err != nil {
			reserved.Cancel()
			return err
		}
		n -= slice
	}
	return nil
}

// reserve takes at most a burst out of the bucket.
func (l *Limiter) reserve(n int) (slice int, reserved *rate.Reservation, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shards == 0 {
		return 0, nil, fmt.Errorf("wait for the deletion rate: %w", ErrNoShare)
	}
	slice = min(n, l.bucket.Burst())
	return slice, l.bucket.ReserveN(time.Now(), slice), nil
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Rate returns this process's present part of the rate and of the burst; 0, 0 where there is no bound.
func (l *Limiter) Rate() (perSecond float64, burst int) {
	if l.bucket == nil {
		return 0, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shards == 0 {
		return 0, 0
	}
	return float64(l.bucket.Limit()), l.bucket.Burst()
}

// Waited returns how long all Waits have taken together.
func (l *Limiter) Waited() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waited
}

// share sets this process's part to that of so many shards. Shards that nobody holds are a part that nobody uses, so that the
// whole is not exceeded while shards change hands; only a burst smaller than the number of shards may be, since a part of it is
// at least 1.
func (l *Limiter) share(shards int) {
	if l.bucket == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shards = shards
	if shards > 0 {
		part := float64(shards) / lifecycle.Shards
		l.bucket.SetLimit(rate.Limit(l.perSecond * part))
		l.bucket.SetBurst(max(1, int(float64(l.burst)*part)))
	}
}
