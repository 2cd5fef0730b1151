// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Shards returns the shards that work can begin on: those that the worker holds, is not about to give back, and nobody works on.
func (w *Worker) Shards() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var shards []int
	for _, shard := range slices.Sorted(maps.Keys(w.leases)) {
		if w.free(shard) {
			shards = append(shards, shard)
		}
	}
	return shards
}

func (w *Worker) free(shard int) bool {
	l := w.leases[shard]
	return l != nil && !l.leaving && w.left(l) > 0 && w.work[shard] == nil && !w.closing
}

// left returns how long a lease is still good.
func (w *Worker) left(l *lease) time.Duration {
	now := w.c.Now()
	// The monotonic clock may stand still while the machine sleeps, the other may be set back.
	return w.c.LeaseFor - max(now.Sub(l.renewed), now.Round(0).Sub(l.renewed.Round(0)))
}

// Hold begins work on a shard. The context that it returns ends with ctx, and when the shard is no longer this worker's: its
// cause is then one of the errors above. done must be called as soon as the work has ended, also where the context did; it may be
// called again. Where the shard is not among Shards, Hold returns false, and there is nothing to be done.
func (w *Worker) Hold(ctx context.Context, shard int) (_ context.Context, done func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.free(shard) {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	k := &work{cancel, make(chan struct{})}
	w.work[shard] = k
	return ctx, func() { w.done(shard, k) }, true
}

func (w *Worker) done(shard int, k *work) {
	k.cancel(nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.work[shard] != k {
		return
	}
	delete(w.work, shard)
	close(k.ended)
	if l := w.leases[shard]; l != nil && l.leaving {
		w.ask()
	}
}

// ask makes the loop do a round soon.
func (w *Worker) ask() { signal(w.wake) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is waiting to be taken
	}
}

// hold notes that a lease has been written.
func (w *Worker) hold(shard int, renewed time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.leases[shard]
	if l == nil {
		l = &lease{}
		w.leases[shard] = l
		w.gained = true
	}
	l.renewed = renewed
	w.limiter.share(len(w.leases))
}

// drop notes that a shard is this worker's no longer, and ends the work on it.
func (w *Worker) drop(shard int, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leases[shard] == nil {
		return
	}
	delete(w.leases, shard)
	w.end(shard, cause)
	w.limiter.share(len(w.leases))
}

func (w *Worker) end(shard int, cause error) {
	if k := w.work[shard]; k != nil {
		k.cancel(fmt.Errorf("shard %d: %w", shard, cause))
	}
}

// leave tells whether a shard is to be given back, or not after all, and reports whether it can be now.
func (w *Worker) leave(shard int, leaving bool) (now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.leases[shard]; l != nil {
		w.gained = w.gained || l.leaving && !leaving
		l.leaving = leaving
	}
	if leaving {
		w.end(shard, ErrGivenBack)
	}
	return leaving && w.work[shard] == nil
}

// lapse drops the shards whose leases were not renewed in time.
func (w *Worker) lapse() {
	w.mu.Lock()
	var over []int
	for shard, l := range w.leases {
		if w.left(l) <= 0 {
			over = append(over, shard)
		}
	}
	w.mu.Unlock()
	for _, shard := range over {
		w.drop(shard, fmt.Errorf("%w: it was not renewed in time", ErrLost))
	}
}
