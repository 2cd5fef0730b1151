// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

// Start makes the first round, after which the worker holds what is free of its part, and goes on in a goroutine of its own until
// Close. The context is for the first round alone. Where that fails, nothing is started, and Start may be called again; a
// malformed record is no failure, and is in Err. A worker starts once.
func (w *Worker) Start(ctx context.Context) error {
	w.life.Lock()
	defer w.life.Unlock()
	if w.stopped != nil || w.isClosing() {
		return errors.New("lifecycle worker was started or closed before")
	}
	if err := w.round(ctx); err != nil && !errors.Is(err, cursor.ErrMalformed) {
		return err
	}
	loop, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop, w.stopped = stop, make(chan struct{})
	go w.run(loop)
	return nil
}

// run makes rounds until ctx ends. What they fail of is in Err; the next one tries again.
func (w *Worker) run(ctx context.Context) {
	defer close(w.stopped)
	timer := time.NewTimer(w.pause())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.wake:
		}
		// A store that does not answer must not keep leases from lapsing.
		w.lapse()
		bounded, cancel := context.WithTimeout(ctx, w.pause())
		_ = w.round(bounded) // it is in Err
		cancel()
		timer.Reset(w.pause())
	}
}

// pause returns how long nothing needs to be done: until the next round, or until the first lease is over.
func (w *Worker) pause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	pause := w.c.RenewEvery
	for _, l := range w.leases {
		pause = min(pause, w.left(l))
	}
	return max(pause, time.Millisecond)
}

// Close ends all work, waits for it, and releases what the worker holds. Where ctx ends before the work does, or the store fails,
// what is left is over when its term is. Closing twice is harmless.
func (w *Worker) Close(ctx context.Context) error {
	w.life.Lock()
	defer w.life.Unlock()
	err := w.endAll(ctx)
	if w.stopped != nil {
		w.stop()
		<-w.stopped
	}
	w.mu.Lock()
	w.err = nil // of a round that was cut off
	w.mu.Unlock()
	if w.epoch == 0 {
		return err // it has never written anything
	}
	return errors.Join(err, w.releaseAll(ctx))
}

func (w *Worker) isClosing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closing
}

// endAll ends all work and waits for it. Leases are still renewed meanwhile.
func (w *Worker) endAll(ctx context.Context) error {
	w.mu.Lock()
	w.closing = true
	var ended []chan struct{}
	for shard, k := range w.work {
		w.end(shard, ErrClosed)
		ended = append(ended, k.ended)
	}
	w.mu.Unlock()
	for _, e := range ended {
		select {
		case <-e:
		case <-ctx.Done():
			return fmt.Errorf("wait for the work of a lifecycle worker: %w", ctx.Err())
		}
	}
	return nil
}

// releaseAll leaves alone what is still worked on.
func (w *Worker) releaseAll(ctx context.Context) error {
	state, err := ReadState(ctx, w.c.Store)
	if err != nil && !errors.Is(err, cursor.ErrMalformed) {
		return fmt.Errorf("release shards: %w", err)
	}
	var errs []error // a malformed record is nothing of this worker's that it could release
	for _, l := range state.Leases {
		if l.Worker == w.id && w.leave(l.Shard, true) {
			errs = append(errs, w.release(ctx, l))
		}
	}
	err = w.c.Store.DeleteIf(ctx, []byte(cursor.Partition), []byte(workersPrefix+w.id), kv.Present)
	if err != nil && !errors.Is(err, kv.ErrPredicateFailed) {
		errs = append(errs, fmt.Errorf("unregister lifecycle worker: %w", err))
	}
	return errors.Join(errs...)
}
