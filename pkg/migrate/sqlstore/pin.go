// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// PutPin implements [graveler.Pins].
func (s *Store) PutPin(ctx context.Context, repo *graveler.Repository, p graveler.Pin) error {
	return wrap(s.putPin(ctx, repo, p), "put pin %q of %s", p.Owner, repo.ID)
}

func (s *Store) putPin(ctx context.Context, repo *graveler.Repository, p graveler.Pin) error {
	if p.Owner == "" {
		return invalid("pin without owner")
	}
	texts := append(slices.Collect(maps.Keys(p.Logs)), p.Owner)
	for _, tree := range p.Trees {
		texts = append(texts, string(tree))
	}
	if err := checkText(texts...); err != nil {
		return err
	}
	record, err := encode(pinRecord{p.Trees, p.Logs})
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, "INSERT INTO moraine_pins (partition, owner, record) VALUES ($1, $2, $3) ON CONFLICT (partition, owner) DO UPDATE SET record = excluded.record", repo.Partition(), p.Owner, record)
	return err
}

// RemovePin implements [graveler.Pins].
func (s *Store) RemovePin(ctx context.Context, repo *graveler.Repository, owner string) error {
	_, err := s.exec(ctx, "DELETE FROM moraine_pins WHERE partition = $1 AND owner = $2", repo.Partition(), owner)
	return wrap(err, "remove pin %q of %s", owner, repo.ID)
}

// ScanPins implements [graveler.Pins].
func (s *Store) ScanPins(ctx context.Context, repo *graveler.Repository) iter.Seq2[graveler.Pin, error] {
	return pages("pins of "+string(repo.ID), func(last *graveler.Pin) ([]graveler.Pin, error) {
		if last == nil {
			last = &graveler.Pin{}
		}
		return rows(ctx, s, query{"SELECT owner, record FROM {pins} AS m WHERE partition = $1 AND owner > $2 ORDER BY owner LIMIT $3", []any{repo.Partition(), last.Owner, pageRows}}, scanPin)
	})
}

func scanPin(row pgx.CollectableRow) (p graveler.Pin, err error) {
	var text string
	if err := row.Scan(&p.Owner, &text); err != nil {
		return graveler.Pin{}, err
	}
	var record pinRecord
	if err := decode("moraine_pins", p.Owner, text, &record); err != nil {
		return graveler.Pin{}, err
	}
	p.Trees, p.Logs = record.Trees, record.Logs
	return p, nil
}

const expirationRead = "SELECT commit_id, at, pending FROM {expirations} AS m WHERE partition = $1"

// PutExpiration implements [graveler.Expirations].
func (s *Store) PutExpiration(ctx context.Context, repo *graveler.Repository, e graveler.Expiration) error {
	err := checkText(e.Commit)
	switch {
	case err != nil:
	case e.Stamp == nil:
		err = s.conditionally(ctx, "INSERT INTO moraine_expirations (partition, commit_id, at, pending) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING", repo.Partition(), string(e.Commit), e.At, e.Pending)
	default:
		err = s.conditionally(ctx, "UPDATE moraine_expirations SET at = $3, pending = $4 WHERE partition = $1 AND commit_id = $2 AND at || ' ' || pending = $5",
			repo.Partition(), string(e.Commit), e.At, e.Pending, stampText(e.Stamp))
	}
	return wrap(err, "put expiration of commit %s of %s", e.Commit, repo.ID)
}

// GetExpiration implements [graveler.Expirations].
func (s *Store) GetExpiration(ctx context.Context, repo *graveler.Repository, id graveler.CommitID) (graveler.Expiration, error) {
	e, err := row(ctx, s, query{expirationRead + " AND commit_id = $2", []any{repo.Partition(), string(id)}}, graveler.ErrNotFound, scanExpiration)
	return e, wrap(err, "get expiration of commit %s of %s", id, repo.ID)
}

// RemoveExpiration implements [graveler.Expirations].
func (s *Store) RemoveExpiration(ctx context.Context, repo *graveler.Repository, e graveler.Expiration) error {
	var err error
	if e.Stamp == nil {
		err = s.requireNone(func() error { _, err := s.GetExpiration(ctx, repo, e.Commit); return err })
	} else {
		err = s.conditionally(ctx, "DELETE FROM moraine_expirations WHERE partition = $1 AND commit_id = $2 AND at || ' ' || pending = $3", repo.Partition(), string(e.Commit), stampText(e.Stamp))
	}
	return wrap(err, "remove expiration of commit %s of %s", e.Commit, repo.ID)
}

// ScanExpirations implements [graveler.Expirations].
func (s *Store) ScanExpirations(ctx context.Context, repo *graveler.Repository) iter.Seq2[graveler.Expiration, error] {
	return pages("expirations of "+string(repo.ID), func(last *graveler.Expiration) ([]graveler.Expiration, error) {
		if last == nil {
			last = &graveler.Expiration{}
		}
		return rows(ctx, s, query{expirationRead + " AND commit_id > $2 ORDER BY commit_id LIMIT $3", []any{repo.Partition(), string(last.Commit), pageRows}}, scanExpiration)
	})
}

func scanExpiration(row pgx.CollectableRow) (e graveler.Expiration, err error) {
	err = row.Scan(&e.Commit, &e.At, &e.Pending)
	e.Stamp = fmt.Appendf(nil, "%d %t", e.At, e.Pending)
	return e, err
}
