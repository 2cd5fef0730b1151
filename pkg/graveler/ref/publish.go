// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

// PublishBranch implements [graveler.Branches]. It costs one call of an engine that can write all of it in one step ([kv.Publisher]).
func (s *Store) PublishBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (graveler.Stamp, error) {
	stamp, err := s.publishBranch(ctx, repo, b, before)
	return stamp, wrap(err, "put branch %s/%s", repo.ID, b.ID)
}

func (s *Store) publishBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (graveler.Stamp, error) {
	m, err := branchData(b)
	if err != nil {
		return nil, err
	}
	last, err := recordOf(locateBranch(repo, b.ID), m)
	if err != nil {
		return nil, err
	}
	records, err := precedingRecords(repo, b, before)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		err = s.kv.SetIf(ctx, last.Partition, last.Key, last.Value, condition(b.Stamp))
	} else {
		err = kv.Publish(ctx, s.kv, records, last, condition(b.Stamp))
	}
	if err != nil {
		return nil, Outcome(err)
	}
	return last.Value, nil
}

func precedingRecords(repo *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (records []kv.Record, err error) {
	add := func(at location, m proto.Message) error {
		r, err := recordOf(at, m)
		records = append(records, r)
		return err
	}
	if c := before.Commit; c != nil {
		m, err := commitData(c)
		if err == nil {
			err = add(locateCommit(repo, c.ID), m)
		}
		if err != nil {
			return nil, wrap(err, "put commit %s of %s", c.ID, repo.ID)
		}
	}
	if before.Move != nil {
		at, m, err := moveRecord(repo, b.UID, *before.Move)
		if err == nil {
			err = add(at, m)
		}
		if err != nil {
			return nil, wrap(err, "put move %d of branch %s of %s", before.Move.Time, b.UID, repo.ID)
		}
	}
	for _, c := range before.Cleanups {
		if err := add(locate(cleanupsPartition, c.Partition), cleanupData(c)); err != nil {
			return nil, wrap(err, "put cleanup of %s", c.Partition)
		}
	}
	return records, nil
}

func recordOf(at location, m proto.Message) (kv.Record, error) {
	value, err := marshal(m)
	return kv.Record{Partition: at.partition, Key: at.key, Value: value}, err
}
