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
		record, l, err := g.resolve(ctx, repo, left)
		if err != nil {
			return err
		}
		again, r, err := g.resolve(ctx, repo, right)
		if err != nil {
			return err
		}
		if again.UID != record.UID {
			return fmt.Errorf("repository %s: %w: it was deleted and created again", repo, ErrRepositoryNotFound)
		}
		it := g.trees.Diff(ctx, record.Namespace, l.Tree, r.Tree)
		it.SeekGE(o.start())
		err = g.unlessGone(ctx, record, closing(emitDiffs(it, o.Prefix, emit), it))
		if err != nil {
			return fmt.Errorf("diff %s/%s and %s/%s: %w", repo, left, repo, right, err)
		}
		return nil
	})
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

// DiffUncommitted yields how a branch, as it shows itself with its uncommitted changes, differs from its head, by key. An entry whose identity is the committed one is not a change,
// nor is the removal of one that was never committed. What changes during the iteration shows as List says.
func (g *Graveler) DiffUncommitted(ctx context.Context, repo RepositoryID, branch BranchID, o DiffOptions) iter.Seq2[Diff, error] {
	return sequence(func(emit func(Diff) bool) (err error) {
		defer g.observe("diff-uncommitted", time.Now(), &err)
		err = paged(ctx, g, repo, branch, o.start(), emit, func(v *view, from Key, emit func(Diff) bool) error {
			return v.uncommitted(ctx, from, o.Prefix, func(d Diff) bool { return emit(d.Clone()) })
		}, func(d Diff) Key { return after(d.Key) }, func(d Diff) int { return perItem + len(d.Key) + d.Left.size() + d.Right.size() })
		if err != nil {
			return fmt.Errorf("uncommitted changes of %s/%s: %w", repo, branch, err)
		}
		return nil
	})
}
