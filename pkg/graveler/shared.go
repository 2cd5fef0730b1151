// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"sync"
)

// sharedReads lets callers that wait for the same branch record share one read. A caller never gets the result of a read that started
// before it called: while one read runs, all who come wait for the next one.
type sharedReads struct {
	mu    sync.Mutex
	reads map[branchKey]*readPair
}

type readPair struct{ running, next *sharedRead }

type sharedRead struct {
	done   chan struct{}
	branch *Branch
	err    error
	// abandoned: the caller that was to do the read gave up; the others must call again.
	abandoned bool
}

func (s *sharedReads) do(ctx context.Context, k branchKey, read func(context.Context) (*Branch, error)) (*Branch, error) {
	for {
		r, before, leader := s.join(k)
		if leader {
			s.lead(ctx, k, r, before, read)
			return r.branch, r.err
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !r.abandoned {
			return r.branch, r.err
		}
	}
}

// join returns the read to share, the one that must end before it starts (nil if none), and whether the caller is the one to do it.
func (s *sharedReads) join(k branchKey) (r, before *sharedRead, leader bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pair := s.reads[k]
	switch {
	case pair == nil:
		r = &sharedRead{done: make(chan struct{})}
		s.reads[k] = &readPair{running: r}
		return r, nil, true
	case pair.next == nil:
		pair.next = &sharedRead{done: make(chan struct{})}
		return pair.next, pair.running, true
	default:
		return pair.next, nil, false
	}
}

func (s *sharedReads) lead(ctx context.Context, k branchKey, r, before *sharedRead, read func(context.Context) (*Branch, error)) {
	var b *Branch
	var err error
	abandoned := true
	// Deferred, so that a read that panics does not leave the others waiting.
	defer func() { s.finish(k, r, b, err, abandoned) }()
	if before != nil {
		select {
		case <-before.done:
		case <-ctx.Done():
			err = ctx.Err()
			return
		}
	}
	s.start(k, r)
	b, err = read(ctx)
	abandoned = err != nil && ctx.Err() != nil
}

// start marks r as running: from now on nobody joins it.
func (s *sharedReads) start(k branchKey, r *sharedRead) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pair := s.reads[k]; pair.next == r {
		pair.running, pair.next = r, nil
	}
}

func (s *sharedReads) finish(k branchKey, r *sharedRead, b *Branch, err error, abandoned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.branch, r.err, r.abandoned = b, err, abandoned
	switch pair := s.reads[k]; {
	case pair.next == r:
		pair.next = nil
	case pair.next == nil:
		delete(s.reads, k)
	}
	close(r.done)
}
