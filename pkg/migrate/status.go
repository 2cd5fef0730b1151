// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
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
	// Items of the repository that are durable: tags, commits, branches, moves and staged entries. The last one is of Table and has Key.
	Items uint64
	Table string
	Key   string
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
		s.Repositories = append(s.Repositories, RepositoryStatus{Repository: r.Repository, Done: r.Done, Items: r.Rows, Table: r.Table, Key: string(r.Key)})
	}
	return s, nil
}
