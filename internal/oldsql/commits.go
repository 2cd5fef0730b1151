// SPDX-License-Identifier: Apache-2.0

package oldsql

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// treesOfRepository is how many trees the commits of a repository share.
const treesOfRepository = 4

// makeTrees builds trees, each from the one before.
func (r *repository) makeTrees(ctx context.Context, _ *pgx.Conn) error {
	r.trees = []string{""}
	if r.p.Trees == nil {
		return nil
	}
	tree := r.p.Trees.EmptyTree()
	for range treesOfRepository {
		changes := &sliceIterator{}
		for k := range 60 {
			e := graveler.Entry{Key: graveler.Key(dataKey(k))}
			switch r.rng.IntN(4) {
			case 0:
			case 1:
				changes.entries = append(changes.entries, e)
			default:
				e.Value = value(k, r.rng.IntN(3))
				changes.entries = append(changes.entries, e)
			}
		}
		var err error
		if tree, err = r.p.Trees.Apply(ctx, r.namespace(), tree, changes); err != nil {
			return err
		}
		if tree != r.p.Trees.EmptyTree() {
			r.trees = append(r.trees, string(tree))
		}
	}
	return nil
}

func dataKey(k int) string { return fmt.Sprintf("data/%03d", k) }

// value is one of the values that a key may have: of committed and of staged ones some are the same.
func value(k, version int) *graveler.Value {
	return &graveler.Value{Identity: fmt.Appendf(nil, "id-%d-%d", k, version), Data: fmt.Appendf(nil, "\x00data of %d, version %d", k, version)}
}

// date is the creation date of the i-th commit. Clocks were not always right.
func (r *repository) date(i int) time.Time {
	at := time.Date(2018, 3, 4, 5, 6, 7, 891_000, time.UTC).Add(time.Duration(i) * 61 * time.Second)
	switch r.rng.IntN(20) {
	case 0:
		return at.Add(-30 * 24 * time.Hour)
	case 1:
		return at.Truncate(time.Hour)
	case 2:
		return time.Date(1961, 1, 1, 0, 0, 0, 1000, time.UTC)
	}
	return at.Add(time.Duration(r.rng.IntN(1_000_000)) * time.Microsecond)
}

func (r *repository) commits(ctx context.Context, conn *pgx.Conn) error {
	columns := []string{"repository_id", "id", "committer", "message", "creation_date", "meta_range_id", "metadata", "parents", "version", "generation"}
	return copyRows(ctx, conn, "graveler_commits", columns, r.p.Commits, func(i int) []any {
		version := 1
		if i < r.p.Commits/3 {
			version = 0
		}
		var generation any
		if r.rng.IntN(3) > 0 {
			generation = r.rng.IntN(1000) // which need not be right
		}
		return []any{
			r.name, r.commitID(i), pick(r, "", "ann", "bob@example.com", "Zoë"), pick(r, " ", "", "Import", "line one\nline two", "\"quoted\" 'twice' \\ 日本"), r.date(i),
			pick(r, r.trees...), r.metadata(), r.parents(i, version), version, generation,
		}
	})
}

func pick[T any](r *repository, values ...T) T { return values[r.rng.IntN(len(values))] }

// metadata is JSON, or nil for SQL NULL.
func (r *repository) metadata() any {
	return pick[any](r, nil, []byte("null"), []byte("{}"), []byte(`{"a": "b"}`), []byte(`{"": "empty key", "empty": "", "ключ": "значение", "quote\"": "new\nline"}`))
}

// parents are NULL or empty for a first commit. The main parent comes first, in version 0 last.
func (r *repository) parents(i, version int) any {
	if i == 0 {
		return pick[any](r, nil, []string{})
	}
	main := i - 1 - r.rng.IntN(min(i, 3))
	parents := []string{r.commitID(main)}
	if other := r.rng.IntN(i); other != main && r.rng.IntN(5) == 0 {
		parents = append(parents, r.commitID(other))
	}
	if version == 0 {
		slices.Reverse(parents)
	}
	return parents
}

// sliceIterator is an iterator over entries in memory.
type sliceIterator struct {
	entries []graveler.Entry
	next    int
}

func (s *sliceIterator) Next() bool {
	s.next++
	return s.next <= len(s.entries)
}

func (s *sliceIterator) SeekGE(key graveler.Key) {
	s.next = slices.IndexFunc(s.entries, func(e graveler.Entry) bool { return string(e.Key) >= string(key) })
	if s.next < 0 {
		s.next = len(s.entries)
	}
}

func (s *sliceIterator) Item() graveler.Entry { return s.entries[s.next-1] }
func (s *sliceIterator) Err() error           { return nil }
func (s *sliceIterator) Close() error         { return nil }
