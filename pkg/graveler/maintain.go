// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// MaintainReport counts what Maintain did, and what it left for another time.
type MaintainReport struct {
	RepositoriesDeleted int // deletions that were finished
	CreationsUndone     int // of repositories, which were cut off
	CreationsWaiting    int // that have not finished, and may yet: the grace period has not passed
	BranchesDeleted     int // deletions of branches that were finished
	BranchesCompacted   int
	PartitionsDropped   int // tokens, and partitions of deleted repositories
	PartitionsWaiting   int // those that are kept until the grace period has passed
	PartitionsListed    int // those that a record lists all the same, or may list, since it could not be read
}

// Maintain does the store's upkeep once: it finishes deletions that were cut off, undoes creations that were, folds long lists of
// uncommitted changes, and drops what nothing lists any more and is older than the grace period. Any number of processes may run
// it at the same time. An error in one place does not keep it from the others; all are returned.
func (g *Graveler) Maintain(ctx context.Context) (report MaintainReport, err error) {
	defer g.observe("maintain", time.Now(), &err)
	var errs []error
	note := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	for r, err := range g.refs.ScanRepositories(ctx, "") {
		if err != nil {
			note("maintain: list repositories", err)
			break
		}
		note("maintain repository "+string(r.ID), g.maintainRepository(ctx, r, &report))
	}
	for c, err := range g.refs.ScanCleanups(ctx) {
		if err != nil {
			note("maintain: list partitions to drop", err)
			break
		}
		note("maintain: drop partition "+c.Partition, g.clean(ctx, c, &report))
	}
	return report, errors.Join(errs...)
}

func (g *Graveler) maintainRepository(ctx context.Context, r *Repository, report *MaintainReport) error {
	switch {
	case r.State == RepositoryInDeletion:
		return counted(g.finishRepositoryDeletion(ctx, r), &report.RepositoriesDeleted)
	case r.State == RepositoryCreating:
		undone, err := g.undoCreation(ctx, r)
		switch {
		case undone && err == nil:
			report.CreationsUndone++
		case err == nil:
			report.CreationsWaiting++
		}
		return err
	}
	rules, err := g.protectionRules(ctx, r)
	if err != nil {
		return err
	}
	for b, err := range g.refs.ScanBranches(ctx, r, "") {
		switch {
		case err != nil:
			return err
		case b.State == BranchDeleted:
			if err := g.finishBranchDeletion(ctx, r, b); err != nil {
				return err
			}
			report.BranchesDeleted++
		case b.Protected != rules.forbid(b.ID) || b.ReadOnly != r.ReadOnly: // a change of protection was cut off
			if err := g.protect(ctx, r, b.ID); err != nil && !errors.Is(err, ErrBranchNotFound) {
				return err
			}
		case len(b.Items) >= compactItems && !r.ReadOnly:
			_, err := g.compact(ctx, r, b.ID, compactItems)
			if errors.Is(err, ErrBranchNotFound) {
				continue // it was deleted meanwhile
			}
			if err != nil {
				return err
			}
			report.BranchesCompacted++
		}
	}
	return nil
}

func counted(err error, n *int) error {
	if err == nil {
		*n++
	}
	return err
}

// cleanupOf is the registration of a token among the partitions to drop. It is written before a record stops listing the token.
func (g *Graveler) cleanupOf(repo *Repository, branch BranchID, token StagingToken) Cleanup {
	return Cleanup{
		Partition: string(token), Registered: g.now().UnixNano(), RepositoryID: repo.ID, RepositoryUID: repo.UID, Branch: branch,
	}
}

// clean drops a registered partition if the grace period has passed and nothing lists it. The registration of one that is still listed stays: whoever
// registered it may be about to publish the record that lists it no more.
func (g *Graveler) clean(ctx context.Context, c Cleanup, report *MaintainReport) error {
	if g.now().Sub(time.Unix(0, c.Registered)) < g.grace {
		report.PartitionsWaiting++
		return nil
	}
	if listed, err := g.isListed(ctx, c); listed || err != nil {
		report.PartitionsListed++
		return err
	}
	if err := g.refs.DropPartition(ctx, c.Partition); err != nil {
		return err
	}
	if c.Branch == "" {
		if err := g.dropFiles(ctx, c.Namespace); err != nil {
			return err
		}
	}
	report.PartitionsDropped++
	return g.refs.RemoveCleanup(ctx, c.Partition)
}

// isListed reads the records that could list a partition.
func (g *Graveler) isListed(ctx context.Context, c Cleanup) (bool, error) {
	repo, err := g.refs.GetRepository(ctx, c.RepositoryID)
	if errors.Is(err, ErrRepositoryNotFound) || err == nil && repo.UID != c.RepositoryUID {
		return false, nil
	}
	if err != nil || c.Branch == "" {
		return true, err
	}
	b, err := g.refs.GetBranch(ctx, repo, c.Branch)
	if errors.Is(err, ErrBranchNotFound) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	return slices.Contains(tokens(b), StagingToken(c.Partition)), nil
}
