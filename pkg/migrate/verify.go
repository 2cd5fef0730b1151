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

// Verified is what the comparison of the two sides came to.
type Verified struct {
	Repositories []VerifiedRepository // by name
	Differences  int64                // of all
}

// Err returns ErrDiffers with the first difference, nil if there is none.
func (v Verified) Err() error {
	for _, r := range v.Repositories {
		if len(r.First) > 0 {
			return fmt.Errorf("%w: %s (%d differences in all)", ErrDiffers, r.First[0], v.Differences)
		}
	}
	return nil
}

// VerifiedRepository compares one repository.
type VerifiedRepository struct {
	Repository  string
	Kinds       []VerifiedKind
	Differences int64
	First       []Difference // the first of them
	Lost        []Lost       // what a run with AllowMissing left out; verified is what is there without
}

// VerifiedKind compares what a repository has of one kind: the numbers, and the SHA-256 of all of it in order.
type VerifiedKind struct {
	Kind                       string
	Source, Target             int64
	SourceDigest, TargetDigest string
}

// Difference is one thing that is not the same on both sides.
type Difference struct {
	Repository, Kind, Key string
	What                  string
}

func (d Difference) String() string {
	if d.Key == "" {
		return fmt.Sprintf("repository %s: %s", quoted(d.Repository), d.What)
	}
	return fmt.Sprintf("repository %s, %s, %s: %s", quoted(d.Repository), d.Kind, quoted(d.Key), d.What)
}

// shownDifferences is how many differences of a repository are named.
const shownDifferences = 10

// Verify reads the source as of now and the target side by side and compares them row by row: repositories, tags, commits as they
// should have become, branches with their logs, and what is staged on them, byte by byte; and of trees that were converted every
// entry. What was written on either side since the migration is a difference. It writes nothing. ErrNotMigrated means that the
// target has nothing of this source; differences are no error of it: see Verified.Err.
func (m *Migration) Verify(ctx context.Context) (Verified, error) {
	s, err := m.openSource(ctx)
	if err != nil {
		return Verified{}, err
	}
	v := &verifying{Migration: m, source: s}
	err = v.run(ctx)
	return v.result, errors.Join(wrapf(err, "verify"), s.close(ctx))
}

type verifying struct {
	*Migration
	source *source
	note   *migratepb.MigrationData

	mu     sync.Mutex
	result Verified
	done   Progress
}

func (v *verifying) run(ctx context.Context) (err error) {
	if v.note, err = v.records().migration(ctx, v.source.id); err != nil {
		return err
	}
	if v.note == nil {
		return ErrNotMigrated
	}
	var rows []repositoryRow
	inSource := map[string]bool{}
	for row, err := range v.source.main.repositories(ctx) {
		if err != nil {
			return err
		}
		rows = append(rows, row)
		inSource[row.id] = true
	}
	v.result.Repositories = make([]VerifiedRepository, len(rows))
	v.done.OfRepositories = len(rows)
	if err := v.all(ctx, rows); err != nil {
		return err
	}
	for note, err := range v.records().repositories(ctx) {
		if err != nil {
			return err
		}
		if note.Done && !inSource[note.Repository] {
			gone := VerifiedRepository{Repository: note.Repository, Differences: 1, First: []Difference{{Repository: note.Repository, What: "it was migrated, and the source has it no more"}}}
			v.result.Repositories = append(v.result.Repositories, gone)
		}
	}
	for _, r := range v.result.Repositories {
		v.result.Differences += r.Differences
	}
	return nil
}

func (v *verifying) all(ctx context.Context, rows []repositoryRow) error {
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	group.Go(func() error {
		defer close(next)
		for i := range rows {
			select {
			case next <- i:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range min(v.workers(), len(rows)) {
		group.Go(func() (err error) {
			reader, err := v.source.reader(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, reader.close(ctx)) }()
			for i := range next {
				if v.result.Repositories[i], err = v.repository(ctx, reader, rows[i]); err != nil {
					return fmt.Errorf("repository %s: %w", rows[i].id, err)
				}
				v.advance(0, 1)
			}
			return nil
		})
	}
	return group.Wait()
}

func (v *verifying) advance(rows int64, repositories int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done.Rows += rows
	v.done.Repositories += repositories
	if v.Progress != nil {
		v.Progress(v.done)
	}
}

func (v *verifying) repository(ctx context.Context, reader *reader, row repositoryRow) (VerifiedRepository, error) {
	c := &comparing{result: VerifiedRepository{Repository: row.id}}
	stored, err := v.targetRepository(ctx, row.id)
	if err != nil {
		return c.result, err
	}
	if stored == nil {
		c.differ(nil, "it is not in the target")
		return c.result, nil
	}
	if err := v.compareRecords(c, row, stored); err != nil {
		return c.result, err
	}
	o, err := v.openOrigin(ctx, v.source, reader, row, reader.commitLinks(ctx, row), v.note.Began, func(e *RowError) error { return e })
	if err != nil {
		return c.result, err
	}
	t, err := v.convertedTrees(ctx, o, stored)
	if err != nil {
		return c.result, err
	}
	if t != nil {
		o.tree = t.treeOf(o)
	}
	if err := c.run(ahead(o.items(ctx)), ahead(v.targetItems(ctx, stored)), func(rows int64) { v.advance(rows, 0) }); err != nil || t == nil {
		return c.result, err
	}
	if err := t.compare(ctx, c); err != nil {
		if ctx.Err() != nil {
			return c.result, err
		}
		// The files of other repositories may be elsewhere.
		c.add(Difference{What: "its committed entries were not compared to the end: " + err.Error()})
	}
	return c.result, nil
}

// compareRecords compares the records of the repositories.
func (v *verifying) compareRecords(c *comparing, row repositoryRow, stored *graveler.Repository) error {
	created, err := timeOf(row.created)
	switch {
	case err != nil:
		return &RowError{Table: v.source.main.table(settingItem), Key: row.id, Reason: err}
	case string(stored.DefaultBranch) != row.defaultBranch:
		c.differ(nil, fmt.Sprintf("its default branch is %s, in the target %s", row.defaultBranch, stored.DefaultBranch))
	case !stored.CreatedAt.Equal(created):
		c.differ(nil, fmt.Sprintf("it was created at %s, in the target at %s", created, stored.CreatedAt))
	case stored.ReadOnly != row.readOnly:
		c.differ(nil, fmt.Sprintf("it is read-only: %t, in the target %t", row.readOnly, stored.ReadOnly))
	}
	return nil
}
