// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"context"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
)

// GetCommit implements [graveler.Commits].
func (s *Store) GetCommit(ctx context.Context, repo *graveler.Repository, id graveler.CommitID) (*graveler.Commit, error) {
	c, err := get(ctx, s, locateCommit(repo, id), graveler.ErrCommitNotFound, decodeCommit)
	return c, wrap(err, "get commit %s of %s", id, repo.ID)
}

// PutCommit implements [graveler.Commits].
func (s *Store) PutCommit(ctx context.Context, repo *graveler.Repository, c *graveler.Commit) error {
	return wrap(s.putCommit(ctx, repo, c), "put commit %s of %s", c.ID, repo.ID)
}

func (s *Store) putCommit(ctx context.Context, repo *graveler.Repository, c *graveler.Commit) error {
	m, err := commitData(c)
	if err != nil {
		return err
	}
	return s.set(ctx, locateCommit(repo, c.ID), m)
}

func commitData(c *graveler.Commit) (*refpb.CommitData, error) {
	if c.ID == "" {
		return nil, invalid("commit without ID")
	}
	created, err := nanoseconds(c.CreatedAt)
	if err != nil {
		return nil, err
	}
	m := &refpb.CommitData{
		Id:         string(c.ID),
		Version:    int64(c.Version),
		Committer:  c.Committer,
		Message:    c.Message,
		Tree:       string(c.Tree),
		CreatedAt:  created,
		Metadata:   c.Metadata,
		Generation: c.Generation,
		LogTime:    c.LogTime,
		Nonce:      c.Nonce,
	}
	for _, p := range c.Parents {
		m.Parents = append(m.Parents, string(p))
	}
	return m, nil
}

// ScanCommits implements [graveler.Commits].
func (s *Store) ScanCommits(ctx context.Context, repo *graveler.Repository, from graveler.CommitID) iter.Seq2[*graveler.Commit, error] {
	return scan(ctx, s, "commits of "+string(repo.ID), repo.Partition(), commitsPrefix, string(from), decodeCommit)
}

func locateCommit(repo *graveler.Repository, id graveler.CommitID) location {
	return locate(repo.Partition(), commitsPrefix+string(id))
}

func decodeCommit(at location, value []byte) (*graveler.Commit, error) {
	m := &refpb.CommitData{}
	if err := at.decode(value, m, func() string { return commitsPrefix + m.Id }); err != nil {
		return nil, err
	}
	c := &graveler.Commit{
		ID:         graveler.CommitID(m.Id),
		Version:    int(m.Version),
		Committer:  m.Committer,
		Message:    m.Message,
		Tree:       graveler.MetaRangeID(m.Tree),
		CreatedAt:  instant(m.CreatedAt),
		Metadata:   m.Metadata,
		Generation: m.Generation,
		LogTime:    m.LogTime,
		Nonce:      m.Nonce,
	}
	for _, p := range m.Parents {
		c.Parents = append(c.Parents, graveler.CommitID(p))
	}
	return c, nil
}
