// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
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
	kind      kind
	partition string // of deletes and batches; sets, and reads, of all partitions go together
	fence     laneFence
}

type kind int

const (
	sets kind = iota
	deletes
	batches // with conditions, or sets and deletes together
	reads
)

// most is how many rows may be in a group.
func (l lane) most() int {
	if l.kind == reads {
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

// row is one write, or one read, whose value is the answer (nil: the key is absent). It outlives the call.
type row struct {
	partition, key, value []byte
	condition             *kv.Predicate // of batches only
}

// request is what one call asks for: rows that land together, or a row to read.
type request struct {
	rows   []row
	size   int
	trip   *trip         // nil while it waits
	done   chan struct{} // closed when err is the outcome
	err    error
	failed []byte // of a batch whose err is kv.ErrPredicateFailed, the key that it is about
}

func newRequest(rows ...row) *request {
	r := &request{rows: rows, done: make(chan struct{})}
	for _, row := range rows {
		r.size += len(row.key) + len(row.value)
	}
	return r
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
	// run returns the outcome of requests that it has not given one of their own.
	run func(ctx context.Context, l lane, requests []*request) error

	mu    sync.Mutex
	lanes map[lane]*queue // those with anything waiting or under way
}

type queue struct {
	waiting []*request
	trips   int
}

// do performs what one call asks for: at once and in this goroutine if it may, else in a group of those that wait. If the context
// ends, a request that still waits is withdrawn, and one that is under way is left to its fate: the caller must not look into it
// then. Goroutines are counted in wg.
func (g *groups) do(ctx context.Context, wg *sync.WaitGroup, l lane, r *request) error {
	if g.enter(l, r) {
		err := g.run(ctx, l, []*request{r})
		if t := g.take(l); t != nil {
			wg.Go(func() { g.serve(l, t) })
		}
		return cmp.Or(r.err, err)
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		g.leave(l, r)
		return ctx.Err()
	}
}

// enter reports whether the request may go at once. Else it waits.
func (g *groups) enter(l lane, r *request) bool {
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
	if q.trips == laneTrips {
		q.waiting = append(q.waiting, r)
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

// serve makes a trip, and others until nothing waits.
func (g *groups) serve(l lane, t *trip) {
	for ; t != nil; t = g.take(l) {
		err := g.run(t.ctx, l, t.requests)
		t.cancel()
		for _, r := range t.requests {
			if r.err == nil {
				r.err = err
			}
			close(r.done)
		}
	}
}

// take makes the trip that follows one which has ended, of the requests that have waited longest, as many as fit; nil where none
// waits. Batches that have a key in common do not travel together, since each is to see what the one before it has left.
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
	rows, size, keys := 0, 0, map[string]bool{}
	for _, r := range q.waiting {
		rows, size = rows+len(r.rows), size+r.size
		if len(t.requests) > 0 && (rows > l.most() || size > groupBytes || slices.ContainsFunc(r.rows, func(row row) bool { return keys[string(row.key)] })) {
			break
		}
		if l.kind == batches {
			for _, row := range r.rows {
				keys[string(row.key)] = true
			}
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
