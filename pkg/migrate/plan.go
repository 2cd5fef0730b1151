// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/cutover"
)

// Plan says what a migration would carry over, and what stands in its way.
type Plan struct {
	Layout        string // how the source keeps its rows, for people
	SchemaVersion int64
	Repositories  []PlannedRepository
	Rows          int64 // to carry over
	RowsThere     int64 // of repositories that an earlier run has carried over
	Bytes         int64 // that the tables and their indexes take
	// Estimate is how long a run may take on a machine of its own, at rates that were measured on a small one (see
	// docs/migration.md); the time for reading range files is not in it.
	Estimate time.Duration
	// Problems are what a run refuses, the first of each kind; MoreProblems is how many there are besides.
	Problems     []error
	MoreProblems int
	// Left is what is left behind: staged entries of tokens that no branch has, rows of repositories that do not exist, and what
	// this program's own SQL store has in tables beside the old ones; MoreLeft is how many owners there are besides.
	Left     []LeftBehind
	MoreLeft int
	// Lost are files that are missing or damaged, and that a run with AllowMissing goes on without, as far as the plan has found
	// them: it reads the metaranges, and looks which ranges there are.
	Lost     []Lost
	MoreLost int
	// Unlisted are repositories of lakeFS that have too many trees to look at all of them: those that branches and tags show were
	// looked at, and it is not known whether files of others are missing or of none.
	Unlisted []string
	// Bare are repositories without commits and branches that are not there yet, which are given an empty first commit.
	Bare []string
}

// PlannedRepository counts the rows of a repository.
type PlannedRepository struct {
	Repository              string
	Branches, Tags, Commits int64
	Staged                  int64
	// There: an earlier run has brought it there complete, and it stays as it is. Begun: an earlier run has brought a part of it.
	There, Begun bool
	// Trees are those that are to be converted, of another format.
	Trees int64
}

func (p PlannedRepository) rows() int64 { return p.Branches + p.Tags + p.Commits + p.Staged }

// work is what progress counts.
func (p Plan) work() int64 {
	n := p.Rows + p.RowsThere
	for _, r := range p.Repositories {
		n += r.Trees
	}
	return n
}

// LeftBehind are rows that are not carried over.
type LeftBehind struct {
	Table string
	// Owner is the token, or the repository, that does not exist; "" for all rows of a table.
	Owner string
	Rows  int64
	// What says what the owner is, or why the rows are left behind, where it is something else.
	What string
}

// Err returns what a run would fail with, nil if it would begin.
func (p Plan) Err() error {
	if len(p.Problems) == 0 {
		return nil
	}
	if n := len(p.Problems) + p.MoreProblems - 1; n > 0 {
		return fmt.Errorf("%w (and %d more; 'migrate plan' lists them)", p.Problems[0], n)
	}
	return p.Problems[0]
}

// rowsPerSecond is a rate for estimates.
const rowsPerSecond = 20_000

// maxProblems is how many problems a plan names, maxLeft how many owners of what is left behind.
const (
	maxProblems = 100
	maxLeft     = 1000
)

func (p *Plan) note(problem error) {
	if len(p.Problems) < maxProblems {
		p.Problems = append(p.Problems, problem)
		return
	}
	p.MoreProblems++
}

func (p *Plan) lose(l Lost) {
	if len(p.Lost) < maxProblems {
		p.Lost = append(p.Lost, l)
		return
	}
	p.MoreLost++
}

func (p *Plan) leave(l LeftBehind) {
	if len(p.Left) < maxLeft {
		p.Left = append(p.Left, l)
		return
	}
	p.MoreLeft++
}

// Plan reads all of the source but what is staged, which the database is asked about, and the roots of the trees that branches
// and tags show; of a source of lakeFS it looks at all trees, as far as what ranges they have. It writes nothing. An error means
// that the source or the target cannot be read, or that the tables are none that this program knows; everything else is in the
// plan.
func (m *Migration) Plan(ctx context.Context) (Plan, error) {
	s, err := m.openSource(ctx)
	if err != nil {
		return Plan{}, err
	}
	p, err := m.plan(ctx, s, true)
	return p.Plan, errors.Join(wrapf(err, "plan the migration"), s.close(ctx))
}

// plan looks at everything, or keeps what it reads of the histories for a run, up to keptCommits.
func (m *Migration) plan(ctx context.Context, s *source, everything bool) (*planning, error) {
	p := &planning{Migration: m, source: s, r: s.main, everything: everything, keep: keptCommits, origins: map[string]*origin{}, owners: map[string]tokenOwner{}}
	p.Layout, p.SchemaVersion = s.name, s.version
	for _, step := range []func(context.Context) error{p.target, p.repositories, p.leftBehind, p.stagedRows, p.size} {
		if err := step(ctx); err != nil {
			return &planning{}, err
		}
	}
	p.Estimate = time.Duration(p.Rows) * time.Second / rowsPerSecond
	return p, nil
}

// planning is a plan that is being made.
type planning struct {
	*Migration
	Plan
	source  *source
	r       *reader
	owners  map[string]tokenOwner // by staging token
	folders map[string]string     // by last name, or of lakeFS by namespace: which repository has it
	began   int64
	// everything: nobody runs what is planned, so that there is time to look at all files, and nothing to keep.
	everything bool
	keep       int                // commits that may be kept yet
	origins    map[string]*origin // by repository
}

// tokenOwner is the branch that has a staging token.
type tokenOwner struct {
	repository, branch string
	before             []string // tokens of the branch whose rows come before
	value              func(stagedRow) (graveler.Entry, error)
}

// target looks whether the target is empty, or this migration's own.
func (p *planning) target(ctx context.Context) (err error) {
	if p.InPlace && p.source.trees != nil {
		p.note(ErrConverted)
	} else if p.InPlace {
		marker, err := cutover.Read(ctx, p.r.conn)
		if err != nil {
			return err
		}
		if marker == nil {
			p.note(ErrNotCutOver)
		}
	}
	p.began = now().UnixNano()
	note, err := p.records().migration(ctx, p.source.id)
	if err == nil && note != nil {
		p.began = note.Began
	}
	if err == nil && note == nil {
		err = checkEmpty(ctx, p.refs())
	}
	if errors.Is(err, ErrTargetTaken) {
		p.note(err)
		return nil
	}
	return err
}

// repositories looks at every repository with its graph, names and commits.
func (p *planning) repositories(ctx context.Context) error {
	p.folders = map[string]string{}
	var rows []repositoryRow
	for row, err := range p.r.repositories(ctx) {
		if bad := badRecord(err); bad != nil {
			p.note(bad)
			continue
		}
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		if err := p.repository(ctx, row); err != nil {
			return fmt.Errorf("repository %s: %w", quoted(row.id), err)
		}
	}
	return nil
}
