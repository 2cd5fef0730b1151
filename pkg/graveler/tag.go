// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// CreateTag gives the commit that ref names a name. It returns ErrExists where the name is taken, by a branch too, since a ref
// expression would name that.
func (g *Graveler) CreateTag(ctx context.Context, repo RepositoryID, id TagID, ref string) (Tag, error) {
	if err := ValidateTagID(id); err != nil {
		return Tag{}, err
	}
	r, err := g.writable(ctx, repo)
	if err != nil {
		return Tag{}, err
	}
	c, err := g.ResolveRef(ctx, repo, ref)
	if err != nil {
		return Tag{}, err
	}
	if _, err := g.liveBranch(ctx, r, BranchID(id)); err == nil {
		return Tag{}, fmt.Errorf("create tag %s/%s: %w: a branch has this name", repo, id, ErrExists)
	} else if !errors.Is(err, ErrBranchNotFound) {
		return Tag{}, err
	}
	t := Tag{ID: id, Commit: c.ID}
	if err = g.referable(ctx, r, c.ID); err == nil {
		if err := g.refs.CreateTag(ctx, r, &t); err != nil {
			return Tag{}, err
		}
		err = g.tagHolds(ctx, r, &t)
	}
	if err != nil {
		return Tag{}, fmt.Errorf("create tag %s/%s: %w", repo, id, err)
	}
	return t, nil
}

// tagHolds makes sure that a tag which was created has not come after the repository's other records had gone, or, if this
// process was stopped for long, after the tree of its commit.
func (g *Graveler) tagHolds(ctx context.Context, repo *Repository, t *Tag) error {
	if err := g.stillThere(ctx, repo); err != nil {
		return err
	}
	err := g.referable(ctx, repo, t.Commit)
	if !errors.Is(err, ErrExpired) {
		return err
	}
	stored, readErr := g.refs.GetTag(ctx, repo, t.ID)
	if readErr == nil && stored.Commit == t.Commit {
		readErr = g.refs.RemoveTag(ctx, repo, stored)
	}
	if readErr != nil && !errors.Is(readErr, ErrChanged) && !errors.Is(readErr, ErrTagNotFound) {
		err = errors.Join(err, readErr)
	}
	return err
}

// GetTag returns ErrTagNotFound where there is none.
func (g *Graveler) GetTag(ctx context.Context, repo RepositoryID, id TagID) (Tag, error) {
	if err := ValidateTagID(id); err != nil {
		return Tag{}, err
	}
	r, err := g.repository(ctx, repo)
	if err != nil {
		return Tag{}, err
	}
	t, err := g.refs.GetTag(ctx, r, id)
	if err != nil {
		return Tag{}, err
	}
	return *t, nil
}

// ListTags yields the tags whose names are greater than after, by name.
func (g *Graveler) ListTags(ctx context.Context, repo RepositoryID, after TagID) iter.Seq2[Tag, error] {
	return sequence(func(emit func(Tag) bool) error {
		r, err := g.repository(ctx, repo)
		if err != nil {
			return err
		}
		return g.listTags(ctx, r, after, emit, func(*Tag) (bool, error) { return true, nil })
	})
}

// DeleteTag removes a tag; the commit stays.
func (g *Graveler) DeleteTag(ctx context.Context, repo RepositoryID, id TagID) error {
	if err := ValidateTagID(id); err != nil {
		return err
	}
	r, err := g.writable(ctx, repo)
	if err != nil {
		return err
	}
	for {
		t, err := g.refs.GetTag(ctx, r, id)
		if err != nil {
			return err
		}
		if err := g.refs.RemoveTag(ctx, r, t); !errors.Is(err, ErrChanged) {
			return err
		}
	}
}
