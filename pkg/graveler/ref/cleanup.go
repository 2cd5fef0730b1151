// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"context"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
	"github.com/moraine-store/moraine/pkg/kv"
)

// PutCleanup implements [graveler.Cleanups].
func (s *Store) PutCleanup(ctx context.Context, c graveler.Cleanup) error {
	return wrap(s.set(ctx, locate(cleanupsPartition, c.Partition), cleanupData(c)), "put cleanup of %s", c.Partition)
}

func cleanupData(c graveler.Cleanup) *refpb.CleanupData {
	return &refpb.CleanupData{
		Partition:     c.Partition,
		Registered:    c.Registered,
		RepositoryId:  string(c.RepositoryID),
		RepositoryUid: c.RepositoryUID,
		Branch:        string(c.Branch),
		Namespace:     c.Namespace,
	}
}

// RemoveCleanup implements [graveler.Cleanups]. Where there is none it does nothing.
func (s *Store) RemoveCleanup(ctx context.Context, partition string) error {
	err := s.kv.Delete(ctx, []byte(cleanupsPartition), []byte(partition))
	return wrap(Outcome(err), "remove cleanup of %s", partition)
}

// ScanCleanups implements [graveler.Cleanups].
func (s *Store) ScanCleanups(ctx context.Context) iter.Seq2[graveler.Cleanup, error] {
	return scan(ctx, s, "cleanups", cleanupsPartition, "", "", decodeCleanup)
}

// DropPartition implements [graveler.Cleanups]. An engine that cannot do it at once removes key by key.
func (s *Store) DropPartition(ctx context.Context, partition string) error {
	return wrap(Outcome(kv.DropPartition(ctx, s.kv, []byte(partition))), "drop partition %s", partition)
}

func decodeCleanup(at location, value []byte) (graveler.Cleanup, error) {
	m := &refpb.CleanupData{}
	if err := at.decode(value, m, func() string { return m.Partition }); err != nil {
		return graveler.Cleanup{}, err
	}
	return graveler.Cleanup{
		Partition:     m.Partition,
		Registered:    m.Registered,
		RepositoryID:  graveler.RepositoryID(m.RepositoryId),
		RepositoryUID: m.RepositoryUid,
		Branch:        graveler.BranchID(m.Branch),
		Namespace:     m.Namespace,
	}, nil
}
