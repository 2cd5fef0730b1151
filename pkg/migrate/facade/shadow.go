// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"context"
	"fmt"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Stamps are each side's own form of a record, and say nothing about the other's. The functions here leave them out.

func plainRepository(r *graveler.Repository) any {
	if r == nil {
		return nil
	}
	c := *r
	c.Stamp, c.CreatedAt = nil, c.CreatedAt.UTC()
	return &c
}

func plainBranch(b *graveler.Branch) any {
	if b == nil {
		return nil
	}
	c := b.Clone()
	c.Stamp = nil
	return c
}

func plainTag(t *graveler.Tag) any {
	if t == nil {
		return nil
	}
	c := *t
	c.Stamp = nil
	return &c
}

func plainCommit(c *graveler.Commit) any {
	if c == nil {
		return nil
	}
	d := c.Clone()
	d.CreatedAt = d.CreatedAt.UTC()
	if len(d.Metadata) == 0 {
		d.Metadata = nil
	}
	if len(d.Parents) == 0 {
		d.Parents = nil
	}
	return d
}

func plain[T any](item T) any { return item }

type shadowRepositories struct {
	graveler.Repositories
	other  graveler.Repositories
	report report
}

func (s shadowRepositories) GetRepository(ctx context.Context, id graveler.RepositoryID) (*graveler.Repository, error) {
	r, err := s.Repositories.GetRepository(ctx, id)
	o, otherErr := s.other.GetRepository(ctx, id)
	s.report.compare(ctx, "repository "+string(id), plainRepository(r), plainRepository(o), err, otherErr)
	return r, err
}

func (s shadowRepositories) ScanRepositories(ctx context.Context, from graveler.RepositoryID) iter.Seq2[*graveler.Repository, error] {
	return alongside(ctx, s.report, "repositories", s.Repositories.ScanRepositories(ctx, from), s.other.ScanRepositories(ctx, from), plainRepository)
}

type shadowBranches struct {
	graveler.Branches
	other  graveler.Branches
	report report
}

func (s shadowBranches) GetBranch(ctx context.Context, repo *graveler.Repository, id graveler.BranchID) (*graveler.Branch, error) {
	b, err := s.Branches.GetBranch(ctx, repo, id)
	o, otherErr := s.other.GetBranch(ctx, repo, id)
	s.report.compare(ctx, fmt.Sprintf("branch %s/%s", repo.ID, id), plainBranch(b), plainBranch(o), err, otherErr)
	return b, err
}

func (s shadowBranches) ScanBranches(ctx context.Context, repo *graveler.Repository, from graveler.BranchID) iter.Seq2[*graveler.Branch, error] {
	return alongside(ctx, s.report, "branches of "+string(repo.ID), s.Branches.ScanBranches(ctx, repo, from), s.other.ScanBranches(ctx, repo, from), plainBranch)
}

type shadowMoves struct {
	graveler.Moves
	other  graveler.Moves
	report report
}

func (s shadowMoves) ScanMoves(ctx context.Context, repo *graveler.Repository, uid string, from, through int64) iter.Seq2[graveler.Move, error] {
	return alongside(ctx, s.report, fmt.Sprintf("log of branch %s of %s", uid, repo.ID), s.Moves.ScanMoves(ctx, repo, uid, from, through), s.other.ScanMoves(ctx, repo, uid, from, through), plain)
}

type shadowCommits struct {
	graveler.Commits
	other  graveler.Commits
	report report
}

func (s shadowCommits) GetCommit(ctx context.Context, repo *graveler.Repository, id graveler.CommitID) (*graveler.Commit, error) {
	c, err := s.Commits.GetCommit(ctx, repo, id)
	o, otherErr := s.other.GetCommit(ctx, repo, id)
	s.report.compare(ctx, fmt.Sprintf("commit %s of %s", id, repo.ID), plainCommit(c), plainCommit(o), err, otherErr)
	return c, err
}

func (s shadowCommits) ScanCommits(ctx context.Context, repo *graveler.Repository, from graveler.CommitID) iter.Seq2[*graveler.Commit, error] {
	return alongside(ctx, s.report, "commits of "+string(repo.ID), s.Commits.ScanCommits(ctx, repo, from), s.other.ScanCommits(ctx, repo, from), plainCommit)
}

type shadowTags struct {
	graveler.Tags
	other  graveler.Tags
	report report
}

func (s shadowTags) GetTag(ctx context.Context, repo *graveler.Repository, id graveler.TagID) (*graveler.Tag, error) {
	t, err := s.Tags.GetTag(ctx, repo, id)
	o, otherErr := s.other.GetTag(ctx, repo, id)
	s.report.compare(ctx, fmt.Sprintf("tag %s/%s", repo.ID, id), plainTag(t), plainTag(o), err, otherErr)
	return t, err
}

func (s shadowTags) ScanTags(ctx context.Context, repo *graveler.Repository, from graveler.TagID) iter.Seq2[*graveler.Tag, error] {
	return alongside(ctx, s.report, "tags of "+string(repo.ID), s.Tags.ScanTags(ctx, repo, from), s.other.ScanTags(ctx, repo, from), plainTag)
}

// shadowStaging compares single reads. What a scan finds is compared by migrate's verify, at rest.
type shadowStaging struct {
	graveler.Staging
	other  graveler.Staging
	report report
}

func (s shadowStaging) Get(ctx context.Context, token graveler.StagingToken, key graveler.Key) (graveler.Staged, error) {
	v, err := s.Staging.Get(ctx, token, key)
	o, otherErr := s.other.Get(ctx, token, key)
	s.report.compare(ctx, fmt.Sprintf("%q staged under %s", key, token), plainStaged(v), plainStaged(o), err, otherErr)
	return v, err
}

// plainStaged tells a tombstone from nothing without the stamp.
func plainStaged(s graveler.Staged) any {
	return struct {
		Value  *graveler.Value
		Staged bool
	}{s.Value, s.Stamp != nil}
}
