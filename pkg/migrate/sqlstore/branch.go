// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
)

const (
	branchStamp = `coalesce(b.staging_token, '') || ' ' || coalesce(b.commit_id, '') || ' ' || coalesce(m.record, '')`

	branchFrom = ` FROM graveler_branches AS b
    LEFT JOIN LATERAL (SELECT record FROM {branches} AS own WHERE own.repository_id = b.repository_id AND own.id = b.id OFFSET 0) AS m ON true`
	// A branch without a record was made by the old program, and its head's date is that of its last move.
	branchRead = here + ` SELECT ` + BranchColumns + `, m.record, ` + branchStamp + `, CASE WHEN m.record IS NULL THEN
    (SELECT c.creation_date FROM graveler_commits AS c WHERE c.repository_id = b.repository_id AND c.id = b.commit_id AND c.id COLLATE "C" = b.commit_id AND ` + inRange + `) END` + branchFrom +
		` WHERE b.repository_id = $1 AND (SELECT held FROM here)`

	getBranch    = branchRead + ` AND b.id = $4 AND b.id COLLATE "C" = $4`
	scanBranches = branchRead + ` AND b.id COLLATE "C" >= $4 AND b.id <> $5 ORDER BY b.id COLLATE "C" LIMIT $6`

	// branchNow is the stamp of the branch $1/$4.
	branchNow = `(SELECT ` + branchStamp + branchFrom + ` WHERE b.repository_id = $1 AND b.id = $4 AND b.id COLLATE "C" = $4)`
)

// GetBranch implements [graveler.Branches].
func (s *Store) GetBranch(ctx context.Context, repo *graveler.Repository, id graveler.BranchID) (*graveler.Branch, error) {
	b, err := row(ctx, s, query{getBranch, hereArguments(repo, string(id))}, graveler.ErrBranchNotFound, scanBranch(repo))
	return b, wrap(err, "get branch %s/%s", repo.ID, id)
}

// ScanBranches implements [graveler.Branches].
func (s *Store) ScanBranches(ctx context.Context, repo *graveler.Repository, from graveler.BranchID) iter.Seq2[*graveler.Branch, error] {
	return pages("branches of "+string(repo.ID), func(last **graveler.Branch) ([]*graveler.Branch, error) {
		start, behind := string(from), ""
		if last != nil {
			start, behind = string((*last).ID), string((*last).ID)
		}
		return rows(ctx, s, query{scanBranches, hereArguments(repo, start, behind, pageRows)}, scanBranch(repo))
	})
}

func scanBranch(repo *graveler.Repository) pgx.RowToFunc[*graveler.Branch] {
	return func(row pgx.CollectableRow) (*graveler.Branch, error) {
		var old BranchRow
		var text *string
		var stamp string
		var headTime *time.Time
		if err := row.Scan(append(old.Targets(), &text, &stamp, &headTime)...); err != nil {
			return nil, err
		}
		var b *graveler.Branch
		var err error
		if text == nil {
			b, err = old.Branch(repo.UID, headTime)
		} else {
			b, err = old.recorded(*text)
		}
		if err != nil {
			return nil, err
		}
		b.Stamp = graveler.Stamp(stamp)
		return b, nil
	}
}

// recorded is the branch of the row and the record beside it.
func (b *BranchRow) recorded(text string) (*graveler.Branch, error) {
	var r branchRecord
	if err := decode("moraine_branches", b.ID, text, &r); err != nil {
		return nil, err
	}
	branch := &graveler.Branch{
		ID: graveler.BranchID(b.ID), UID: r.UID, State: r.State, ItemCounter: r.Counter, Base: r.Base, Hidden: r.Hidden, Protected: r.Protected, ReadOnly: r.ReadOnly, Nonce: r.Nonce,
	}
	if b.Commit != nil {
		branch.Head = graveler.CommitID(*b.Commit)
	}
	if b.Token != nil {
		branch.Token = graveler.StagingToken(*b.Token)
	}
	for _, item := range r.Items {
		branch.Items = append(branch.Items, graveler.Item(item))
	}
	if r.LastMove != nil {
		branch.LastMove = graveler.Move(*r.LastMove)
	}
	if err := checkBranch(branch); err != nil {
		return nil, corrupt("moraine_branches", b.ID, err)
	}
	return branch, nil
}

// checkBranch says why a record cannot be one, whether it was read or is to be written.
func checkBranch(b *graveler.Branch) error {
	if b.ID == "" || b.UID == "" {
		return fmt.Errorf("branch %q has UID %q", b.ID, b.UID)
	}
	if b.State != graveler.BranchLive && b.State != graveler.BranchDeleted {
		return fmt.Errorf("unknown state %d", b.State)
	}
	for i, item := range b.Items {
		if item.Token != "" && len(item.Prefix) > 0 {
			return fmt.Errorf("item %d is both a token and a deleted prefix", item.Number)
		}
		if item.Number > b.ItemCounter || i > 0 && item.Number >= b.Items[i-1].Number {
			return fmt.Errorf("item %d is not older than what was added after it", item.Number)
		}
	}
	if b.LastMove != (graveler.Move{}) {
		return checkMove(b.LastMove)
	}
	return nil
}

// PutBranch implements [graveler.Branches]. It returns graveler.ErrRepositoryNotFound where the branch is new and the repository is gone.
func (s *Store) PutBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch) (graveler.Stamp, error) {
	return s.PublishBranch(ctx, repo, b, graveler.Preceding{})
}

// PublishBranch implements [graveler.Branches]. All of it is one transaction, and one round trip.
func (s *Store) PublishBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (graveler.Stamp, error) {
	stamp, err := s.publishBranch(ctx, repo, b, before)
	return stamp, wrap(err, "put branch %s/%s", repo.ID, b.ID)
}

const (
	// A branch of the old program comes to have a log with its first write.
	writeBranchRecord = `, written AS (
    INSERT INTO moraine_branches (repository_id, id, record) SELECT $1, $4, $7 FROM old
    ON CONFLICT (repository_id, id) DO UPDATE SET record = excluded.record
)
SELECT (SELECT held FROM here), EXISTS (SELECT FROM old)`

	createBranch = here + `, old AS (
    INSERT INTO graveler_branches (repository_id, id, staging_token, commit_id) SELECT $1, $4, $5, $6 WHERE (SELECT held FROM here)
    ON CONFLICT DO NOTHING RETURNING 1
)` + writeBranchRecord

	replaceBranch = here + `, log AS (
    INSERT INTO moraine_log_names (partition, branch, branch_uid) SELECT $9, $4, $10
    WHERE ` + branchNow + ` = $8 AND (SELECT held FROM here) AND NOT EXISTS (SELECT FROM moraine_branches WHERE repository_id = $1 AND id = $4)
    ON CONFLICT DO NOTHING
), old AS (
    UPDATE graveler_branches SET staging_token = $5, commit_id = $6
    WHERE repository_id = $1 AND ` + isNamed + ` AND ` + branchNow + ` = $8 AND (SELECT held FROM here) RETURNING 1
)` + writeBranchRecord
)

func (s *Store) publishBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (graveler.Stamp, error) {
	record, err := encodeBranch(b)
	if err != nil {
		return nil, err
	}
	preceding, err := precedingWrites(repo, b, before)
	if err != nil {
		return nil, err
	}
	arguments := hereArguments(repo, string(b.ID), string(b.Token), string(b.Head), record)
	queries := append([]query{lockBranch(false, repo, b.ID), holdRepository(repo)}, preceding...)
	if b.Stamp == nil {
		queries = append(queries, query{createBranch, arguments})
	} else {
		queries = append(queries, lockBranchRow(repo, b.ID), query{replaceBranch, append(arguments, stampText(b.Stamp), repo.Partition(), b.UID)})
	}
	var held, written bool
	if err := s.transact(ctx, queries, &held, &written); err != nil {
		return nil, err
	}
	switch {
	case b.Stamp == nil && !held:
		return nil, graveler.ErrRepositoryNotFound
	case !written:
		return nil, graveler.ErrChanged
	default:
		return graveler.Stamp(string(b.Token) + " " + string(b.Head) + " " + record), nil
	}
}

func precedingWrites(repo *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (writes []query, err error) {
	add := func(q query, err error) error {
		writes = append(writes, q)
		return err
	}
	if c := before.Commit; c != nil {
		if err := add(writeCommit(repo, c)); err != nil {
			return nil, wrap(err, "put commit %s of %s", c.ID, repo.ID)
		}
	}
	if m := before.Move; m != nil {
		if err := add(writeMove(repo, b.UID, *m)); err != nil {
			return nil, wrap(err, "put move %d of branch %s of %s", m.Time, b.UID, repo.ID)
		}
	}
	for _, c := range before.Cleanups {
		if err := add(writeCleanup(c)); err != nil {
			return nil, wrap(err, "put cleanup of %s", c.Partition)
		}
	}
	return writes, nil
}

// encodeBranch returns the record of a branch that is in order.
func encodeBranch(b *graveler.Branch) (string, error) {
	texts := append(moveTexts(b.LastMove), string(b.ID), b.UID, string(b.Head), string(b.Token), string(b.Base), b.Nonce)
	r := branchRecord{b.UID, b.State, b.ItemCounter, nil, b.Base, b.Hidden, b.Protected, b.ReadOnly, nil, b.Nonce}
	for _, item := range b.Items {
		r.Items = append(r.Items, itemRecord(item))
		texts = append(texts, string(item.Token))
	}
	if err := checkText(texts...); err != nil {
		return "", err
	}
	if err := checkBranch(b); err != nil {
		return "", invalid("%v", err)
	}
	if b.LastMove != (graveler.Move{}) {
		m := moveRecord(b.LastMove)
		r.LastMove = &m
	}
	return encode(r)
}

// lockBranchRow locks the row, also against whoever does not know of lockBranch.
func lockBranchRow(repo *graveler.Repository, id graveler.BranchID) query {
	return query{"SELECT FROM graveler_branches WHERE repository_id = $1 AND id = $2 AND id COLLATE \"C\" = $2 FOR NO KEY UPDATE", []any{string(repo.ID), string(id)}}
}

const removeBranch = here + `, old AS (
    DELETE FROM graveler_branches WHERE repository_id = $1 AND ` + isNamed + ` AND ` + branchNow + ` = $5 AND (SELECT held FROM here) RETURNING 1
), written AS (
    DELETE FROM moraine_branches WHERE repository_id = $1 AND id = $4 AND EXISTS (SELECT FROM old)
)
SELECT EXISTS (SELECT FROM old)`

// RemoveBranch implements [graveler.Branches].
func (s *Store) RemoveBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch) error {
	var err error
	if b.Stamp == nil {
		err = s.requireNone(func() error { _, err := s.GetBranch(ctx, repo, b.ID); return err })
	} else {
		var removed bool
		err = s.transact(ctx, []query{
			lockBranch(false, repo, b.ID), lockBranchRow(repo, b.ID), {removeBranch, hereArguments(repo, string(b.ID), stampText(b.Stamp))},
		}, &removed)
		if err == nil && !removed {
			err = graveler.ErrChanged
		}
	}
	return wrap(err, "remove branch %s/%s", repo.ID, b.ID)
}
