// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

// Status is how far the migration into a store has come, as the store itself knows.
type Status struct {
	Source       string // which database it is from
	Began        time.Time
	Repositories []RepositoryStatus
}

// RepositoryStatus is how far one repository has come.
type RepositoryStatus struct {
	Repository string
	Done       bool
	// Items of the repository that are durable: settings, tags, commits, branches, moves and staged entries. The last one is of Table and has Key.
	Items uint64
	Table string
	Key   string
	Lost  []Lost // files that were left out
}

// Lost is a range file, or a metarange with all of its tree, that a run with AllowMissing has left out, or would.
type Lost struct {
	Repository string
	File       string // its ID
	Reason     string
}

// lostOf lists what was left out of a copy of a repository, by ID.
func (r records) lostOf(ctx context.Context, repo, uid string) ([]Lost, error) {
	reasons, err := r.losses(ctx, uid)
	var lost []Lost
	for _, id := range slices.Sorted(maps.Keys(reasons)) {
		lost = append(lost, Lost{Repository: repo, File: id, Reason: reasons[id]})
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
	s := Status{Source: note.Source, Began: time.Unix(0, note.Began).UTC()}
	for r, err := range m.records().repositories(ctx) {
		if err != nil {
			return Status{}, err
		}
		lost, err := m.records().lostOf(ctx, r.Repository, r.Uid)
		if err != nil {
			return Status{}, err
		}
		s.Repositories = append(s.Repositories, RepositoryStatus{Repository: r.Repository, Done: r.Done, Items: r.Rows, Table: r.Table, Key: string(r.Key), Lost: lost})
	}
	return s, nil
}
