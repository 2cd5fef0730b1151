// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
)

// GetRepository implements [graveler.Repositories].
func (s *Store) GetRepository(ctx context.Context, id graveler.RepositoryID) (*graveler.Repository, error) {
	r, err := get(ctx, s, locateRepository(id), graveler.ErrRepositoryNotFound, decodeRepository)
	return r, wrap(err, "get repository %s", id)
}

// PutRepository implements [graveler.Repositories].
func (s *Store) PutRepository(ctx context.Context, r *graveler.Repository) (graveler.Stamp, error) {
	stamp, err := s.putRepository(ctx, r)
	return stamp, wrap(err, "put repository %s", r.ID)
}

func (s *Store) putRepository(ctx context.Context, r *graveler.Repository) (graveler.Stamp, error) {
	m := &refpb.RepositoryData{}
	if err := overStamp(r.Stamp, m); err != nil {
		return nil, err
	}
	created, err := nanoseconds(r.CreatedAt)
	if err != nil {
		return nil, err
	}
	m.Id = string(r.ID)
	m.Uid = r.UID
	m.Namespace = r.Namespace
	m.DefaultBranch = string(r.DefaultBranch)
	m.CreatedAt = created
	m.State = refpb.RepositoryState(r.State)
	m.ReadOnly = r.ReadOnly
	m.Nonce = r.Nonce
	m.Adopting = r.Adopting
	if err := checkRepository(m); err != nil {
		return nil, invalid("%v", err)
	}
	return s.put(ctx, locateRepository(r.ID), m, r.Stamp)
}

// RemoveRepository implements [graveler.Repositories].
func (s *Store) RemoveRepository(ctx context.Context, r *graveler.Repository) error {
	return wrap(s.remove(ctx, locateRepository(r.ID), r.Stamp), "remove repository %s", r.ID)
}

// ScanRepositories implements [graveler.Repositories].
func (s *Store) ScanRepositories(ctx context.Context, from graveler.RepositoryID) iter.Seq2[*graveler.Repository, error] {
	return scan(ctx, s, "repositories", repositoriesPartition, repositoriesPrefix, string(from), decodeRepository)
}

func locateRepository(id graveler.RepositoryID) location {
	return locate(repositoriesPartition, repositoriesPrefix+string(id))
}

func decodeRepository(at location, value []byte) (*graveler.Repository, error) {
	m := &refpb.RepositoryData{}
	if err := at.decode(value, m, func() string { return repositoriesPrefix + m.Id }); err != nil {
		return nil, err
	}
	if err := checkRepository(m); err != nil {
		return nil, at.corrupt(err)
	}
	return &graveler.Repository{
		ID:            graveler.RepositoryID(m.Id),
		UID:           m.Uid,
		Namespace:     m.Namespace,
		DefaultBranch: graveler.BranchID(m.DefaultBranch),
		CreatedAt:     instant(m.CreatedAt),
		State:         graveler.RepositoryState(m.State),
		ReadOnly:      m.ReadOnly,
		Nonce:         m.Nonce,
		Adopting:      m.Adopting,
		Stamp:         value,
	}, nil
}

// checkRepository says why a record cannot be one, whether it was read or is to be written.
func checkRepository(m *refpb.RepositoryData) error {
	if m.Id == "" || m.Uid == "" {
		return fmt.Errorf("repository %q has UID %q", m.Id, m.Uid)
	}
	switch graveler.RepositoryState(m.State) {
	case graveler.RepositoryCreating, graveler.RepositoryActive, graveler.RepositoryInDeletion:
		return nil
	default:
		return fmt.Errorf("unknown state %d", m.State)
	}
}

// nanoseconds is the stored form of a time: nil for the zero time, which is no instant.
func nanoseconds(t time.Time) (*int64, error) {
	if t.IsZero() {
		return nil, nil
	}
	ns := t.UnixNano()
	if !time.Unix(0, ns).Equal(t) {
		return nil, invalid("time %s is out of range", t)
	}
	return &ns, nil
}

func instant(ns *int64) time.Time {
	if ns == nil {
		return time.Time{}
	}
	return time.Unix(0, *ns).UTC()
}
