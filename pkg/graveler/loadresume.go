// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ResumeLoad takes up a load of LoadRepository that was cut off, by the UID that it had; p must be what it was begun with. What
// was written before may be written again, as long as it is the same: a tag, a branch or an entry that is not is ErrExists. It
// returns ErrRepositoryNotFound where there is no such load: it was never begun, or undone since. The caller knows that nobody
// else goes on with it: of two, one would be told, but only after a while.
func (g *Graveler) ResumeLoad(ctx context.Context, id RepositoryID, p LoadParams) (*Loading, error) {
	l, err := g.resumeLoad(ctx, id, p)
	if err != nil {
		return nil, fmt.Errorf("resume the load of repository %s: %w", id, err)
	}
	return l, nil
}

func (g *Graveler) resumeLoad(ctx context.Context, id RepositoryID, p LoadParams) (*Loading, error) {
	r, err := g.refs.GetRepository(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case r.State != RepositoryCreating || r.UID != p.UID || p.UID == "":
		return nil, fmt.Errorf("%w: none that has not finished has the UID %q", ErrRepositoryNotFound, p.UID)
	}
	// A sign of life, on the very record that was read: who is about to undo the load fails, or this does.
	now, err := g.moveTime(ctx, 0)
	if err != nil {
		return nil, err
	}
	next := *r
	next.CreatedAt = time.Unix(0, now).UTC()
	if err := g.putCreating(ctx, &next); err != nil {
		return nil, err
	}
	l := g.newLoading(&next, p)
	l.resumed = true
	for name, err := range g.refs.ScanLogNames(ctx, &next, "") {
		if err != nil {
			return nil, err
		}
		l.logs[name.UID] = name.Branch
	}
	return l, nil
}

// Flush waits until everything is durable that was written so far, and shows that the load lives. A load that is cut off after it
// can be taken up from there.
func (l *Loading) Flush(ctx context.Context) error {
	err := l.writeBatch(ctx)
	if failed := l.wait(); failed != nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return l.alive(ctx)
}

// ApplyTree makes a tree of another that the load has made, or of the empty one, by changes as in Trees.Apply, in the
// repository's namespace: for what comes from trees of another kind. The tree is durable then. It does not close changes.
func (l *Loading) ApplyTree(ctx context.Context, tree MetaRangeID, changes Iterator[Entry]) (MetaRangeID, error) {
	if err := l.alive(ctx); err != nil {
		return "", err
	}
	return l.g.trees.Apply(ctx, l.repo.Namespace, tree, livingEntries{changes, func() error { return l.alive(ctx) }})
}

// ScanTree iterates over the entries of a tree that ApplyTree has made, or of the empty one, by key. The iterator must be closed.
func (l *Loading) ScanTree(ctx context.Context, tree MetaRangeID) Iterator[Entry] {
	return l.g.trees.Scan(ctx, l.repo.Namespace, tree)
}

// livingEntries keep a load alive while a tree is built of them.
type livingEntries struct {
	Iterator[Entry]
	alive func() error
}

func (e livingEntries) Next() bool { return e.alive() == nil && e.Iterator.Next() }

func (e livingEntries) Err() error { return errors.Join(e.Iterator.Err(), e.alive()) }

// sameTag returns ErrExists unless the tag is there that was to be made.
func (l *Loading) sameTag(ctx context.Context, t Tag) error {
	stored, err := l.g.refs.GetTag(ctx, l.repo, t.ID)
	if err == nil && stored.Commit != t.Commit {
		err = fmt.Errorf("tag %s: %w: on commit %s", t.ID, ErrExists, stored.Commit)
	}
	return err
}

// sameBranch returns the record that is there, or ErrExists unless it is the one that an earlier part of the same load made.
func (l *Loading) sameBranch(ctx context.Context, made *Branch) (Branch, error) {
	exists := fmt.Errorf("branch %s: %w", made.ID, ErrExists)
	if !l.resumed {
		return Branch{}, exists
	}
	stored, err := l.g.refs.GetBranch(ctx, l.repo, made.ID)
	if err != nil {
		return Branch{}, err
	}
	if stored.UID != made.UID || stored.Head != made.Head || stored.LastMove != made.LastMove {
		return Branch{}, exists
	}
	return *stored, nil
}

// EmptyTree is the ID of the tree without entries, which has no file.
func (g *Graveler) EmptyTree() MetaRangeID { return g.trees.EmptyTree() }

// CheckRoot reads the root of a tree in a namespace, which need not belong to a repository, and checks all of it. What is missing
// there, or is no file of a tree, is an error that says so.
func (g *Graveler) CheckRoot(ctx context.Context, namespace string, tree MetaRangeID) error {
	if tree == g.trees.EmptyTree() {
		return nil
	}
	return g.trees.CheckFile(ctx, namespace, TreeFile{ID: string(tree), Root: true})
}
