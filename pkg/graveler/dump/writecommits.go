// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump/dumppb"
)

// Commits are scanned by ID, while others make commits. One scan is not enough: it may see a commit that was made meanwhile, and
// have passed the place of its parent before that was made. But whatever the first scan has seen was made after its parents, so
// that a second scan finds those. It also tells whether retention removed anything.

func (d *dumping) commits(ctx context.Context) error {
	for c, err := range d.Commits(ctx) {
		if err == nil {
			err = d.written.addID(c.ID)
		}
		if err == nil {
			err = d.commit(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dumping) commit(c *graveler.Commit) error {
	return d.write(&dumppb.DumpRecord{Record: &dumppb.DumpRecord_Commit{Commit: commitData(c)}})
}

// lateCommits scans the commits again, and writes those that the first scan missed and that are ancestors of what it has seen.
func (d *dumping) lateCommits(ctx context.Context) error {
	next, stop := iter.Pull2(d.written.ids())
	defer stop()
	l := lateCommits{dumping: d, parents: map[graveler.CommitID][]graveler.CommitID{}, needed: map[graveler.CommitID]bool{}}
	written, err, more := next()
	for c, scanErr := range d.Commits(ctx) {
		switch {
		case scanErr != nil:
			return scanErr
		case more && err == nil && written == c.ID:
			if err := l.expect(ctx, c); err != nil {
				return err
			}
			written, err, more = next()
		case more && (err != nil || written < c.ID):
			return cmp.Or(err, removed(written))
		default:
			l.parents[c.ID] = c.Parents
		}
	}
	if more {
		return cmp.Or(err, removed(written))
	}
	return l.write(ctx)
}

// removed is the error of a dump that may lack what it refers to.
func removed(id graveler.CommitID) error {
	return fmt.Errorf("%w: commit %s was removed meanwhile; dump again", graveler.ErrChanged, id)
}

// lateCommits are those that were not written in the first scan, by their parents, and which of them are needed.
type lateCommits struct {
	*dumping
	parents map[graveler.CommitID][]graveler.CommitID
	needed  map[graveler.CommitID]bool
}

// expect makes sure that the parents of a commit that was written are, too. If one was missed its ID is smaller, since the scan
// came to greater ones after it; so the second scan has passed it by now.
func (l *lateCommits) expect(ctx context.Context, c *graveler.Commit) error {
	for _, id := range c.Parents {
		if _, late := l.parents[id]; late {
			l.needed[id] = true
			continue
		}
		_, err := l.Commit(ctx, id)
		if errors.Is(err, graveler.ErrCommitNotFound) {
			err = l.missing(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// missing returns an error unless it is retention that has removed a commit, and said so.
func (d *dumping) missing(ctx context.Context, id graveler.CommitID) error {
	expired, err := d.Expired(ctx, id)
	if err == nil && !expired {
		err = removed(id)
	}
	return err
}

// write writes what is needed, with its late ancestors, which were there when the second scan began.
func (l *lateCommits) write(ctx context.Context) error {
	for queue := slices.Collect(maps.Keys(l.needed)); len(queue) > 0; {
		last := len(queue) - 1
		id := queue[last]
		queue = queue[:last]
		for _, parent := range l.parents[id] {
			if _, late := l.parents[parent]; late && !l.needed[parent] {
				l.needed[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.needed)) {
		c, err := l.Commit(ctx, id)
		if err == nil {
			err = l.commit(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkNamed makes sure that the commits on which branches and tags stand are in the dump: one that was there when it was named,
// and is there still, was there all the time.
func (d *dumping) checkNamed(ctx context.Context) error {
	for id, err := range d.named.ids() {
		if err == nil {
			_, err = d.Commit(ctx, id)
		}
		if errors.Is(err, graveler.ErrCommitNotFound) {
			err = removed(id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
