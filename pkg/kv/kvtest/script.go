// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Script stands between a caller and a store. It is told of each call, may make it, and returns what
// the caller shall be told. An error instead of a call is a fault before it; an error in spite of one
// is a fault after it; whatever the script waits for delays the call. A script that makes no call
// and returns no error tells a lie that no store tells. It may be called concurrently, and it belongs
// to one [FaultyStore], since it may remember what has gone through.
type Script func(ctx context.Context, op Op, call func(context.Context) error) error

// Chain makes one script of several: each gets what the ones before it let through.
func Chain(scripts ...Script) Script {
	if len(scripts) == 0 {
		return func(ctx context.Context, _ Op, call func(context.Context) error) error { return call(ctx) }
	}
	outer, inner := scripts[0], Chain(scripts[1:]...)
	return func(ctx context.Context, op Op, call func(context.Context) error) error {
		return outer(ctx, op, func(ctx context.Context) error { return inner(ctx, op, call) })
	}
}

// Pick chooses calls.
type Pick func(Op) bool

// Nth picks the n-th call of a method, counted from 1.
func Nth(method string, n int) Pick {
	return func(op Op) bool { return op.Method == method && op.N == n }
}

// NthWrite picks the n-th of all calls that write, counted from 1. Failing each in turn, until a run
// makes fewer, visits every state that a crash can leave behind.
func NthWrite(n int) Pick {
	return func(op Op) bool { return op.Writes == n }
}

func injected(op Op, when string) error {
	return fmt.Errorf("%w %s %s %d", ErrInjected, when, op.Method, op.N)
}

// FailBefore fails calls without making them.
func FailBefore(pick Pick) Script {
	return func(ctx context.Context, op Op, call func(context.Context) error) error {
		if pick(op) {
			return injected(op, "before")
		}
		return call(ctx)
	}
}

// FailAfter makes calls and says that they have failed, whatever came of them.
func FailAfter(pick Pick) Script {
	return func(ctx context.Context, op Op, call func(context.Context) error) error {
		err := call(ctx)
		if pick(op) {
			return injected(op, "after")
		}
		return err
	}
}

// CrashBefore fails a call and every later one, Close included, without making them. Calls that are
// under way are made, and told that they have failed.
func CrashBefore(pick Pick) Script {
	var crashed atomic.Bool
	return func(ctx context.Context, op Op, call func(context.Context) error) error {
		if pick(op) {
			crashed.Store(true)
		}
		if crashed.Load() {
			return injected(op, "crash before")
		}
		err := call(ctx)
		if crashed.Load() {
			return injected(op, "crash during")
		}
		return err
	}
}

// CrashAfter is CrashBefore, except that the call at which it happens is still made.
func CrashAfter(pick Pick) Script {
	var crashed atomic.Bool
	return func(ctx context.Context, op Op, call func(context.Context) error) error {
		if crashed.Load() {
			return injected(op, "crash before")
		}
		err := call(ctx)
		if pick(op) {
			crashed.Store(true)
		}
		if crashed.Load() {
			return injected(op, "crash after")
		}
		return err
	}
}

// Random fails that share of all calls, steps of scans included but Close excluded, half of them
// before and half of them after the call. What happens to the n-th call of a method depends on the
// seed alone.
func Random(seed uint64, share float64) Script {
	return func(ctx context.Context, op Op, call func(context.Context) error) error {
		h := fnv.New64a()
		fmt.Fprint(h, op.Method, op.N)
		r := rand.New(rand.NewPCG(seed, h.Sum64()))
		if op.Method == "Close" || r.Float64() >= share {
			return call(ctx)
		}
		if r.IntN(2) == 0 {
			return injected(op, "before")
		}
		_ = call(ctx) // the point is to lose the answer
		return injected(op, "after")
	}
}

// Gate holds calls until it is opened, or until their context ends, which is then their error.
type Gate struct {
	arrive, release sync.Once
	arrived, opened chan struct{}
}

// NewGate returns a closed gate.
func NewGate() *Gate {
	return &Gate{arrived: make(chan struct{}), opened: make(chan struct{})}
}

// Arrived is closed once a call waits at the gate.
func (g *Gate) Arrived() <-chan struct{} { return g.arrived }

// Open lets through those who wait and whoever comes later.
func (g *Gate) Open() { g.release.Do(func() { close(g.opened) }) }

func (g *Gate) pass(ctx context.Context) error {
	g.arrive.Do(func() { close(g.arrived) })
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Before holds calls before they are made.
func (g *Gate) Before(pick Pick) Script {
	return func(ctx context.Context, op Op, call func(context.Context) error) error {
		if pick(op) {
			if err := g.pass(ctx); err != nil {
				return err
			}
		}
		return call(ctx)
	}
}

// After holds calls after they were made and before the caller learns what came of them.
func (g *Gate) After(pick Pick) Script {
	return func(ctx context.Context, op Op, call func(context.Context) error) error {
		err := call(ctx)
		if pick(op) {
			if passErr := g.pass(ctx); passErr != nil {
				return passErr
			}
		}
		return err
	}
}

// Limbo keeps writes that their callers were told have failed, and that happen all the same, later.
type Limbo struct {
	mu    sync.Mutex
	calls []func() error
}

// Keep fails writes and keeps them; calls that read it lets through.
func (l *Limbo) Keep(pick Pick) Script {
	return func(ctx context.Context, op Op, call func(context.Context) error) error {
		if op.Writes == 0 || !pick(op) {
			return call(ctx)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.calls = append(l.calls, func() error { return call(context.WithoutCancel(ctx)) })
		return injected(op, "in place of")
	}
}

// Release makes the calls that were kept, in their order, and returns what came of each.
func (l *Limbo) Release() []error {
	l.mu.Lock()
	calls := l.calls
	l.calls = nil
	l.mu.Unlock()
	var errs []error
	for _, call := range calls {
		errs = append(errs, call())
	}
	return errs
}
