// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"context"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

var _ graveler.BatchRefs = (*Store)(nil)

// PutCommits implements [graveler.BatchRefs].
func (s *Store) PutCommits(ctx context.Context, repo *graveler.Repository, commits []*graveler.Commit) error {
	writes := make([]kv.Write, len(commits))
	for i, c := range commits {
		m, err := commitData(c)
		if err == nil {
			writes[i].Key = locateCommit(repo, c.ID).key
			writes[i].Value, err = marshal(m)
		}
		if err == nil {
			err = Outcome(s.kv.Limits().CheckSet([]byte(repo.Partition()), writes[i].Key, writes[i].Value))
		}
		if err != nil {
			return wrap(err, "put commit %s of %s", c.ID, repo.ID)
		}
	}
	return wrap(s.setMany(ctx, repo, writes), "put %d commits of %s", len(commits), repo.ID)
}

// PutMoves implements [graveler.BatchRefs].
func (s *Store) PutMoves(ctx context.Context, repo *graveler.Repository, branchUID string, moves []graveler.Move) error {
	writes := make([]kv.Write, len(moves))
	for i, move := range moves {
		at, m, err := moveRecord(repo, branchUID, move)
		if err == nil {
			writes[i].Key = at.key
			writes[i].Value, err = marshal(m)
		}
		if err != nil {
			return wrap(err, "put move %d of branch %s of %s", move.Time, branchUID, repo.ID)
		}
	}
	return wrap(s.setMany(ctx, repo, writes), "put %d moves of branch %s of %s", len(moves), branchUID, repo.ID)
}

func (s *Store) setMany(ctx context.Context, repo *graveler.Repository, writes []kv.Write) error {
	return Outcome(kv.SetMany(ctx, s.kv, []byte(repo.Partition()), writes))
}
