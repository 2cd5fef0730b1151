// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// Record is a value under its key, in a partition.
type Record struct{ Partition, Key, Value []byte }

// Publisher is a capability: a conditional write together with the records that must be there before
// it, in one step and with one sync.
type Publisher interface {
	// Publish stores the records of before, whatever is there, and then, if the predicate holds, last,
	// as SetIf does. Whoever finds last finds the others too, after a crash as well. If the predicate
	// does not hold it is [ErrPredicateFailed]; then, and after any other error, any subset of the
	// records of before may have been stored, and may yet be. They may be of any partitions. No key may
	// come twice ([ErrDuplicateKey]). last may be a key that serves as a fence; the others may not.
	Publish(ctx context.Context, before []Record, last Record, p Predicate) error
}

// Publish stores records and then one more on a condition, in one step if the store can, else one after
// the other: first, all at a time, those of before, then last. See [Publisher].
func Publish(ctx context.Context, s Store, before []Record, last Record, p Predicate) error {
	if publisher, ok := s.(Publisher); ok {
		return publisher.Publish(ctx, before, last, p)
	}
	if err := s.Limits().CheckPublish(before, last, p); err != nil {
		return Wrap("publish", last.Partition, last.Key, err)
	}
	group, gctx := errgroup.WithContext(ctx)
	for _, r := range before {
		group.Go(func() error { return s.Set(gctx, r.Partition, r.Key, r.Value) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.SetIf(ctx, last.Partition, last.Key, last.Value, p)
}

// CheckPublish refuses malformed records, a missing predicate, and a key that comes twice.
func (l Limits) CheckPublish(before []Record, last Record, p Predicate) error {
	if err := l.CheckSetIf(last.Partition, last.Key, last.Value, p); err != nil {
		return err
	}
	type place struct{ partition, key string }
	seen := map[place]struct{}{{string(last.Partition), string(last.Key)}: {}}
	for i, r := range before {
		if err := l.CheckSet(r.Partition, r.Key, r.Value); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		at := place{string(r.Partition), string(r.Key)}
		if _, dup := seen[at]; dup {
			return fmt.Errorf("record %d: %w %s", i, ErrDuplicateKey, printable(at.key))
		}
		seen[at] = struct{}{}
	}
	return nil
}
