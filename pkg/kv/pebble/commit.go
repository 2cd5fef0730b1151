// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// commit is a batch on its way to the disk. It is announced before pebble shows it to anybody, and
// settled when it is durable or has failed. In between its locks are free already and its effects can
// be seen, so whoever has read something that it may have changed waits until it is settled.
//
// It is enough to wait for the latest commit of a stripe: those before it were applied, and so
// logged, earlier, and a sync of the log makes all durable that was logged before.
type commit struct {
	partitions [][]byte // that it changes
	batch      *pebble.Batch
	changes    []span
	settled    chan struct{}
	err        error // once settled
}

// wait returns when the commit is settled, with its outcome.
func (c *commit) wait(ctx context.Context) error {
	select {
	case <-c.settled:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unsettledCount spreads partitions, so that a scan seldom waits for the writes of others.
const unsettledCount = 64

// unsettled knows the commits that are under way, for reads of ranges, and what those that failed may
// have changed.
type unsettled struct {
	seed  maphash.Seed
	table [unsettledCount]struct {
		sync.Mutex
		commits map[*commit]struct{}
	}

	mu       sync.Mutex
	doubtful []span
}

func newUnsettled() *unsettled {
	u := &unsettled{seed: maphash.MakeSeed()}
	for i := range u.table {
		u.table[i].commits = make(map[*commit]struct{})
	}
	return u
}

func (u *unsettled) index(partition []byte) int {
	return int(maphash.Bytes(u.seed, partition) % unsettledCount)
}

func (u *unsettled) add(c *commit) {
	for _, p := range c.partitions {
		slot := &u.table[u.index(p)]
		slot.Lock()
		slot.commits[c] = struct{}{}
		slot.Unlock()
	}
}

// settle gives a commit its outcome.
func (u *unsettled) settle(c *commit, err error) {
	if err != nil {
		u.mu.Lock()
		u.doubtful = append(u.doubtful, c.changes...)
		u.mu.Unlock()
	}
	for _, p := range c.partitions {
		slot := &u.table[u.index(p)]
		slot.Lock()
		delete(slot.commits, c)
		slot.Unlock()
	}
	c.changes, c.batch = nil, nil // a stripe may remember the commit for long
	c.err = err
	close(c.settled)
}

// waitFor returns when every commit to a partition that was visible before the call is settled,
// however it has ended.
func (u *unsettled) waitFor(ctx context.Context, partition []byte) error {
	slot := &u.table[u.index(partition)]
	slot.Lock()
	commits := slices.Collect(maps.Keys(slot.commits))
	slot.Unlock()
	for _, c := range commits {
		select {
		case <-c.settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// check refuses what overlaps the changes of a failed commit: nobody knows whether they are durable.
func (u *unsettled) check(read span) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, d := range u.doubtful {
		if d.overlaps(read) {
			return fmt.Errorf("%w: a write of it has failed and may get lost", errFailed)
		}
	}
	return nil
}

// settleKey makes sure that what has just been read of a key is durable.
func (s *Store) settleKey(ctx context.Context, partition, k []byte) error {
	c := s.stripes.table[s.stripes.index(k)].last.Load()
	if c == nil || c.wait(ctx) == nil {
		return nil
	}
	// Its stripe may be all that the failed commit shares with the key.
	return s.settleSpan(ctx, partition, oneKey(k))
}

// settleSpan makes sure that what has just been read of a partition is durable.
func (s *Store) settleSpan(ctx context.Context, partition []byte, read span) error {
	if err := s.unsettled.waitFor(ctx, partition); err != nil {
		return err
	}
	return s.unsettled.check(read)
}
