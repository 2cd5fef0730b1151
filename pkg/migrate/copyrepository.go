// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/xid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

// errChangedBelow: what was copied before is not what the source has now.
var errChangedBelow = errors.New("the source has changed")

// copyRepository brings one repository over, from wherever an earlier run left it.
func (r *running) copyRepository(ctx context.Context, reader *reader, row repositoryRow) error {
	note, err := r.records().repository(ctx, row.id)
	if err != nil {
		return err
	}
	complete, err := r.isComplete(ctx, row.id, note)
	if err != nil {
		return err
	}
	rows := r.rowsOf(row.id)
	if complete {
		lost, err := r.records().lostOf(ctx, note.Uid)
		if err != nil {
			return err
		}
		r.count(func(rep *Report) { rep.AlreadyThere, rep.Lost = rep.AlreadyThere+1, append(rep.Lost, lost...) })
		r.advance(rows, 1)
		return nil
	}
	o, err := r.originOf(ctx, reader, row)
	if err != nil {
		return err
	}
	place, format, err := r.placeOf(ctx, o)
	if err != nil {
		return err
	}
	c, err := r.takeUp(ctx, o, note, place)
	if err != nil {
		return err
	}
	c.format = format
	resumed, before := c.skip > 0, c.told
	err = c.copy(ctx)
	if errors.Is(err, errChangedBelow) || c.takenUp && errors.Is(err, graveler.ErrExists) {
		if err := c.to.Abort(ctx); err != nil {
			return err
		}
		r.count(func(rep *Report) { rep.Restarted++ })
		r.advance(before-c.told, 0)
		if c, err = r.start(ctx, o, place); err != nil {
			return err
		}
		c.format = format
		err = c.copy(ctx)
		resumed = false
	}
	if err != nil {
		// The writes under way end here; what they leave is taken up again.
		return errors.Join(err, c.to.Flush(context.WithoutCancel(ctx)))
	}
	lost, err := r.records().lostOf(ctx, c.note.Uid)
	if err != nil {
		return err
	}
	r.count(func(rep *Report) {
		rep.Copied++
		rep.Rows, rep.Trees, rep.Lost = rep.Rows+c.written, rep.Trees+c.converted, append(rep.Lost, lost...)
		if resumed {
			rep.Resumed++
		}
	})
	r.advance(rows-c.told, 1)
	return nil
}

// checkThere makes sure that the target's block storage is the one in which earlier runs have put the files of repositories that
// they have completed: one root of each is enough to tell.
func (r *running) checkThere(ctx context.Context, rows []repositoryRow) error {
	for _, row := range rows {
		note, err := r.records().repository(ctx, row.id)
		if err != nil {
			return err
		}
		complete, err := r.isComplete(ctx, row.id, note)
		if err == nil && complete {
			err = r.checkRoot(ctx, graveler.RepositoryID(row.id))
		}
		if err != nil {
			return fmt.Errorf("repository %s, which an earlier run has carried over: %w", row.id, err)
		}
	}
	return nil
}

// checkRoot reads the root of a tree that a branch of a repository shows: retention keeps that.
func (r *running) checkRoot(ctx context.Context, id graveler.RepositoryID) error {
	repo, err := r.refs().GetRepository(ctx, id)
	if err != nil {
		return err
	}
	for b, err := range r.refs().ScanBranches(ctx, repo, "") {
		if err != nil {
			return err
		}
		c, err := r.refs().GetCommit(ctx, repo, b.Head)
		if err != nil {
			return fmt.Errorf("branch %s: %w", b.ID, err)
		}
		if c.Tree != r.emptyTree() {
			return r.Graveler.CheckRoot(ctx, repo.Namespace, c.Tree)
		}
	}
	return nil
}

// originOf takes what the plan has read of a repository, or reads it.
func (r *running) originOf(ctx context.Context, reader *reader, row repositoryRow) (*origin, error) {
	r.mu.Lock()
	o := r.origins[row.id]
	delete(r.origins, row.id)
	r.mu.Unlock()
	if o != nil && o.began == r.note.Began { // else another run has noted the beginning meanwhile
		o.reader = reader
		return o, nil
	}
	return r.openOrigin(ctx, r.source, reader, row, reader.commitLinks(ctx, row), r.note.Began, func(e *RowError) error { return e })
}

// isComplete reports whether an earlier run has completed a repository that is still there. If it was deleted since, it is to be copied again.
func (r *running) isComplete(ctx context.Context, id string, note *migratepb.MigratedRepositoryData) (bool, error) {
	if note == nil {
		return false, nil
	}
	stored, err := r.refs().GetRepository(ctx, graveler.RepositoryID(id))
	if errors.Is(err, graveler.ErrRepositoryNotFound) {
		return false, nil
	}
	if err != nil || stored.UID != note.Uid || stored.State != graveler.RepositoryActive {
		return false, err
	}
	if !note.Done { // it was cut off between the two
		note.Done = true
		err = r.records().putRepository(ctx, note)
	}
	return err == nil, err
}

func (r *running) rowsOf(id string) int64 {
	for _, p := range r.report.Plan.Repositories {
		if p.Repository == id {
			return p.rows() + p.Trees
		}
	}
	return 0
}

// placeOf says where the files of a repository are to be, and who reads its trees.
func (r *running) placeOf(ctx context.Context, o *origin) (p graveler.LoadParams, format TreeFormat, err error) {
	created, err := timeOf(o.created)
	if err != nil {
		return p, nil, err
	}
	p = graveler.LoadParams{DefaultBranch: graveler.BranchID(o.defaultBranch), CreatedAt: created, ReadOnly: o.readOnly}
	format, own, err := r.formatOfOrigin(ctx, r.source, o)
	if own { // otherwise it has a folder of its own
		p.Files, p.InPlace = o.namespace, r.InPlace
	}
	return p, format, err
}

// takeUp goes on with what an earlier run has begun, or begins.
func (r *running) takeUp(ctx context.Context, o *origin, note *migratepb.MigratedRepositoryData, place graveler.LoadParams) (*copying, error) {
	if note != nil {
		place.UID = note.Uid
		to, err := r.Graveler.ResumeLoad(ctx, graveler.RepositoryID(o.id), place)
		switch {
		case err == nil && isAsBegun(to.Repository(), place) && note.Namespace == o.namespace:
			c := newCopying(r, o, to, note)
			c.takenUp = true
			return c, nil
		case err == nil:
			if err := to.Abort(ctx); err != nil {
				return nil, err
			}
			r.count(func(rep *Report) { rep.Restarted++ })
			return r.start(ctx, o, place)
		}
		if !errors.Is(err, graveler.ErrRepositoryNotFound) {
			return nil, err
		}
	}
	return r.start(ctx, o, place)
}

// isAsBegun reports whether a load that was begun is one that would be begun now, and leaves its files where they are to be.
func isAsBegun(begun graveler.Repository, place graveler.LoadParams) bool {
	return begun.Adopting == place.InPlace && begun.DefaultBranch == place.DefaultBranch && begun.ReadOnly == place.ReadOnly
}

// start begins a repository. Its UID is noted first, so that whatever becomes of this the next run finds it.
func (r *running) start(ctx context.Context, o *origin, place graveler.LoadParams) (*copying, error) {
	earlier, err := r.records().repository(ctx, o.id)
	if err == nil && earlier != nil {
		err = r.records().forget(ctx, earlier.Uid)
	}
	if err != nil {
		return nil, err
	}
	note := &migratepb.MigratedRepositoryData{Repository: o.id, Uid: xid.New().String(), Namespace: o.namespace}
	if err := r.records().putRepository(ctx, note); err != nil {
		return nil, err
	}
	place.UID = note.Uid
	to, err := r.Graveler.LoadRepository(ctx, graveler.RepositoryID(o.id), place)
	if err != nil {
		return nil, err
	}
	return newCopying(r, o, to, note), nil
}
