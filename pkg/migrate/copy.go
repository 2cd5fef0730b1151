// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rs/xid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

// Copy copies whole repositories from one store to another, each as of one dump of it: the source may be in use. Files are copied, too. Only one process at a time may copy into a store.
type Copy struct {
	From, To *graveler.Graveler
	// KV is the engine of the target. It keeps what was copied.
	KV kv.Store
	// Files says by what namespace the target finds the files of a repository of the source, whose namespace there it is given.
	Files func(namespace string) string
	// Program is named in the dumps.
	Program string
	// Progress, if it is not nil, is told of each repository when it is done.
	Progress func(id graveler.RepositoryID, done int)
}

// CopyReport counts repositories.
type CopyReport struct {
	Copied, AlreadyThere int
	LeftOut              []graveler.RepositoryID // that are being created or deleted
}

// Run copies every repository that was not copied before, and has each dumped again from the target to prove that it is the same: ErrDiffers. A run that was cut off is taken up by the next one, which begins anew with the repository that was
// under way. A repository of the target that is none of those is ErrTargetTaken. Nobody sees a repository before it is complete.
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
			c.Progress(repo.ID, r.Copied+r.AlreadyThere)
		}
	}
	return r, nil
}

func copyKey(id graveler.RepositoryID) string { return copiesPrefix + string(id) }

func (c *Copy) repository(ctx context.Context, repo graveler.Repository) (copied bool, err error) {
	note := &migratepb.CopiedRepositoryData{}
	known, err := records{c.KV}.get(ctx, copyKey(repo.ID), note)
	if err != nil {
		return false, err
	}
	stored, err := ref.New(c.KV).GetRepository(ctx, repo.ID)
	switch {
	case errors.Is(err, graveler.ErrRepositoryNotFound):
		return true, c.load(ctx, repo)
	case err != nil:
		return false, err
	case !known || stored.UID != note.Uid:
		return false, fmt.Errorf("%w: a repository of this name", ErrTargetTaken)
	case stored.State == graveler.RepositoryActive && note.SourceUid != repo.UID:
		return false, fmt.Errorf("%w: a copy of an earlier repository of this name", ErrTargetTaken)
	case stored.State == graveler.RepositoryActive && note.Done:
		return false, nil
	case stored.State == graveler.RepositoryActive:
		return true, c.prove(ctx, note)
	}
	// It was cut off half way.
	l, err := c.To.ResumeLoad(ctx, repo.ID, graveler.LoadParams{UID: note.Uid})
	if err == nil {
		err = l.Abort(ctx)
	}
	if err != nil && !errors.Is(err, graveler.ErrRepositoryNotFound) {
		return false, err
	}
	return true, c.load(ctx, repo)
}

// load dumps the repository into a load. What the dump was is noted before the load can know that it has all of it, and so before anybody sees the copy.
func (c *Copy) load(ctx context.Context, repo graveler.Repository) error {
	note := &migratepb.CopiedRepositoryData{Repository: string(repo.ID), Uid: xid.New().String(), SourceUid: repo.UID}
	if err := (records{c.KV}).put(ctx, copyKey(repo.ID), note); err != nil {
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
			err = records{c.KV}.put(writing, copyKey(repo.ID), note)
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
func (c *Copy) prove(ctx context.Context, note *migratepb.CopiedRepositoryData) error {
	sum := &lineSum{}
	if err := dump.Write(ctx, c.To, graveler.RepositoryID(note.Repository), c.Program, sum); err != nil {
		return err
	}
	if string(sum.digest()) != string(note.Digest) {
		return fmt.Errorf("%w: the dump of the copy is not that of the source", ErrDiffers)
	}
	note.Done = true
	return records{c.KV}.put(ctx, copyKey(graveler.RepositoryID(note.Repository)), note)
}
