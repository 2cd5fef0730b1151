// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// cleaner removes bytes that nobody can ask for any more. There are two kinds, and who removes one knows nothing of the other:
//
//   - bytes that were committed, and whose objects retention has forgotten: it hands out their addresses (retain);
//   - bytes that were never committed, because a crash came between bytes and entry, or the object was overwritten before a commit: nothing refers to them (sweep).
//
// Only one may run on a store at a time.
type cleaner struct {
	store    *moraine.Store
	catalog  *catalog.Catalog
	bytes    *byteStore
	keepDays int
	now      func() time.Time
	log      *slog.Logger
}

// every cleans at once and then at every interval, until ctx ends.
func (c *cleaner) every(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := c.clean(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("clean-up", "error", err) // what was not done is done the next time
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// clean cleans every bucket that has bytes. One that fails does not stop the others.
func (c *cleaner) clean(ctx context.Context) error {
	buckets, err := c.bytes.buckets()
	errs := []error{err}
	for _, bucket := range buckets {
		if err := c.cleanBucket(ctx, graveler.RepositoryID(bucket)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", bucket, err))
		}
	}
	return errors.Join(errs...)
}

// cleanBucket takes each step only if all before it went well: an error keeps bytes.
func (c *cleaner) cleanBucket(ctx context.Context, bucket graveler.RepositoryID) error {
	// Rule: bytes of a bucket that the store does not know are left alone, since the metadata may be those of another day or place.
	if err := c.setRetention(ctx, bucket); err != nil {
		return err
	}
	// Rule: files are listed before references are looked for, so that a put whose entry comes later than the look is not among them.
	left, err := c.bytes.settled(string(bucket))
	if err != nil {
		return err
	}
	// Rule: what branches show is committed first, so that an address that goes from one key to another, by a copy or as an older
	// version, cannot slip past the look, key by key, at what is uncommitted.
	if err := c.checkpoint(ctx, bucket); err != nil {
		return err
	}
	// Rule: a sweep follows only a retention run that went well, which has compared the clocks.
	if err := c.retain(ctx, bucket); err != nil {
		return err
	}
	return c.sweep(ctx, bucket, left)
}

// setRetention gives a bucket the rule without which nothing that was committed ever goes.
func (c *cleaner) setRetention(ctx context.Context, bucket graveler.RepositoryID) error {
	rules, err := c.store.Retention(ctx, bucket)
	if err != nil || len(rules) > 0 {
		return err
	}
	return c.store.SetRetention(ctx, bucket, []graveler.RetentionRule{{Pattern: "*", Days: c.keepDays}})
}

func (c *cleaner) checkpoint(ctx context.Context, bucket graveler.RepositoryID) error {
	for branch, err := range c.store.ListAllBranches(ctx, bucket, "") {
		if err == nil {
			err = c.catalog.Checkpoint(ctx, catalog.Bucket{Repository: bucket, Ref: string(branch.ID)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// retain applies the retention rules and removes the bytes whose addresses it hands out.
func (c *cleaner) retain(ctx context.Context, bucket graveler.RepositoryID) error {
	_, err := c.store.Retain(ctx, bucket, graveler.RetainParams{
		// Rule: entries with the same address are the same bytes, whatever else they say: an edit of tags, a copy, an older version.
		Identify: func(v *graveler.Value) []byte {
			if address, ok := addressOf(bucket, v); ok {
				return append([]byte{1}, address...)
			}
			id := binary.AppendUvarint([]byte{0}, uint64(len(v.Identity)))
			return append(append(id, v.Identity...), v.Data...)
		},
		// Rule: bytes go before the files that name them; a run that is cut off between the two hands the addresses out again.
		Release: func(e graveler.Entry) error {
			address, ok := addressOf(bucket, e.Value)
			if !ok {
				return nil
			}
			return c.bytes.remove(address)
		},
		BeforeRemoval: func() error { return c.bytes.sync(string(bucket)) },
	})
	return err
}

// sweep removes what is left of the given addresses after those that anything refers to.
func (c *cleaner) sweep(ctx context.Context, bucket graveler.RepositoryID, left map[string]bool) error {
	err := c.references(ctx, bucket, func(v *graveler.Value) {
		if address, ok := addressOf(bucket, v); ok {
			delete(left, address)
		}
	})
	if err != nil {
		return err
	}
	now, before, since := c.now(), c.bytes.looked(string(bucket)), map[string]time.Time{}
	var errs []error
	for address := range left {
		first, ok := before[address]
		switch {
		case !ok || first.After(now): // a time to come is of a clock that was wrong
			since[address] = now
		case now.Sub(first) <= graveler.FileGrace:
			since[address] = first
		default:
			// Rule: bytes go when looks a day apart have found nothing that refers to them: for a day a reader may stage again
			// what he has read, in another branch or of a commit that has expired since. So bytes younger than a day stay.
			errs = append(errs, c.bytes.remove(address))
		}
	}
	return errors.Join(append(errs, c.bytes.noteLook(string(bucket), since))...)
}

// references calls found with each value that any commit has whose entries can still be read. Commits that are made meanwhile
// have nothing of interest: see cleanBucket. An entry of a commit is in the difference to its first parent, or in that parent; so
// it costs the changes of the history, not the sum of the trees.
func (c *cleaner) references(ctx context.Context, bucket graveler.RepositoryID, found func(*graveler.Value)) error {
	contents, err := c.store.Contents(ctx, bucket)
	if err != nil {
		return err
	}
	expired := map[graveler.CommitID]bool{}
	for e, err := range contents.Expirations(ctx) {
		if err != nil {
			return err
		}
		expired[e.Commit] = true
	}
	for commit, err := range c.store.ListCommits(ctx, bucket, "") {
		switch {
		case err != nil:
			return err
		case expired[commit.ID]:
			continue
		case len(commit.Parents) == 0 || expired[commit.Parents[0]]:
			for e, err := range c.store.List(ctx, bucket, string(commit.ID), graveler.ListOptions{}) {
				if err != nil {
					return err
				}
				found(e.Value)
			}
		default:
			for d, err := range c.store.Diff(ctx, bucket, string(commit.Parents[0]), string(commit.ID), graveler.DiffOptions{}) {
				if err != nil { // also where it has expired since: the next clean-up looks again
					return err
				}
				if d.Right != nil {
					found(d.Right)
				}
			}
		}
	}
	return contents.StillThere(ctx)
}

// addressOf returns the address that a value holds, if it is one of the bucket's own: retention of one bucket does not look at the objects of others.
func addressOf(bucket graveler.RepositoryID, v *graveler.Value) (string, bool) {
	o, err := catalog.Decode(*v)
	if err != nil || !addressForm.MatchString(o.PhysicalAddress) || !strings.HasPrefix(o.PhysicalAddress, string(bucket)+"/") {
		return "", false
	}
	return o.PhysicalAddress, true
}
