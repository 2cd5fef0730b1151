// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"context"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
)

// PutPin implements [graveler.Pins].
func (s *Store) PutPin(ctx context.Context, repo *graveler.Repository, p graveler.Pin) error {
	return wrap(s.putPin(ctx, repo, p), "put pin %q of %s", p.Owner, repo.ID)
}

func (s *Store) putPin(ctx context.Context, repo *graveler.Repository, p graveler.Pin) error {
	if p.Owner == "" {
		return invalid("pin without owner")
	}
	m := &refpb.PinData{Owner: p.Owner, Logs: p.Logs}
	for _, tree := range p.Trees {
		m.Trees = append(m.Trees, string(tree))
	}
	return s.set(ctx, locatePin(repo, p.Owner), m)
}

// RemovePin implements [graveler.Pins].
func (s *Store) RemovePin(ctx context.Context, repo *graveler.Repository, owner string) error {
	return wrap(s.delete(ctx, locatePin(repo, owner)), "remove pin %q of %s", owner, repo.ID)
}

// ScanPins implements [graveler.Pins].
func (s *Store) ScanPins(ctx context.Context, repo *graveler.Repository) iter.Seq2[graveler.Pin, error] {
	return scan(ctx, s, "pins of "+string(repo.ID), repo.Partition(), pinsPrefix, "", decodePin)
}

func locatePin(repo *graveler.Repository, owner string) location {
	return locate(repo.Partition(), pinsPrefix+owner)
}

func decodePin(at location, value []byte) (graveler.Pin, error) {
	m := &refpb.PinData{}
	if err := at.decode(value, m, func() string { return pinsPrefix + m.Owner }); err != nil {
		return graveler.Pin{}, err
	}
	p := graveler.Pin{Owner: m.Owner, Logs: m.Logs}
	for _, tree := range m.Trees {
		p.Trees = append(p.Trees, graveler.MetaRangeID(tree))
	}
	return p, nil
}

// PutExpiration implements [graveler.Expirations].
func (s *Store) PutExpiration(ctx context.Context, repo *graveler.Repository, e graveler.Expiration) error {
	m := &refpb.ExpirationData{Commit: string(e.Commit), At: e.At, Pending: e.Pending}
	_, err := s.put(ctx, locateExpiration(repo, e.Commit), m, e.Stamp)
	return wrap(err, "put expiration of commit %s of %s", e.Commit, repo.ID)
}

// GetExpiration implements [graveler.Expirations].
func (s *Store) GetExpiration(ctx context.Context, repo *graveler.Repository, id graveler.CommitID) (graveler.Expiration, error) {
	e, err := get(ctx, s, locateExpiration(repo, id), graveler.ErrNotFound, decodeExpiration)
	return e, wrap(err, "get expiration of commit %s of %s", id, repo.ID)
}

// RemoveExpiration implements [graveler.Expirations].
func (s *Store) RemoveExpiration(ctx context.Context, repo *graveler.Repository, e graveler.Expiration) error {
	return wrap(s.remove(ctx, locateExpiration(repo, e.Commit), e.Stamp), "remove expiration of commit %s of %s", e.Commit, repo.ID)
}

// ScanExpirations implements [graveler.Expirations].
func (s *Store) ScanExpirations(ctx context.Context, repo *graveler.Repository) iter.Seq2[graveler.Expiration, error] {
	return scan(ctx, s, "expirations of "+string(repo.ID), repo.Partition(), expiryPrefix, "", decodeExpiration)
}

func locateExpiration(repo *graveler.Repository, id graveler.CommitID) location {
	return locate(repo.Partition(), expiryPrefix+string(id))
}

func decodeExpiration(at location, value []byte) (graveler.Expiration, error) {
	m := &refpb.ExpirationData{}
	err := at.decode(value, m, func() string { return expiryPrefix + m.Commit })
	return graveler.Expiration{Commit: graveler.CommitID(m.Commit), At: m.At, Pending: m.Pending, Stamp: value}, err
}
