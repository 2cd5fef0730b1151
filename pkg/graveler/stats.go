// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// RepositoryStats says how much a repository holds.
type RepositoryStats struct {
	Repository RepositoryID
	Branches   int
	Tags       int
	Commits    int
	Moves      int // of all branch logs, those of deleted branches included
	// StagedEntries are uncommitted writes and deletions that no commit or compaction has folded into a tree yet. Of one key
	// there may be several, in tokens that were sealed one after another.
	StagedEntries int
	Items         int // sealed tokens and deleted prefixes
	// Entries are those at the head of the default branch, none where there is no such branch (old tables have repositories
	// without any), and Bytes the size of their keys, identities and data.
	Entries, Bytes uint64
	// Files are the ranges and metaranges in the repository's namespace, of all its trees, and FileBytes what they take there.
	Files     int
	FileBytes int64
}

// Stats counts what a repository holds. Where others write meanwhile, the numbers need not be of one moment. It costs a scan of
// the repository's records and of what is staged, a listing of its files, and reads one metarange: the number and size of the
// committed entries are what that says of those below it.
func (g *Graveler) Stats(ctx context.Context, repo RepositoryID) (s RepositoryStats, err error) {
	defer g.observe("stats", time.Now(), &err)
	r, err := g.repository(ctx, repo)
	if err != nil {
		return RepositoryStats{}, err
	}
	s.Repository = repo
	for _, count := range []func(context.Context, *Repository, *RepositoryStats) error{g.countRecords, g.countMoves, g.countFiles, g.countEntries} {
		if err := g.unlessGone(ctx, r, count(ctx, r, &s)); err != nil {
			return RepositoryStats{}, fmt.Errorf("stats of %s: %w", repo, err)
		}
	}
	return s, nil
}

func (g *Graveler) countRecords(ctx context.Context, r *Repository, s *RepositoryStats) error {
	for b, err := range g.refs.ScanBranches(ctx, r, "") {
		if err != nil {
			return err
		}
		if b.State != BranchLive {
			continue
		}
		s.Branches++
		s.Items += len(b.Items)
		for _, token := range tokens(b) {
			n, err := g.countStaged(ctx, token)
			if err != nil {
				return err
			}
			s.StagedEntries += n
		}
	}
	for _, err := range g.refs.ScanTags(ctx, r, "") {
		if err != nil {
			return err
		}
		s.Tags++
	}
	for _, err := range g.refs.ScanCommits(ctx, r, "") {
		if err != nil {
			return err
		}
		s.Commits++
	}
	return nil
}

func (g *Graveler) countStaged(ctx context.Context, token StagingToken) (n int, err error) {
	it, err := g.staging.Scan(ctx, token, nil, nil)
	if err != nil {
		return 0, err
	}
	for it.Next() {
		n++
	}
	return n, it.Close()
}

// countMoves counts what is in the logs, and the last moves of branches, which need not be.
func (g *Graveler) countMoves(ctx context.Context, r *Repository, s *RepositoryStats) error {
	for name, err := range g.refs.ScanLogNames(ctx, r, "") {
		if err != nil {
			return err
		}
		last := int64(0)
		for m, err := range g.refs.ScanMoves(ctx, r, name.UID, 0, math.MaxInt64) {
			if err != nil {
				return err
			}
			s.Moves++
			last = m.Time
		}
		b, err := g.refs.GetBranch(ctx, r, name.Branch)
		if err == nil && b.UID == name.UID && b.LastMove.Time > last {
			s.Moves++
		}
		if err != nil && !errors.Is(err, ErrBranchNotFound) {
			return err
		}
	}
	return nil
}

func (g *Graveler) countFiles(ctx context.Context, r *Repository, s *RepositoryStats) error {
	for f, err := range g.trees.ListFiles(ctx, r.Namespace) {
		if err != nil {
			return err
		}
		if f.ID != "" {
			s.Files++
			s.FileBytes += f.Size
		}
	}
	return nil
}

func (g *Graveler) countEntries(ctx context.Context, r *Repository, s *RepositoryStats) error {
	b, err := g.liveBranch(ctx, r, r.DefaultBranch)
	if errors.Is(err, ErrBranchNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	head, err := g.referred(ctx, r, b.Head)
	if err != nil {
		return err
	}
	return g.trees.Walk(ctx, r.Namespace, head.Tree, func(f TreeFile) (enter bool, err error) {
		s.Entries += f.Entries // nothing is said of the root
		s.Bytes += f.Bytes
		return f.Root, nil
	})
}
