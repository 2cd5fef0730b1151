// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"sync"
)

// branchKey names a branch record in the tables of this process.
type branchKey struct {
	partition string
	branch    BranchID
}

// queue lets callers through one at a time per branch, in the order in which they came. It only keeps attempts of one process from
// defeating each other; that a publish is exclusive is the store's doing.
type queue struct {
	mu    sync.Mutex
	slots map[branchKey]*slot
}

type slot struct {
	turn  chan struct{} // holds one element while somebody has the turn
	users int
}

// enter waits for the caller's turn and returns the function that ends it.
func (q *queue) enter(ctx context.Context, k branchKey) (leave func(), err error) {
	q.mu.Lock()
	s := q.slots[k]
	if s == nil {
		s = &slot{turn: make(chan struct{}, 1)}
		q.slots[k] = s
	}
	s.users++
	q.mu.Unlock()

	select {
	case s.turn <- struct{}{}: // blocked senders are served first come, first served
		return func() { <-s.turn; q.drop(k, s) }, nil
	case <-ctx.Done():
		q.drop(k, s)
		return nil, ctx.Err()
	}
}

func (q *queue) drop(k branchKey, s *slot) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(q.slots, k)
	}
}
