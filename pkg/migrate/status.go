// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

// Status is how far the migration into a store has come, as the store itself knows.
type Status struct {
	Source       string // which database it is from
	Began        time.Time
	Planned      int                // repositories that the last run found in the source; 0: it was one of an older program, which did not note it
	Repositories []RepositoryStatus // that were begun
}

// RepositoryStatus is how far one repository has come.
type RepositoryStatus struct {
	Repository string
	Done       bool
	// Items of the repository that are durable: settings, tags, commits, branches, moves and staged entries.
	Items uint64
	// Table, Branch and Key name the row of the last of them, where it is not done. A branch has no key, a row that belongs to none no branch.
	Table, Branch, Key string
	Lost               []Lost // files that were left out
}

// Lost is a range file, or a metarange with all of its tree, that a run with AllowMissing has left out, or would.
type Lost struct {
	Repository  string
	File        string // its ID
	Reason      string
	Entries     int64             // of a range; 0: it is a metarange
	First, Last []byte            // keys of a range
	Commit      graveler.CommitID // one that has it
	// A plan that looks at all trees says how many commits have it, and which branches and tags show it, the first of them.
	Commits int
	Refs    []string
}

// lostOf lists what was left out of a copy of a repository, by ID.
func (r records) lostOf(ctx context.Context, uid string) ([]Lost, error) {
	files, err := r.losses(ctx, uid)
	var lost []Lost
	for _, id := range slices.Sorted(maps.Keys(files)) {
		lost = append(lost, files[id])
	}
	return lost, err
}

// Status returns ErrNotMigrated where no migration was begun. It needs no source.
func (m *Migration) Status(ctx context.Context) (Status, error) {
	note := &migratepb.MigrationData{}
	found, err := m.records().get(ctx, sourceKey, note)
	if err == nil && !found {
		err = ErrNotMigrated
	}
	if err != nil {
		return Status{}, err
	}
	s := Status{Source: note.Source, Began: time.Unix(0, note.Began).UTC(), Planned: int(note.Repositories)}
	for r, err := range m.records().repositories(ctx) {
		if err != nil {
			return Status{}, err
		}
		lost, err := m.records().lostOf(ctx, r.Uid)
		if err != nil {
			return Status{}, err
		}
		status := RepositoryStatus{Repository: r.Repository, Done: r.Done, Items: r.Rows, Lost: lost}
		if !r.Done {
			status.Table, status.Branch, status.Key = r.Table, r.Branch, string(r.Key)
		}
		s.Repositories = append(s.Repositories, status)
	}
	return s, nil
}
