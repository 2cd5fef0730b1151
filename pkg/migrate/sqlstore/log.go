// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// PutMove implements [graveler.Moves].
func (s *Store) PutMove(ctx context.Context, repo *graveler.Repository, branchUID string, m graveler.Move) error {
	return wrap(s.putMove(ctx, repo, branchUID, m), "put move %d of branch %s of %s", m.Time, branchUID, repo.ID)
}

func (s *Store) putMove(ctx context.Context, repo *graveler.Repository, branchUID string, m graveler.Move) error {
	write, err := writeMove(repo, branchUID, m)
	if err == nil {
		_, err = s.exec(ctx, write.sql, write.arguments...)
	}
	return err
}

func writeMove(repo *graveler.Repository, branchUID string, m graveler.Move) (query, error) {
	if err := errors.Join(checkUID(branchUID), checkText(moveTexts(m)...)); err != nil {
		return query{}, err
	}
	if err := checkMove(m); err != nil {
		return query{}, invalid("%v", err)
	}
	record, err := encode(moveRecord(m))
	return query{`INSERT INTO moraine_moves (partition, branch_uid, at, record) VALUES ($1, $2, $3, $4)
		ON CONFLICT (partition, branch_uid, at) DO UPDATE SET record = excluded.record`, []any{repo.Partition(), branchUID, m.Time, record}}, err
}

// ScanMoves implements [graveler.Moves].
func (s *Store) ScanMoves(ctx context.Context, repo *graveler.Repository, branchUID string, from, through int64) iter.Seq2[graveler.Move, error] {
	return pages("moves of branch "+branchUID+" of "+string(repo.ID), func(last *graveler.Move) ([]graveler.Move, error) {
		start := from
		if last != nil {
			if last.Time == math.MaxInt64 {
				return nil, nil
			}
			start = last.Time + 1
		}
		return rows(ctx, s, query{`SELECT at, record FROM {moves} AS m WHERE partition = $1 AND branch_uid = $2 AND at >= $3 AND at <= $4 ORDER BY at LIMIT $5`,
			[]any{repo.Partition(), branchUID, start, through, pageRows}}, scanMove)
	})
}

func scanMove(row pgx.CollectableRow) (graveler.Move, error) {
	var at int64
	var text string
	if err := row.Scan(&at, &text); err != nil {
		return graveler.Move{}, err
	}
	var record moveRecord
	if err := decode("moraine_moves", fmt.Sprint(at), text, &record); err != nil {
		return graveler.Move{}, err
	}
	m := graveler.Move(record)
	err := checkMove(m)
	if err == nil && m.Time != at {
		err = fmt.Errorf("holds the move at %d", m.Time)
	}
	if err != nil {
		return graveler.Move{}, corrupt("moraine_moves", fmt.Sprint(at), err)
	}
	return m, nil
}

// RemoveMove implements [graveler.Moves].
func (s *Store) RemoveMove(ctx context.Context, repo *graveler.Repository, branchUID string, at int64) error {
	_, err := s.exec(ctx, "DELETE FROM moraine_moves WHERE partition = $1 AND branch_uid = $2 AND at = $3", repo.Partition(), branchUID, at)
	return wrap(err, "remove move %d of branch %s of %s", at, branchUID, repo.ID)
}

// PutLogName implements [graveler.Moves].
func (s *Store) PutLogName(ctx context.Context, repo *graveler.Repository, branch graveler.BranchID, branchUID string) error {
	err := errors.Join(checkUID(branchUID), checkText(branch))
	if err == nil && (branch == "" || strings.Contains(string(branch), ":")) {
		err = fmt.Errorf("%w: branch %q is empty or has a colon", graveler.ErrInvalidName, branch)
	}
	if err == nil {
		_, err = s.exec(ctx, "INSERT INTO moraine_log_names (partition, branch, branch_uid) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", repo.Partition(), string(branch), branchUID)
	}
	return wrap(err, "put log name %s/%s of branch %s", repo.ID, branch, branchUID)
}

// ScanLogNames implements [graveler.Moves]. A branch that only the old program has written has a log without a row, as long as it
// has no record: its names are read first, and kept in memory.
func (s *Store) ScanLogNames(ctx context.Context, repo *graveler.Repository, branch graveler.BranchID) iter.Seq2[graveler.LogName, error] {
	return func(yield func(graveler.LogName, error) bool) {
		// In this order, since a branch goes from here to there when it is first written.
		var old []graveler.LogName
		for name, err := range s.oldLogNames(ctx, repo, branch) {
			if err != nil {
				yield(graveler.LogName{}, err)
				return
			}
			old = append(old, name)
		}
		for name, err := range s.storedLogNames(ctx, repo, branch) {
			for err == nil && len(old) > 0 && compareLogNames(old[0], name) <= 0 {
				if old[0] != name && !yield(old[0], nil) {
					return
				}
				old = old[1:]
			}
			if !yield(name, err) || err != nil {
				return
			}
		}
		for _, name := range old {
			if !yield(name, nil) {
				return
			}
		}
	}
}

func compareLogNames(a, b graveler.LogName) int {
	return cmp.Or(cmp.Compare(a.Branch, b.Branch), cmp.Compare(a.UID, b.UID))
}

const (
	oldBranches     = here + ` SELECT b.id` + branchFrom + ` WHERE b.repository_id = $1 AND (SELECT held FROM here) AND m.record IS NULL`
	oldBranch       = oldBranches + ` AND b.id = $4 AND b.id COLLATE "C" = $4`
	scanOldBranches = oldBranches + ` AND b.id COLLATE "C" > $4 ORDER BY b.id COLLATE "C" LIMIT $5`
)

// oldLogNames yields, by name, the logs of the branches that have no record: each has one.
func (s *Store) oldLogNames(ctx context.Context, repo *graveler.Repository, branch graveler.BranchID) iter.Seq2[graveler.LogName, error] {
	return pages("branches without record of "+string(repo.ID), func(last *graveler.LogName) ([]graveler.LogName, error) {
		if last == nil {
			last = &graveler.LogName{}
		}
		q := query{scanOldBranches, hereArguments(repo, string(last.Branch), pageRows)}
		if branch != "" {
			q = query{oldBranch, hereArguments(repo, string(branch))}
		}
		return rows(ctx, s, q, func(row pgx.CollectableRow) (graveler.LogName, error) {
			id, err := pgx.RowTo[string](row)
			return graveler.LogName{Branch: graveler.BranchID(id), UID: branchUID(repo.UID, id)}, err
		})
	})
}

func (s *Store) storedLogNames(ctx context.Context, repo *graveler.Repository, branch graveler.BranchID) iter.Seq2[graveler.LogName, error] {
	return pages("log names of "+string(repo.ID)+"/"+string(branch), func(last *graveler.LogName) ([]graveler.LogName, error) {
		if last == nil {
			last = &graveler.LogName{Branch: branch}
		}
		where := "(branch, branch_uid) > ($2, $3)"
		if branch != "" {
			where = "branch = $2 AND branch_uid > $3"
		}
		return rows(ctx, s, query{"SELECT branch, branch_uid FROM {log_names} AS m WHERE partition = $1 AND " + where + " ORDER BY branch, branch_uid LIMIT $4",
			[]any{repo.Partition(), string(last.Branch), last.UID, pageRows}}, pgx.RowToStructByPos[graveler.LogName])
	})
}

const removeLogName = `
WITH bounds AS (DELETE FROM moraine_log_bounds WHERE partition = $1 AND branch_uid = $3)
DELETE FROM moraine_log_names WHERE partition = $1 AND branch = $2 AND branch_uid = $3`

// RemoveLogName implements [graveler.Moves].
func (s *Store) RemoveLogName(ctx context.Context, repo *graveler.Repository, name graveler.LogName) error {
	_, err := s.exec(ctx, removeLogName, repo.Partition(), string(name.Branch), name.UID)
	return wrap(err, "remove log name %s/%s of branch %s", repo.ID, name.Branch, name.UID)
}

// LogStart implements [graveler.Moves].
func (s *Store) LogStart(ctx context.Context, repo *graveler.Repository, branchUID string) (int64, error) {
	b, err := s.LogBounds(ctx, repo, branchUID)
	return b.Start, err
}

// LogBounds implements [graveler.Moves].
func (s *Store) LogBounds(ctx context.Context, repo *graveler.Repository, branchUID string) (graveler.LogBounds, error) {
	b, err := row(ctx, s, query{"SELECT start, intent FROM {log_bounds} AS m WHERE partition = $1 AND branch_uid = $2", []any{repo.Partition(), branchUID}}, graveler.ErrNotFound,
		func(row pgx.CollectableRow) (b graveler.LogBounds, err error) {
			err = row.Scan(&b.Start, &b.Intent)
			b.Stamp = boundsStamp(b)
			return b, err
		})
	if errors.Is(err, graveler.ErrNotFound) {
		return graveler.LogBounds{}, nil
	}
	return b, wrap(err, "get log start of branch %s of %s", branchUID, repo.ID)
}

func boundsStamp(b graveler.LogBounds) graveler.Stamp {
	return fmt.Appendf(nil, "%d %d", b.Start, b.Intent)
}

// PutLogBounds implements [graveler.Moves].
func (s *Store) PutLogBounds(ctx context.Context, repo *graveler.Repository, branchUID string, b graveler.LogBounds) error {
	err := checkUID(branchUID)
	switch {
	case err != nil:
	case b.Intent < b.Start:
		err = invalid("intent %d before start %d", b.Intent, b.Start)
	case b.Stamp == nil:
		err = s.conditionally(ctx, "INSERT INTO moraine_log_bounds (partition, branch_uid, start, intent) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING", repo.Partition(), branchUID, b.Start, b.Intent)
	default:
		err = s.conditionally(ctx, "UPDATE moraine_log_bounds SET start = $3, intent = $4 WHERE partition = $1 AND branch_uid = $2 AND start || ' ' || intent = $5",
			repo.Partition(), branchUID, b.Start, b.Intent, stampText(b.Stamp))
	}
	return wrap(err, "put log start of branch %s of %s", branchUID, repo.ID)
}

// PutLogStart implements [graveler.Moves].
func (s *Store) PutLogStart(ctx context.Context, repo *graveler.Repository, branchUID string, at int64) error {
	err := checkUID(branchUID)
	if err == nil {
		_, err = s.exec(ctx, `INSERT INTO moraine_log_bounds (partition, branch_uid, start, intent) VALUES ($1, $2, $3, $3)
			ON CONFLICT (partition, branch_uid) DO UPDATE SET start = excluded.start, intent = excluded.intent`, repo.Partition(), branchUID, at)
	}
	return wrap(err, "put log start of branch %s of %s", branchUID, repo.ID)
}
