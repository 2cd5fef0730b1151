// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/rs/xid"
)

// CreateRepositoryParams says how to create a repository. The zero value will do.
type CreateRepositoryParams struct {
	DefaultBranch BranchID // "": main
	// Namespace is below which URL, or path in the store's block storage, the range files go, in a folder of the repository's
	// own. A URL of local files should be absolute: a relative one means another place to a process that runs elsewhere. "":
	// Config.Namespace.
	Namespace string
	ReadOnly  bool
}

// CreateRepository makes a repository with an empty first commit and a default branch that stands on it. It returns ErrExists
// where the name is taken. A creation that was cut off shows as not found; the next one of that name, or Maintain, undoes it once
// it is older than the grace period.
func (g *Graveler) CreateRepository(ctx context.Context, id RepositoryID, p CreateRepositoryParams) (rep Repository, err error) {
	defer g.observe("create-repository", time.Now(), &err)
	if p.DefaultBranch == "" {
		p.DefaultBranch = "main"
	}
	if err := ValidateRepositoryID(id); err != nil {
		return Repository{}, err
	}
	if err := ValidateBranchID(p.DefaultBranch); err != nil {
		return Repository{}, err
	}
	reading := g.repositories.begin()
	r, err := g.createRepository(ctx, id, p)
	if err != nil {
		return Repository{}, fmt.Errorf("create repository %s: %w", id, err)
	}
	g.repositories.remember(r, reading)
	return *r, nil
}

func (g *Graveler) createRepository(ctx context.Context, id RepositoryID, p CreateRepositoryParams) (*Repository, error) {
	r, err := g.beginRepository(ctx, &Repository{ID: id, DefaultBranch: p.DefaultBranch, ReadOnly: p.ReadOnly}, p.Namespace)
	if err != nil {
		return nil, err
	}
	first := &Commit{
		Version: CommitVersion, Message: "Repository created", Tree: g.trees.EmptyTree(), CreatedAt: r.CreatedAt, Generation: 1, LogTime: r.CreatedAt.UnixNano(), Nonce: newNonce(),
	}
	first.ID = first.ComputeID()
	if err := g.refs.PutCommit(ctx, r, first); err != nil {
		return nil, err
	}
	if _, err := g.createBranch(ctx, r, p.DefaultBranch, first.ID, false); err != nil {
		return nil, err
	}
	r.State = RepositoryActive
	return r, g.putCreating(ctx, r)
}

// beginRepository writes the record of a repository that is to be created: nobody sees it before its state is RepositoryActive.
// Its files go below a URL or path, or where it says that they are.
func (g *Graveler) beginRepository(ctx context.Context, r *Repository, below string) (*Repository, error) {
	if err := g.clearName(ctx, r.ID); err != nil {
		return nil, err
	}
	now, err := g.moveTime(ctx, 0)
	if err != nil {
		return nil, err
	}
	if r.UID == "" {
		r.UID = xid.New().String()
	}
	r.CreatedAt, r.State = time.Unix(0, now).UTC(), RepositoryCreating
	switch {
	case r.Namespace != "":
	case below == "":
		r.Namespace = namespaceBelow(g.namespace, r)
	default:
		r.Namespace = namespaceBelow(below, r)
	}
	if err := g.trees.CheckNamespace(ctx, r.Namespace); err != nil {
		return nil, err
	}
	r.Nonce = newNonce()
	if r.Stamp, err = g.refs.PutRepository(ctx, r); errors.Is(err, ErrChanged) {
		return nil, ErrExists
	}
	return r, err
}

// putCreating writes the record of a repository that this process is creating.
func (g *Graveler) putCreating(ctx context.Context, r *Repository) error {
	r.Nonce = newNonce()
	stamp, err := g.refs.PutRepository(ctx, r)
	if errors.Is(err, ErrChanged) {
		return fmt.Errorf("%w: the creation stood still for longer than %s and was undone", ErrRepositoryInDeletion, g.grace)
	}
	r.Stamp = stamp
	return err
}

// namespaceBelow gives each repository a folder of its own, so that no two ever share files, whatever namespaces they are given.
func namespaceBelow(parent string, r *Repository) string {
	if parent == "" {
		return r.Partition()
	}
	place, query, hasQuery := strings.Cut(parent, "?")
	place = strings.TrimSuffix(place, "/") + "/" + r.Partition()
	if hasQuery {
		place += "?" + query
	}
	return place
}

// clearName returns ErrExists where the name is taken, and otherwise finishes what is left of an earlier repository of that name.
func (g *Graveler) clearName(ctx context.Context, id RepositoryID) error {
	r, err := g.refs.GetRepository(ctx, id)
	switch {
	case errors.Is(err, ErrRepositoryNotFound):
		return nil
	case err != nil:
		return err
	case r.State == RepositoryActive:
		return ErrExists
	case r.State == RepositoryInDeletion:
		return g.finishRepositoryDeletion(ctx, r)
	}
	if undone, err := g.undoCreation(ctx, r); undone || err != nil {
		return err
	}
	return fmt.Errorf("%w: a creation that showed life at %s has not finished", ErrExists, r.CreatedAt.Format(time.RFC3339))
}

// undoCreation undoes a creation that was cut off: one that has shown no sign of life for the grace period, and shows none when
// it is put in deletion.
func (g *Graveler) undoCreation(ctx context.Context, r *Repository) (undone bool, err error) {
	if g.now().Sub(r.CreatedAt) < g.grace {
		return false, nil
	}
	r.State, r.Nonce = RepositoryInDeletion, newNonce()
	r.Stamp, err = g.refs.PutRepository(ctx, r)
	if errors.Is(err, ErrChanged) {
		return false, nil // it goes on, or has finished, or another is undoing it
	}
	if err != nil {
		return false, err
	}
	return true, g.finishRepositoryDeletion(ctx, r)
}

// GetRepository returns ErrRepositoryNotFound where there is none, and ErrRepositoryInDeletion where it is being deleted.
func (g *Graveler) GetRepository(ctx context.Context, id RepositoryID) (Repository, error) {
	r, err := g.repository(ctx, id)
	if err != nil {
		return Repository{}, err
	}
	return *r, nil
}

// ListRepositories yields the repositories whose names are greater than after, by name, those in creation or deletion included: see State.
func (g *Graveler) ListRepositories(ctx context.Context, after RepositoryID) iter.Seq2[Repository, error] {
	return sequence(func(emit func(Repository) bool) error {
		for r, err := range g.refs.ScanRepositories(ctx, after) {
			if err != nil {
				return fmt.Errorf("list repositories: %w", err)
			}
			if r.ID != after && !emit(*r) {
				return nil
			}
		}
		return nil
	})
}

// DeleteRepository deletes a repository with everything in it: branches, commits, tags, settings, uncommitted entries and range files. If it is
// cut off, the repository stays in deletion, and the next call, or Maintain, goes on.
func (g *Graveler) DeleteRepository(ctx context.Context, id RepositoryID) (err error) {
	defer g.observe("delete-repository", time.Now(), &err)
	if err := ValidateRepositoryID(id); err != nil {
		return err
	}
	r, err := g.refs.GetRepository(ctx, id)
	if err != nil {
		g.repositories.forget(id)
		return err
	}
	if err := g.deleteRepository(ctx, r); err != nil {
		return fmt.Errorf("delete repository %s: %w", id, err)
	}
	return nil
}

// deleteRepository puts a repository in deletion and removes all that it has. Every step may be repeated, by any process.
func (g *Graveler) deleteRepository(ctx context.Context, r *Repository) error {
	for r.State != RepositoryInDeletion {
		next := *r
		next.State, next.Nonce = RepositoryInDeletion, newNonce()
		stamp, err := g.refs.PutRepository(ctx, &next)
		if err == nil {
			next.Stamp, r = stamp, &next
			break
		}
		if !errors.Is(err, ErrChanged) {
			return err
		}
		now, err := g.refs.GetRepository(ctx, r.ID)
		if errors.Is(err, ErrRepositoryNotFound) || err == nil && now.UID != r.UID {
			g.repositories.forget(r.ID)
			return nil // another process has finished
		}
		if err != nil {
			return err
		}
		r = now
	}
	g.repositories.forget(r.ID)
	return g.finishRepositoryDeletion(ctx, r)
}

func (g *Graveler) finishRepositoryDeletion(ctx context.Context, r *Repository) error {
	namespace := r.Namespace
	if r.Adopting {
		namespace = "" // its files stay
	}
	err := g.refs.PutCleanup(ctx, Cleanup{
		Partition: r.Partition(), Registered: g.now().UnixNano(), RepositoryID: r.ID, RepositoryUID: r.UID, Namespace: namespace,
	})
	if err != nil {
		return err
	}
	// From here on no write with a fence gets through: every branch record is marked before its token is dropped.
	for b, err := range g.refs.ScanBranches(ctx, r, "") {
		if err == nil && b.State == BranchLive {
			err = g.deleteBranch(ctx, r, b.ID, 0, true)
		}
		if err != nil && !errors.Is(err, ErrBranchNotFound) {
			return err
		}
	}
	if err := g.dropPartitions(ctx, r); err != nil {
		return err
	}
	if err := g.dropFiles(ctx, namespace); err != nil {
		return err
	}
	if err := g.refs.RemoveRepository(ctx, r); err != nil && !errors.Is(err, ErrChanged) {
		return err
	}
	return nil
}

// dropFiles drops the files of a namespace; "" stands for files that stay.
func (g *Graveler) dropFiles(ctx context.Context, namespace string) error {
	if namespace == "" {
		return nil
	}
	return g.trees.Drop(ctx, namespace)
}

// dropPartitions drops every registered partition of a repository, its own last. The registrations stay: when the grace period has passed the cleaner
// drops the partitions once more, because a late writer may have touched them.
func (g *Graveler) dropPartitions(ctx context.Context, r *Repository) error {
	for c, err := range g.refs.ScanCleanups(ctx) {
		if err == nil && c.RepositoryUID == r.UID && c.Branch != "" {
			err = g.refs.DropPartition(ctx, c.Partition)
		}
		if err != nil {
			return err
		}
	}
	return g.refs.DropPartition(ctx, r.Partition())
}
