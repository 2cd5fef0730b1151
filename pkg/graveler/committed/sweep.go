// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/xid"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// Files are removed beside builders in any process, which may find in place the very file that is about to go. Neither side has a lock; each first
// makes itself visible and then looks for the other.
//
// The sweeper is told which files nothing refers to, and the time before which a file is old: at least graveler.FileGrace ago. For a batch of them it
//
//  1. puts a marker, sweeps/run-<xid>, that names them,
//  2. only then looks at the age of each file, and deletes it if it is still old,
//  3. deletes the marker.
//
// The builder
//
//  1. puts each file; one that it finds in place it refreshes if it is older than a quarter of FileGrace,
//  2. only then lists the markers, and waits until those that name one of its files are gone,
//  3. syncs all files, which fails for one that is missing: then the tree is not published but built again (graveler.ErrSwept).
//
// Take a file that the sweeper has on its list and the builder in its tree. If the marker was put after the builder looked, the
// sweeper looks at the file after the builder has made it young, and keeps it. If the builder saw the marker, it has waited for
// the deletion, and notices it when it syncs. If the marker was gone again, so was the deletion over. This holds for files that
// the builder has written no less than for those that it found: two sweepers may both have seen the file that was there before.
// Whoever changes the builder must keep the order: everything put or refreshed, then the look, then one look at whether each file
// is there.
//
// A file that is younger than a quarter is left as it is. It stays young enough until the tree is published, which must be within
// half of FileGrace; the last quarter is for clocks that differ. What a tree shares with the one that it was made from is not
// looked at: it is as safe as that tree, which the builder's caller knows to be referred to when it publishes.
//
// A sweeper that dies leaves its marker. So a marker counts only for sweepLease from when it was put, and a sweeper deletes
// nothing once its marker is older than sweepLimit, by clocks of its own. The difference is for a deletion that was sent in time
// and takes effect late. For the same reason the marker is left where the outcome of a deletion is unknown. Leases are measured
// by the clock that stamps the files; it costs a file to ask it, so that is done only by those who have met a marker.
//
// A builder that takes a damaged file away to put a sound one in its place is a sweeper too: it puts a marker, looks whether the
// file is still damaged, and only then deletes it.
const (
	sweepBatch = 1000
	sweepLimit = 2 * time.Minute
	sweepLease = 15 * time.Minute
	// clockSlack is by how much the clocks of the machines that keep the files of one namespace may differ.
	clockSlack = 5 * time.Minute
	// discardLimit bounds the removal of a file of a sweep's own after its caller has given up.
	discardLimit = 10 * time.Second
)

// FileTime asks the storage of the namespace for its time, by putting a small file there for a moment.
func (s *Store) FileTime(ctx context.Context, ns string) (time.Time, error) {
	files, err := s.open(ctx, ns)
	if err != nil {
		return time.Time{}, err
	}
	return files.time(ctx)
}

func (f *files) time(ctx context.Context) (_ time.Time, err error) {
	name := clockPrefix + xid.New().String()
	defer func() {
		if err = errors.Join(err, f.discard(ctx, name)); err != nil {
			err = fmt.Errorf("ask for the time of files in %s: %w", f.ns, err)
		}
	}()
	if err := f.storage.Put(ctx, name, nil); err != nil {
		return time.Time{}, err
	}
	info, err := f.storage.Stat(ctx, name)
	if errors.Is(err, block.ErrNotFound) {
		return time.Time{}, fmt.Errorf("%s was removed, as what a sweep has left", name) // this took longer than a lease
	}
	return info.ModTime, err
}

// discard deletes a file beside the trees', also where ctx has ended.
func (f *files) discard(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardLimit)
	defer cancel()
	return f.storage.Delete(ctx, name)
}

// RemoveFiles removes the files that are older than before and keeps the others, safely beside builders in any process; see the
// protocol above. It also removes what sweepers left that have died. Its cost is two calls of the storage for each file, several
// at a time, and four more for a thousand of them. A before that is less than graveler.FileGrace ago by the storage's clock is
// graveler.ErrInvalidValue. What was removed is returned with an error too.
func (s *Store) RemoveFiles(ctx context.Context, ns string, ids []string, before time.Time) ([]string, error) {
	removed, err := s.removeFiles(ctx, ns, ids, before)
	if err != nil {
		return removed, fmt.Errorf("remove files of %s: %w", ns, err)
	}
	return removed, nil
}

func (s *Store) removeFiles(ctx context.Context, ns string, ids []string, before time.Time) (removed []string, err error) {
	var parsed []rangefile.ID
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		p, err := rangefile.ParseID(id)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", graveler.ErrInvalidRef, err)
		}
		parsed = append(parsed, p)
	}
	files, err := s.open(ctx, ns)
	if err != nil {
		return nil, err
	}
	now, err := files.time(ctx)
	if err != nil {
		return nil, err
	}
	if before.After(now.Add(clockSlack - graveler.FileGrace)) {
		return nil, fmt.Errorf("%w: those from before %s are not %s old at %s", graveler.ErrInvalidValue, before, graveler.FileGrace, now)
	}
	if err := files.removeLeftovers(ctx, now); err != nil {
		return nil, err
	}
	for batch := range slices.Chunk(parsed, sweepBatch) {
		gone, err := s.sweep(ctx, files, batch, before)
		removed = append(removed, gone...)
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// removeLeftovers removes what counts no longer.
func (f *files) removeLeftovers(ctx context.Context, now time.Time) error {
	for info, err := range f.storage.List(ctx, sweepDir) {
		if err == nil && isSweepFile(info.Name) && now.Sub(info.ModTime) > sweepLease {
			err = f.storage.Delete(ctx, info.Name)
		}
		if err != nil {
			return fmt.Errorf("remove what sweeps have left: %w", err)
		}
	}
	return nil
}

// sweep removes the old ones among a batch of files.
func (s *Store) sweep(ctx context.Context, f *files, ids []rangefile.ID, before time.Time) (removed []string, err error) {
	var mu sync.Mutex
	err = f.marked(ctx, ids, func(ctx context.Context, d *deletion) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(s.writers)
		for _, id := range ids {
			g.Go(func() error {
				old, err := f.isOld(ctx, id, before)
				if err != nil || !old {
					return err
				}
				if err := d.delete(ctx, id); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				removed = append(removed, id.String())
				return nil
			})
		}
		return g.Wait()
	})
	f.caches.forget(f.ns, ids)
	slices.Sort(removed)
	return removed, err
}

func (f *files) isOld(ctx context.Context, id rangefile.ID, before time.Time) (bool, error) {
	info, err := f.storage.Stat(ctx, fileName(id))
	if errors.Is(err, block.ErrNotFound) {
		return false, nil
	}
	return err == nil && info.ModTime.Before(before), err
}

// forget drops all that is cached of some files of a namespace.
func (c caches) forget(ns string, ids []rangefile.ID) {
	gone := make(map[fileKey]bool, len(ids))
	for _, id := range ids {
		k := fileKey{ns, id}
		gone[k] = true
		c.heads.Invalidate(k)
	}
	for k := range c.blocks.Keys() {
		if gone[k.fileKey] {
			c.blocks.Invalidate(k)
		}
	}
}
