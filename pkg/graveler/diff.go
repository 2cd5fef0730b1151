// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"time"
)

// DiffOptions says what part of a difference is shown. The zero value shows all.
type DiffOptions struct {
	Prefix Key
	// After leaves out every key that is not greater.
	After Key
}

func (o DiffOptions) start() Key {
	if o.After == nil || bytes.Compare(o.After, o.Prefix) < 0 {
		return o.Prefix
	}
	return after(o.After)
}

// Diff yields the entries in which two refs differ as committed, by key. It costs what differs, not what there is.
func (g *Graveler) Diff(ctx context.Context, repo RepositoryID, left, right string, o DiffOptions) iter.Seq2[Diff, error] {
	return sequence(func(emit func(Diff) bool) (err error) {
		defer g.observe("diff", time.Now(), &err)
		record, l, r, err := g.resolveTwo(ctx, repo, left, right)
		if err == nil {
			err = g.diffCommits(ctx, record, l, r, o, emit)
		}
		if err != nil {
			return fmt.Errorf("diff %s/%s and %s/%s: %w", repo, left, repo, right, err)
		}
		return nil
	})
}

// Compare yields what right has changed since its merge base with left, by key. What a merge of right into left would change is told by MergeChanges.
func (g *Graveler) Compare(ctx context.Context, repo RepositoryID, left, right string, o DiffOptions) iter.Seq2[Diff, error] {
	return sequence(func(emit func(Diff) bool) (err error) {
		defer g.observe("compare", time.Now(), &err)
		record, l, r, err := g.resolveTwo(ctx, repo, left, right)
		if err == nil {
			err = g.compare(ctx, record, l, r, o, emit)
		}
		if err != nil {
			return fmt.Errorf("compare %s/%s and %s/%s: %w", repo, left, repo, right, err)
		}
		return nil
	})
}

func (g *Graveler) compare(ctx context.Context, repo *Repository, left, right *Commit, o DiffOptions, emit func(Diff) bool) error {
	base, err := g.mergeBase(ctx, repo, left, right)
	if err != nil {
		return err
	}
	if base != nil {
		return g.diffCommits(ctx, repo, base, right, o, emit)
	}
	tree, err := g.readableTree(ctx, repo, right)
	if err != nil {
		return err
	}
	return g.diffTrees(ctx, repo, g.trees.EmptyTree(), tree, o, emit)
}

func (g *Graveler) diffCommits(ctx context.Context, repo *Repository, left, right *Commit, o DiffOptions, emit func(Diff) bool) error {
	l, r, err := g.readableTrees(ctx, repo, left, right)
	if err != nil {
		return err
	}
	return g.diffTrees(ctx, repo, l, r, o, emit)
}

// resolveTwo resolves two refs in one repository.
func (g *Graveler) resolveTwo(ctx context.Context, repo RepositoryID, left, right string) (*Repository, *Commit, *Commit, error) {
	record, l, err := g.resolve(ctx, repo, left)
	if err != nil {
		return nil, nil, nil, err
	}
	r, err := g.resolveIn(ctx, record, right)
	return record, l, r, err
}

func (g *Graveler) diffTrees(ctx context.Context, repo *Repository, left, right MetaRangeID, o DiffOptions, emit func(Diff) bool) error {
	it := g.trees.Diff(ctx, repo.Namespace, left, right)
	it.SeekGE(o.start())
	return g.unlessGone(ctx, repo, closing(emitDiffs(it, o.Prefix, emit), it))
}

func emitDiffs(it Iterator[Diff], prefix Key, emit func(Diff) bool) error {
	for it.Next() {
		d := it.Item()
		if !bytes.HasPrefix(d.Key, prefix) || !emit(d.Clone()) {
			return nil
		}
	}
	return it.Err()
}

// DiffUncommitted yields how a branch, as it shows itself with its uncommitted changes, differs from its head, by key. An entry
// whose identity is the committed one is not a change, nor is the removal of one that was never committed. What changes during
// the iteration shows as List says.
func (g *Graveler) DiffUncommitted(ctx context.Context, repo RepositoryID, branch BranchID, o DiffOptions) iter.Seq2[Diff, error] {
	return sequence(func(emit func(Diff) bool) (err error) {
		defer g.observe("diff-uncommitted", time.Now(), &err)
		err = paged(ctx, g, repo, branch, o.start(), firstPage, emit, func(v *view, from Key, emit func(Diff) bool) error {
			return v.uncommitted(ctx, from, o.Prefix, func(d Diff) bool { return emit(d.Clone()) })
		}, func(d Diff) Key { return after(d.Key) }, func(d Diff) int { return perItem + len(d.Key) + d.Left.size() + d.Right.size() })
		if err != nil {
			return fmt.Errorf("uncommitted changes of %s/%s: %w", repo, branch, err)
		}
		return nil
	})
}
