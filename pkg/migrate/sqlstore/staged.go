// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Limits implements [graveler.Staging].
func (s *Store) Limits() graveler.StagingLimits {
	return graveler.StagingLimits{Writes: 1000, Bytes: 4 << 20, CheapFences: true}
}

// Get implements [graveler.Staging].
func (s *Store) Get(ctx context.Context, token graveler.StagingToken, key graveler.Key) (graveler.Staged, error) {
	found, err := rows(ctx, s, query{"SELECT key, identity, data FROM graveler_staging_kv WHERE staging_token = $1 AND key = $2", []any{string(token), []byte(key)}}, pgx.RowToStructByPos[StagedRow])
	if err != nil {
		return graveler.Staged{}, fmt.Errorf("get staged entry: %w", err)
	}
	if len(found) == 0 {
		return graveler.Staged{}, nil
	}
	e, err := found[0].Entry()
	if err != nil {
		return graveler.Staged{}, fmt.Errorf("get staged entry: %w", err)
	}
	return graveler.Staged{Value: e.Value, Stamp: found[0].stamp()}, nil // the stamp is a copy
}

// Apply implements [graveler.Staging]. A value without identity is graveler.ErrInvalidValue. With no writes it only checks the
// fence. It takes one round trip, but several where some of several writes are conditional, or where it is checked that nothing
// is staged.
func (s *Store) Apply(ctx context.Context, fence *graveler.Fence, token graveler.StagingToken, writes []graveler.StagedWrite) error {
	err := s.checkApply(fence, token, writes)
	if err == nil {
		err = s.apply(ctx, fence, token, writes)
	}
	return wrap(err, "stage %d entries under %s", len(writes), token)
}

func (s *Store) checkApply(fence *graveler.Fence, token graveler.StagingToken, writes []graveler.StagedWrite) error {
	limits := s.Limits()
	switch {
	case token == "":
		return invalid("no staging token")
	case fence != nil && fence.Branch.Stamp == nil:
		return invalid("fence without the stamp of its branch")
	case len(writes) > limits.Writes:
		return fmt.Errorf("%w: %d writes, at most %d", graveler.ErrTooLarge, len(writes), limits.Writes)
	}
	total, seen := 0, make(map[string]struct{}, len(writes))
	for _, w := range writes {
		size := len(w.Key)
		switch {
		case w.Check:
			size += len(w.If)
		case w.Value != nil:
			size += len(w.Value.Identity) + len(w.Value.Data)
		}
		total += size
		_, twice := seen[string(w.Key)]
		seen[string(w.Key)] = struct{}{}
		switch {
		case len(w.Key) == 0:
			return invalid("an entry without key")
		case w.Value != nil && len(w.Value.Identity) == 0:
			return invalid("entry %q has no identity", w.Key)
		case twice:
			return invalid("key %q stands twice", w.Key)
		case len(w.Key) > kv.MaxKeyBytes, size > kv.MaxValueBytes, total > limits.Bytes:
			return fmt.Errorf("%w: entry %.100q, with %d bytes of %d", graveler.ErrTooLarge, w.Key, size, total)
		}
	}
	return checkText(token)
}

// stagedRows are the columns of what is to be written, in the order of keys.
type stagedRows struct {
	keys, identities, data [][]byte
	// What was read, where that is a condition.
	wasIdentities, wasData [][]byte
}

func (r *stagedRows) add(row, was StagedRow) {
	r.keys, r.identities, r.data = append(r.keys, row.Key), append(r.identities, row.Identity), append(r.data, row.Data)
	r.wasIdentities, r.wasData = append(r.wasIdentities, was.Identity), append(r.wasData, was.Data)
}

// rowOf is the row that a write makes.
func rowOf(w graveler.StagedWrite) StagedRow {
	row := StagedRow{Key: w.Key}
	if w.Value != nil {
		row.Identity, row.Data = w.Value.Identity, w.Value.Data
		if row.Data == nil {
			row.Data = []byte{} // nil would be null
		}
	}
	return row
}

// classes are writes by what they are conditional on: nothing, that nothing is there, or what is there. A row that is only
// checked replaces itself; one whose absence is, is created and removed again, since only a row that is there can be locked.
type classes struct {
	sets, creates, replaces stagedRows
	removed                 [][]byte // keys
}

func classify(writes []graveler.StagedWrite) (c classes, err error) {
	sorted := slices.SortedFunc(slices.Values(writes), func(a, b graveler.StagedWrite) int { return bytes.Compare(a.Key, b.Key) })
	for _, w := range sorted {
		switch {
		case !w.Conditional:
			c.sets.add(rowOf(w), StagedRow{})
		case w.If == nil:
			c.creates.add(rowOf(w), StagedRow{})
			if w.Check {
				c.removed = append(c.removed, w.Key)
			}
		default:
			was, err := readStamp(w.If)
			if err != nil {
				return classes{}, err
			}
			row := rowOf(w)
			if w.Check {
				row.Identity, row.Data = was.Identity, was.Data
			}
			c.replaces.add(row, was)
		}
	}
	return c, nil
}

// fenced is the beginning of a statement that relies on a branch record: $1/$2 with the stamp $3, which is NULL where nothing is relied on.
const fenced = `
WITH fence AS (
    SELECT $3::text IS NULL OR coalesce((SELECT ` + branchStamp + branchFrom + ` WHERE b.repository_id = $1 AND b.id = $2 AND b.id COLLATE "C" = $2) = $3, false) AS held
)`

const (
	insertStaged = fenced + `, written AS (
    INSERT INTO graveler_staging_kv (staging_token, key, identity, data)
    SELECT $4::text, w.key, w.identity, w.data FROM unnest($5::bytea[], $6::bytea[], $7::bytea[]) AS w(key, identity, data)
    WHERE (SELECT held FROM fence) ORDER BY w.key
    ON CONFLICT (staging_token, key) DO `
	countStaged = ` RETURNING 1
) SELECT held, (SELECT count(*) FROM written) FROM fence`

	setStaged     = insertStaged + `UPDATE SET identity = excluded.identity, data = excluded.data` + countStaged
	createStaged  = insertStaged + `NOTHING` + countStaged
	replaceStaged = fenced + `, written AS (
    UPDATE graveler_staging_kv AS s SET identity = w.identity, data = w.data
    FROM unnest($5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[]) AS w(key, identity, data, was_identity, was_data)
    WHERE (SELECT held FROM fence) AND s.staging_token = $4::text AND s.key = ANY($5) AND s.key = w.key
        AND s.identity IS NOT DISTINCT FROM w.was_identity AND s.data IS NOT DISTINCT FROM w.was_data` + countStaged
	removeStaged = fenced + `, written AS (
    DELETE FROM graveler_staging_kv WHERE (SELECT held FROM fence) AND staging_token = $4::text AND key = ANY($5::bytea[])` + countStaged
	checkFence = fenced + ` SELECT held, 0::bigint FROM fence`
)

// step is a statement of an Apply and how many rows it must write.
type step struct {
	query
	expected int
}

func (s *Store) apply(ctx context.Context, fence *graveler.Fence, token graveler.StagingToken, writes []graveler.StagedWrite) error {
	c, err := classify(writes)
	if err != nil {
		return err
	}
	arguments := []any{"", "", nil}
	var lock []query
	if fence != nil {
		arguments = []any{string(fence.Repository.ID), string(fence.Branch.ID), stampText(fence.Branch.Stamp)}
		if arguments[2] == (*string)(nil) {
			return graveler.ErrFenceFailed
		}
		lock = []query{lockBranch(true, fence.Repository, fence.Branch.ID)}
	}
	steps := c.steps(arguments, token)
	if len(steps) > 1 || len(c.creates.keys)+len(c.replaces.keys) > 0 && len(writes) > 1 {
		return s.applyInSteps(ctx, lock, steps)
	}
	var held bool
	var written int
	if err := s.transact(ctx, append(lock, steps[0].query), &held, &written); err != nil {
		return err
	}
	return steps[0].outcome(held, written)
}

// steps are the statements for writes, at least one.
func (c *classes) steps(fence []any, token graveler.StagingToken) (steps []step) {
	for _, class := range []struct {
		sql  string
		rows *stagedRows
	}{{setStaged, &c.sets}, {createStaged, &c.creates}, {replaceStaged, &c.replaces}} {
		r := class.rows
		if len(r.keys) == 0 {
			continue
		}
		arguments := append(slices.Clone(fence), string(token), r.keys, r.identities, r.data)
		if r == &c.replaces {
			arguments = append(arguments, r.wasIdentities, r.wasData)
		}
		steps = append(steps, step{query{class.sql, arguments}, len(r.keys)})
	}
	if len(c.removed) > 0 {
		steps = append(steps, step{query{removeStaged, append(slices.Clone(fence), string(token), c.removed)}, len(c.removed)})
	}
	if len(steps) == 0 {
		steps = []step{{query{checkFence, fence}, 0}}
	}
	return steps
}

func (s step) outcome(held bool, written int) error {
	switch {
	case !held:
		return graveler.ErrFenceFailed
	case written != s.expected:
		return graveler.ErrChanged
	default:
		return nil
	}
}

// applyInSteps performs all steps in one transaction, or none.
func (s *Store) applyInSteps(ctx context.Context, lock []query, steps []step) error {
	return s.change(ctx, func() error {
		return s.write(ctx, func(conn *pgx.Conn) error {
			return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				for _, q := range append([]query{{sql: guard}}, lock...) {
					if _, err := tx.Exec(ctx, q.sql, q.arguments...); err != nil {
						return err
					}
				}
				for _, step := range steps {
					var held bool
					var written int
					err := tx.QueryRow(ctx, s.tables.Replace(step.sql), step.arguments...).Scan(&held, &written)
					if err == nil {
						err = step.outcome(held, written)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
}
