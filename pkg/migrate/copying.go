// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

const (
	// A checkpoint is made after so many items, or about so many bytes of them, or when the last one was so long ago.
	defaultCheckpoint = 20_000
	checkpointBytes   = 32 << 20
	checkpointEvery   = time.Second
	// Entries are staged in batches of at most so many, or about so many bytes.
	batchEntries = 1000
	batchBytes   = 1 << 20
)

// copying is one repository under way.
type copying struct {
	*running
	origin *origin
	to     *graveler.Loading
	note   *migratepb.MigratedRepositoryData
	format TreeFormat // nil: the trees are Moraine's own

	takenUp bool   // an earlier run has begun it, and may have written what no checkpoint tells of
	skip    uint64 // items at the beginning that are there already, if their digest is that of the note
	items   uint64 // that were read
	sum     hash.Hash
	buf     []byte

	noted      uint64 // items at the last checkpoint
	notedAt    time.Time
	notedBytes int
	written    int64 // rows
	converted  int64 // trees
	told       int64 // rows that progress was told of
	untold     int64

	branch  graveler.Branch // whose entries come; without token until its record was made or read
	batch   []graveler.Entry
	batched int
}

func newCopying(r *running, o *origin, to *graveler.Loading, note *migratepb.MigratedRepositoryData) *copying {
	return &copying{running: r, origin: o, to: to, note: note, skip: note.Rows, sum: digestOf(o), notedAt: now()}
}

// digestOf begins the digest of a repository: what its record says belongs to what must not have changed.
func digestOf(o *origin) hash.Hash {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %d\n", o.namespace, o.defaultBranch, o.created.UnixNano())
	return sum
}

// copy writes all that comes behind what is there, and completes the repository.
func (c *copying) copy(ctx context.Context) error {
	if c.format != nil {
		if err := c.convert(ctx); err != nil {
			return err
		}
	}
	for i, err := range ahead(c.origin.items(ctx)) {
		if err == nil {
			err = c.take(ctx, i)
		}
		if err != nil {
			return err
		}
	}
	if c.items < c.skip {
		return errChangedBelow
	}
	if err := c.checkpoint(ctx, nil); err != nil {
		return err
	}
	if c.takenUp {
		if err := c.compareTarget(ctx); err != nil {
			return err
		}
	}
	c.origin.history, c.origin.tree = nil, nil // Finish takes as much memory again
	if _, err := c.to.Finish(ctx); err != nil {
		return err
	}
	c.note.Done = true
	return c.records().putRepository(ctx, c.note)
}

// compareTarget returns errChangedBelow unless the target has what was read and nothing else: an earlier run may have been cut
// off behind its last checkpoint, after rows that the source has lost since.
func (c *copying) compareTarget(ctx context.Context) error {
	repo := c.to.Repository()
	sum := digestOf(c.origin)
	var n uint64
	for i, err := range ahead(c.targetItems(ctx, &repo)) {
		if err != nil {
			return fmt.Errorf("read what is there: %w", err)
		}
		c.digest(sum, i)
		if n++; n%reportRows == 0 {
			if err := c.to.Flush(ctx); err != nil { // it shows that the load lives
				return err
			}
		}
	}
	if !bytes.Equal(sum.Sum(nil), c.sum.Sum(nil)) {
		return errChangedBelow
	}
	return nil
}

// digest adds an item to a digest, but for what its record forbids: a branch has that from the settings, when the load ends.
func (c *copying) digest(sum hash.Hash, i *item) {
	written := *i
	written.protected, written.readOnly = 0, false
	c.buf = written.append(c.buf[:0])
	sum.Write(c.buf)
}

func (c *copying) take(ctx context.Context, i *item) error {
	c.items++
	c.digest(c.sum, i)
	if err := c.tell(ctx, i); err != nil {
		return err
	}
	if c.items <= c.skip {
		return c.pass(i)
	}
	if i.kind != entryItem {
		if err := c.stage(ctx); err != nil {
			return err
		}
	}
	if err := c.write(ctx, i); err != nil { // which may be that of an earlier item
		return err
	}
	if i.kind != moveItem {
		c.written++
	}
	c.notedBytes += len(c.buf)
	if c.items-c.noted >= c.checkpointItems() || c.notedBytes >= checkpointBytes || now().Sub(c.notedAt) >= c.checkpointTime() {
		return c.checkpoint(ctx, i)
	}
	return nil
}

// pass goes over an item that is there. With the last one it is known whether the source still has them all.
func (c *copying) pass(i *item) error {
	if i.kind == branchItem {
		c.branch = c.branchOf(i)
	}
	c.noted = c.items
	if c.items < c.skip {
		return nil
	}
	c.notedAt = now()
	if !bytes.Equal(c.sum.Sum(nil), c.note.Digest) {
		return errChangedBelow
	}
	return nil
}

func (c *copying) write(ctx context.Context, i *item) (err error) {
	switch i.kind {
	case settingItem:
		return c.to.PutSetting(ctx, graveler.Setting{Name: i.key, Document: i.document})
	case tagItem:
		return c.to.PutTag(ctx, graveler.Tag{ID: graveler.TagID(i.key), Commit: i.head})
	case commitItem:
		return c.to.PutCommit(ctx, i.commit)
	case branchItem:
		c.branch, err = c.to.PutBranch(ctx, c.branchOf(i))
		return err
	case moveItem:
		return c.to.PutMove(ctx, c.branch.UID, i.move)
	default:
		e := graveler.Entry{Key: graveler.Key(i.key), Value: i.value}
		c.batch = append(c.batch, e)
		c.batched += len(c.buf)
		if len(c.batch) >= batchEntries || c.batched >= batchBytes {
			return c.stage(ctx)
		}
		return nil
	}
}

func (c *copying) branchOf(i *item) graveler.Branch {
	return graveler.Branch{
		ID: graveler.BranchID(i.branch), UID: branchUID(c.running.note.Began, c.note.Uid, i.branch), Head: i.head, Hidden: i.hidden, LastMove: i.move,
	}
}

// stage stages the batch.
func (c *copying) stage(ctx context.Context) (err error) {
	if len(c.batch) == 0 {
		return nil
	}
	if c.branch.Token == "" { // its record was made by an earlier run
		if c.branch, err = c.to.PutBranch(ctx, c.branch); err != nil {
			return err
		}
	}
	batch := c.batch
	c.batch, c.batched = nil, 0
	return c.to.Stage(ctx, c.branch, batch)
}

// checkpoint makes everything durable up to the item, nil for all, and notes that.
func (c *copying) checkpoint(ctx context.Context, last *item) error {
	if err := c.stage(ctx); err != nil {
		return err
	}
	if err := c.to.Flush(ctx); err != nil {
		return err
	}
	c.note.Rows, c.note.Digest = c.items, c.sum.Sum(nil)
	c.note.Table, c.note.Branch, c.note.Key, c.note.Converted = "", "", nil, c.format != nil
	if last != nil {
		table, branch, key := last.row(c.origin.layout)
		c.note.Table, c.note.Branch, c.note.Key = table, branch, []byte(key)
	}
	c.noted, c.notedAt, c.notedBytes = c.items, now(), 0
	return c.records().putRepository(ctx, c.note)
}

// tell reports progress now and then, and shows that the load lives while it only passes over what is there.
func (c *copying) tell(ctx context.Context, i *item) error {
	if i.kind != moveItem {
		c.untold++
	}
	if c.items%reportRows != 0 {
		return nil
	}
	c.advance(c.untold, 0)
	c.told, c.untold = c.told+c.untold, 0
	if c.items > c.skip {
		return nil
	}
	return c.to.Flush(ctx)
}
