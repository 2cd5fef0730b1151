// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

// Report says what a run did.
type Report struct {
	Plan         Plan
	Copied       int    // repositories that are complete now and were not before
	Resumed      int    // of these, those of which a part was there before
	Restarted    int    // of these, those that were begun anew, since the part that was there was not what the source has now
	AlreadyThere int    // repositories that an earlier run completed
	Rows         int64  // that were written
	Trees        int64  // that were converted
	Lost         []Lost // files that were left out, of all repositories that are complete
}

// Run carries over every repository of the source that is not yet complete in the target, as of one instant. It plans first, and
// refuses what the plan finds (Plan.Err) before it writes anything. Nobody sees a repository before it is complete and proven
// (see graveler.Loading).
//
// A run that was cut off, or stopped by an error, is taken up by the next one: repositories that are complete stay as they are;
// one that is not goes on behind the last row that was noted as durable, if the rows before that are the same in the source as of
// now. If they are not, what is there is removed and the repository begun anew: each repository is a copy of one instant.
// Repositories that the source does not have any more, and that were not complete, are removed too.
//
// Another run of the same migration is refused with ErrRunning.
func (m *Migration) Run(ctx context.Context) (Report, error) {
	s, err := m.openSource(ctx)
	if err != nil {
		return Report{}, err
	}
	r := &running{Migration: m, source: s}
	err = r.run(ctx)
	return r.report, errors.Join(wrapf(err, "migrate"), s.close(ctx))
}

// running is a run under way.
type running struct {
	*Migration
	source *source
	note   *migratepb.MigrationData

	mu      sync.Mutex
	report  Report
	done    Progress
	origins map[string]*origin // what is left of those that the plan has read
}

// keptCommits is how many commits' histories a run does not read a second time. One takes about 60 bytes.
const keptCommits = 1 << 20

func (r *running) run(ctx context.Context) (err error) {
	if r.note, err = r.records().migration(ctx, r.source.id); err == nil && r.note != nil {
		err = r.source.lock(ctx, r.note.Uid) // before the plan, which takes long
	}
	if err != nil {
		return err
	}
	planned, err := r.plan(ctx, r.source, false)
	if err != nil {
		return err
	}
	r.report.Plan, r.origins = planned.Plan, planned.origins
	if err := r.report.Plan.Err(); err != nil {
		return err
	}
	if err := r.begin(ctx, planned.began); err != nil {
		return err
	}
	if r.InPlace {
		if err := r.source.takeOver(ctx, r.note.Uid); err != nil {
			return err
		}
	}
	r.done = Progress{Of: r.report.Plan.work(), OfRepositories: len(r.report.Plan.Repositories)}
	var rows []repositoryRow
	inSource := map[string]bool{}
	for row, err := range r.source.main.repositories(ctx) {
		if err != nil {
			return err
		}
		rows = append(rows, row)
		inSource[row.id] = true
	}
	if err := r.removeGone(ctx, inSource); err != nil {
		return err
	}
	if err := r.checkThere(ctx, rows); err != nil {
		return err
	}
	return r.copyAll(ctx, rows)
}

// begin notes in the target what is about to come, and keeps others from it.
func (r *running) begin(ctx context.Context, began int64) (err error) {
	if r.OpenTarget != nil {
		made := *r.Migration
		if made.KV, made.Graveler, err = r.OpenTarget(ctx); err != nil {
			return err
		}
		r.Migration = &made
	}
	if r.note, err = r.records().begin(ctx, r.source.id, r.refs(), began); err != nil {
		return err
	}
	if err := r.source.lock(ctx, r.note.Uid); err != nil { // once more does no harm
		return err
	}
	if n := int64(len(r.report.Plan.Repositories)); n != r.note.Repositories {
		r.note.Repositories = n
		return r.records().put(ctx, sourceKey, r.note)
	}
	return nil
}

// copyAll copies repositories side by side. The first error stops all, each behind what it has noted.
func (r *running) copyAll(ctx context.Context, rows []repositoryRow) error {
	group, ctx := errgroup.WithContext(ctx)
	queue := make(chan repositoryRow)
	group.Go(func() error {
		defer close(queue)
		for _, row := range rows {
			select {
			case queue <- row:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range min(r.workers(), len(rows)) {
		group.Go(func() (err error) {
			reader, err := r.source.reader(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, reader.close(ctx)) }()
			for row := range queue {
				if err := r.copyRepository(ctx, reader, row); err != nil {
					return fmt.Errorf("repository %s: %w", row.id, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// removeGone undoes what was begun of repositories that the source has no more.
func (r *running) removeGone(ctx context.Context, inSource map[string]bool) error {
	for note, err := range r.records().repositories(ctx) {
		if err != nil {
			return err
		}
		if note.Done || inSource[note.Repository] {
			continue
		}
		if err := r.undo(ctx, note); err != nil {
			return fmt.Errorf("remove repository %s, which the source has no more: %w", note.Repository, err)
		}
		if err := r.records().forget(ctx, note.Uid); err != nil {
			return err
		}
		if err := r.records().remove(ctx, repositoriesPrefix+note.Repository); err != nil {
			return err
		}
	}
	return nil
}

// undo removes what a note says was begun, unless that is complete: then its note was about to say so, and it stays.
func (r *running) undo(ctx context.Context, note *migratepb.MigratedRepositoryData) error {
	l, err := r.Graveler.ResumeLoad(ctx, graveler.RepositoryID(note.Repository), graveler.LoadParams{UID: note.Uid})
	if errors.Is(err, graveler.ErrRepositoryNotFound) {
		return nil
	}
	if err == nil {
		err = l.Abort(ctx)
	}
	return err
}

func (r *running) count(edit func(*Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	edit(&r.report)
}

// advance tells how far the run has come.
func (r *running) advance(rows int64, repositories int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done.Rows += rows
	r.done.Repositories += repositories
	if r.Progress != nil {
		r.Progress(r.done)
	}
}
