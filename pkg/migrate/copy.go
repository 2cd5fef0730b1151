// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rs/xid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

// Copy copies whole repositories from one store to another, each as of one dump of it: the source may be in use. Files are
// copied, too. Only one process at a time may copy into a store.
type Copy struct {
	From, To *graveler.Graveler
	// KV is the engine of the target. It keeps what was copied.
	KV kv.Store
	// Files says by what namespace the target finds the files of a repository of the source, whose namespace there it is given.
	Files func(namespace string) string
	// Program is named in the dumps.
	Program string
	// Progress, if it is not nil, is told of each repository when it is done, and whether this run has copied it.
	Progress func(id graveler.RepositoryID, copied bool, done int)
}

// CopyReport counts repositories.
type CopyReport struct {
	Copied, AlreadyThere int
	LeftOut              []graveler.RepositoryID // that are being created or deleted
}

// Run copies every repository that was not copied before, and has each dumped again from the target to prove that it is the same:
// ErrDiffers. A run that was cut off is taken up by the next one, which begins anew with the repository that was under way. A
// repository of the target that is none of those is ErrTargetTaken. Nobody sees a repository before it is complete.
func (c *Copy) Run(ctx context.Context) (r CopyReport, err error) {
	for repo, err := range c.From.ListRepositories(ctx, "") {
		if err != nil {
			return r, fmt.Errorf("copy: %w", err)
		}
		if repo.State != graveler.RepositoryActive {
			r.LeftOut = append(r.LeftOut, repo.ID)
			continue
		}
		copied, err := c.repository(ctx, repo)
		if err != nil {
			return r, fmt.Errorf("copy repository %s: %w", repo.ID, err)
		}
		if copied {
			r.Copied++
		} else {
			r.AlreadyThere++
		}
		if c.Progress != nil {
			c.Progress(repo.ID, copied, r.Copied+r.AlreadyThere)
		}
	}
	return r, nil
}

// copyNote is what the target knows of the copy of a repository. Every write of it is conditional on the one before, so that of
// two processes one is told.
type copyNote struct {
	migratepb.CopiedRepositoryData
	stored kv.Predicate
}

func (c *Copy) readNote(ctx context.Context, id graveler.RepositoryID) (*copyNote, error) {
	n := &copyNote{stored: kv.Absent}
	stored, err := kv.GetMessage(ctx, c.KV, []byte(Partition), copyKey(id), &n.CopiedRepositoryData)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		n.Repository = string(id)
	case err != nil:
		return nil, fmt.Errorf("read note of the copy: %w", err)
	default:
		n.stored = stored
	}
	return n, nil
}

func (c *Copy) writeNote(ctx context.Context, n *copyNote) error {
	err := kv.SetMessageIf(ctx, c.KV, []byte(Partition), copyKey(graveler.RepositoryID(n.Repository)), &n.CopiedRepositoryData, n.stored)
	if errors.Is(err, kv.ErrPredicateFailed) {
		err = ErrRunning
	}
	if err == nil {
		var value []byte
		value, err = kv.MarshalMessage(&n.CopiedRepositoryData)
		n.stored = kv.Equals(value)
	}
	return wrapf(err, "write note of the copy")
}

func copyKey(id graveler.RepositoryID) []byte { return []byte(copiesPrefix + string(id)) }

func (c *Copy) repository(ctx context.Context, repo graveler.Repository) (copied bool, err error) {
	note, err := c.readNote(ctx, repo.ID)
	if err != nil {
		return false, err
	}
	stored, err := ref.New(c.KV).GetRepository(ctx, repo.ID)
	switch active := err == nil && stored.State == graveler.RepositoryActive; {
	case errors.Is(err, graveler.ErrRepositoryNotFound):
		return true, c.load(ctx, repo, note)
	case err != nil:
		return false, err
	case stored.UID != note.Uid && (active || !slices.Contains(note.EarlierUids, stored.UID)):
		return false, fmt.Errorf("%w: a repository of this name", ErrTargetTaken)
	case active && note.SourceUid != repo.UID:
		return false, fmt.Errorf("%w: a copy of an earlier repository of this name", ErrTargetTaken)
	case active && note.Done:
		return false, nil
	case active:
		return true, c.prove(ctx, note)
	}
	// It was cut off half way. What the process had sent last may have come to a server after the next one had looked for it.
	l, err := c.To.ResumeLoad(ctx, repo.ID, graveler.LoadParams{UID: stored.UID})
	if err == nil {
		err = l.Abort(ctx)
	}
	if err != nil && !errors.Is(err, graveler.ErrRepositoryNotFound) {
		return false, err
	}
	return true, c.load(ctx, repo, note)
}

// load dumps the repository into a load. What the dump was is noted before the load can know that it has all of it, and so before
// anybody sees the copy.
func (c *Copy) load(ctx context.Context, repo graveler.Repository, note *copyNote) error {
	if note.Uid != "" {
		note.EarlierUids = append(note.EarlierUids, note.Uid)
	}
	note.Uid, note.SourceUid, note.Done, note.Digest = xid.New().String(), repo.UID, false, nil
	if err := c.writeNote(ctx, note); err != nil {
		return err
	}
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		sum := &lineSum{}
		err := dump.Write(writing, c.From, repo.ID, c.Program, io.MultiWriter(w, sum))
		if err == nil {
			note.Digest = sum.digest()
			err = c.writeNote(writing, note)
		}
		written <- err
		_ = w.CloseWithError(err) // it returns nil
	}()
	_, err := dump.Load(ctx, c.To, repo.ID, r, dump.LoadParams{UID: note.Uid, Files: c.Files(repo.Namespace)})
	if err != nil { // the dump ends, too
		cancel()
		_ = r.CloseWithError(err) // it returns nil
	}
	if writeErr := <-written; err != nil && writeErr != nil && !errors.Is(writeErr, context.Canceled) {
		err = writeErr
	}
	if err != nil {
		return err
	}
	return c.prove(ctx, note)
}

// prove dumps the copy, and compares.
func (c *Copy) prove(ctx context.Context, note *copyNote) error {
	sum := &lineSum{}
	if err := dump.Write(ctx, c.To, graveler.RepositoryID(note.Repository), c.Program, sum); err != nil {
		return err
	}
	if string(sum.digest()) != string(note.Digest) {
		return fmt.Errorf("%w: the dump of the copy is not that of the source", ErrDiffers)
	}
	note.Done, note.EarlierUids = true, nil
	return c.writeNote(ctx, note)
}
