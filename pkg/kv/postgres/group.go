// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/moraine-store/moraine/pkg/kv"
)

// A group is bounded, so that one statement does not keep the others waiting for long, and does not read too much at once.
const (
	groupWrites = 2000
	groupReads  = 100
	groupBytes  = 4 << 20
)

// laneTrips is how many groups of one lane may be under way: one is executed while the commit of the other reaches the disk.
// With more of them, groups are smaller and the server does more for each write (decision 0014). A lane that is stuck behind a
// lock keeps only so many connections from the rest.
const laneTrips = 2

// lane names what may travel in one statement.
type lane struct {
	reads     bool
	deletes   bool
	partition string // of deletes; sets, and reads, of all partitions go together
	fence     laneFence
}

// most is how many rows may be in a group.
func (l lane) most() int {
	if l.reads {
		return groupReads
	}
	return groupWrites
}

// laneFence is a comparable kv.Fence; the zero value is none.
type laneFence struct {
	partition, key string
	predicate      kv.Predicate
}

func (f laneFence) fence() *kv.Fence {
	if f == (laneFence{}) {
		return nil
	}
	return &kv.Fence{Partition: []byte(f.partition), Key: []byte(f.key), Predicate: f.predicate}
}

// row is one unconditional write, or one read, whose value is the answer (nil: the key is absent). It outlives the call.
type row struct{ partition, key, value []byte }

// request is what one call asks for: rows that land together, or a row to read.
type request struct {
	rows []row
	size int
	trip *trip         // nil while it waits
	done chan struct{} // closed when err is the outcome
	err  error
}

// trip is a group that is under way. Its context ends when nobody waits for it any more.
type trip struct {
	ctx      context.Context
	cancel   context.CancelFunc
	requests []*request
	waiters  int
}

// groups collects the requests of each lane while earlier ones are under way.
type groups struct {
	run func(ctx context.Context, l lane, requests []*request) error

	mu    sync.Mutex
	lanes map[lane]*queue // those with anything waiting or under way
}

type queue struct {
	waiting []*request
	trips   int
}

// do performs the rows of one call. If the context ends, a request that still waits is withdrawn,
// and one that is under way is left to its fate. Goroutines are counted in wg.
func (g *groups) do(ctx context.Context, wg *sync.WaitGroup, l lane, rows []row) error {
	r := &request{rows: rows, done: make(chan struct{})}
	for _, row := range rows {
		r.size += len(row.key) + len(row.value)
	}
	if g.enqueue(l, r) {
		wg.Go(func() { g.serve(l) })
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		g.leave(l, r)
		return ctx.Err()
	}
}

// enqueue reports whether the lane needs another goroutine.
func (g *groups) enqueue(l lane, r *request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.lanes[l]
	if q == nil {
		q = &queue{}
		if g.lanes == nil {
			g.lanes = make(map[lane]*queue)
		}
		g.lanes[l] = q
	}
	q.waiting = append(q.waiting, r)
	if q.trips == laneTrips {
		return false
	}
	q.trips++
	return true
}

func (g *groups) leave(l lane, r *request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.trip == nil {
		q := g.lanes[l]
		q.waiting = slices.DeleteFunc(q.waiting, func(w *request) bool { return w == r })
		return
	}
	if r.trip.waiters--; r.trip.waiters == 0 {
		r.trip.cancel()
	}
}

// serve makes trips until nothing waits.
func (g *groups) serve(l lane) {
	for t := g.take(l); t != nil; t = g.take(l) {
		err := g.run(t.ctx, l, t.requests)
		t.cancel()
		for _, r := range t.requests {
			r.err = err
			close(r.done)
		}
	}
}

// take makes a trip of the requests that have waited longest, at least one and as many as fit.
func (g *groups) take(l lane) *trip {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.lanes[l]
	if len(q.waiting) == 0 {
		if q.trips--; q.trips == 0 {
			delete(g.lanes, l)
		}
		return nil
	}
	t := &trip{}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	rows, size := 0, 0
	for _, r := range q.waiting {
		rows, size = rows+len(r.rows), size+r.size
		if len(t.requests) > 0 && (rows > l.most() || size > groupBytes) {
			break
		}
		r.trip = t
		t.requests = append(t.requests, r)
	}
	t.waiters = len(t.requests)
	q.waiting = slices.Delete(q.waiting, 0, t.waiters)
	return t
}

// merge returns the rows of several writing requests for one statement.
func merge(requests []*request) []row {
	var rows []row
	for _, r := range requests {
		rows = append(rows, r.rows...)
	}
	return inKeyOrder(rows)
}
