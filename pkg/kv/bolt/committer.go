// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/moraine-store/moraine/pkg/kv"
)

// committer performs writes in groups: whatever waits when it is free goes into one transaction.
// There is no timer; the time that the previous group takes is what gathers the next.
type committer struct {
	db      *bbolt.DB
	stopped chan struct{}
	broken  error // set once the file is found corrupt; for the committer's goroutine until it has stopped

	mu      sync.Mutex
	changed *sync.Cond // waiting or closed has changed
	waiting []*write
	closed  bool
}

// write is one request, from many that share a transaction.
type write struct {
	// run performs it within tx. An error with changed false is the outcome of this write alone
	// and leaves the transaction as it was; an error with changed true spoils the transaction.
	run  func(tx *bbolt.Tx) (changed bool, err error)
	done chan struct{} // closed when err is the outcome
	err  error
}

func startCommitter(db *bbolt.DB) *committer {
	c := &committer{db: db, stopped: make(chan struct{})}
	c.changed = sync.NewCond(&c.mu)
	go func() {
		defer close(c.stopped)
		for group := c.next(); group != nil; group = c.next() {
			c.commit(group)
		}
	}()
	return c
}

// stop refuses new writes and returns when those that wait have been performed.
func (c *committer) stop() {
	c.mu.Lock()
	c.closed = true
	c.changed.Signal()
	c.mu.Unlock()
	<-c.stopped
}

// do performs one write. A context that ends withdraws the write while it waits; one that has been
// taken up already is waited for.
func (c *committer) do(ctx context.Context, run func(tx *bbolt.Tx) (changed bool, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &write{run: run, done: make(chan struct{})}
	if err := c.enqueue(w); err != nil {
		return err
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
	}
	if c.withdraw(w) {
		return ctx.Err()
	}
	<-w.done
	return w.err
}

func (c *committer) enqueue(w *write) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return kv.ErrClosed
	}
	c.waiting = append(c.waiting, w)
	c.changed.Signal()
	return nil
}

func (c *committer) withdraw(w *write) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.waiting, w)
	if i < 0 {
		return false
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	return true
}

// next waits for writes and takes them all. It returns nil when there will be no more.
func (c *committer) next() []*write {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) == 0 && !c.closed {
		c.changed.Wait()
	}
	group := c.waiting
	c.waiting = nil
	return group
}

// commit gives each write of the group its outcome. If the transaction fails, so does every write in
// it, even one whose predicate failed: what it was compared with may be what was not committed.
func (c *committer) commit(group []*write) {
	err := c.broken
	if err == nil {
		err = c.transact(group)
	}
	if errors.Is(err, errCorrupt) {
		c.broken = err
	}
	for _, w := range group {
		if err != nil {
			w.err = err
		}
		close(w.done)
	}
}

func (c *committer) transact(group []*write) error {
	return update(c.db, func(tx *bbolt.Tx) (dirty bool, err error) {
		for _, w := range group {
			changed, err := w.run(tx)
			if err != nil && changed {
				return true, err
			}
			w.err = err
			dirty = dirty || changed
		}
		return dirty, nil
	})
}

// update runs a write transaction, and commits it if there is something to commit.
func update(db *bbolt.DB, run func(tx *bbolt.Tx) (dirty bool, err error)) error {
	tx, err := db.Begin(true)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	// After a commit this does nothing but say so. bbolt's own Update is not used because after a
	// panic it would walk through all pages, on a goroutine of its own, and meet the same page again.
	defer func() { _ = tx.Rollback() }()
	return guard(func() error {
		dirty, err := run(tx)
		if err != nil || !dirty {
			return err
		}
		if err := tx.Commit(); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		return nil
	})
}
