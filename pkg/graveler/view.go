// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// parallelTokens bounds how many tokens of one view are read at the same time.
const parallelTokens = 8

// view is everything that one reading of a branch record shows: its token, its items, and its base or the head's tree.
type view struct {
	g      *Graveler
	repo   *Repository
	branch *Branch
	head   *Commit
	tree   MetaRangeID // base or head
}

func (g *Graveler) viewOf(ctx context.Context, repo *Repository, b *Branch) (*view, error) {
	head, err := g.referred(ctx, repo, b.Head)
	if err != nil {
		return nil, fmt.Errorf("head of branch %s/%s: %w", repo.ID, b.ID, err)
	}
	v := &view{g: g, repo: repo, branch: b, head: head, tree: head.Tree}
	if b.Base != "" {
		v.tree = b.Base
	}
	return v, nil
}

// found is the answer of a view for one key.
type found struct {
	value  *Value // nil: the key is absent
	staged Staged // what the staging token holds
	// proven: the answer came from the newest place there is, so that it holds even if tokens were dropped meanwhile.
	proven bool
}

func (v *view) get(ctx context.Context, key Key) (found, error) {
	top, err := v.g.staging.Get(ctx, v.branch.Token, key)
	if err != nil {
		return found{}, err
	}
	if top.Stamp != nil {
		return found{value: top.Value, staged: top, proven: true}, nil
	}
	items, hidden := v.relevant(key)
	staged, err := v.readItems(ctx, items, key)
	if err != nil {
		return found{}, err
	}
	for _, s := range staged {
		if s.Stamp != nil {
			return found{value: s.Value}, nil
		}
	}
	if hidden {
		return found{}, nil
	}
	value, err := v.g.trees.Get(ctx, v.repo.Namespace, v.tree, key)
	if errors.Is(err, ErrEntryNotFound) {
		err = nil
	}
	return found{value: value}, err
}

// relevant returns the sealed tokens that decide about key, newest first, and whether a deleted prefix ends the search there.
func (v *view) relevant(key Key) (items []Item, hidden bool) {
	for _, item := range v.branch.Items {
		if item.Token != "" {
			items = append(items, item)
		} else if bytes.HasPrefix(key, item.Prefix) {
			return items, true
		}
	}
	return items, false
}

func (v *view) readItems(ctx context.Context, items []Item, key Key) ([]Staged, error) {
	staged := make([]Staged, len(items))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelTokens)
	for i, item := range items {
		group.Go(func() (err error) {
			staged[i], err = v.g.staging.Get(ctx, item.Token, key)
			return err
		})
	}
	return staged, group.Wait()
}

// entries iterates over what the view shows below prefix. The caller ends at the first key without it.
func (v *view) entries(ctx context.Context, from, prefix Key) (*merged, error) {
	return v.merge(ctx, from, prefix, v.allItems(), false)
}

// changes iterates over what the token and the items change in the view's tree, tombstones included.
func (v *view) changes(ctx context.Context, from, prefix Key) (*merged, error) {
	return v.merge(ctx, from, prefix, v.allItems(), true)
}

// sealedChanges is changes without the token, which is not frozen.
func (v *view) sealedChanges(ctx context.Context) (*merged, error) {
	return v.merge(ctx, nil, nil, v.branch.Items, true)
}

// allItems returns the items with the token in front of them, as if it were sealed. A record without token is one that only shows what is sealed.
func (v *view) allItems() []Item {
	if v.branch.Token == "" {
		return v.branch.Items
	}
	return append([]Item{{Token: v.branch.Token}}, v.branch.Items...)
}

func (v *view) merge(ctx context.Context, from, prefix Key, items []Item, asChanges bool) (*merged, error) {
	m := &merged{tombstones: asChanges}
	for _, item := range items {
		l := &layer{}
		if item.Token != "" {
			entries, err := v.g.staging.Scan(ctx, item.Token, from, prefix)
			if err != nil {
				return nil, errors.Join(err, m.Close())
			}
			l.entries = entries
		} else {
			l.hides, l.prefix = true, item.Prefix
			if asChanges {
				l.entries = &erased{tree: v.g.trees.Scan(ctx, v.repo.Namespace, v.tree), prefix: item.Prefix}
				l.entries.SeekGE(from)
			}
		}
		m.layers = append(m.layers, l)
	}
	if !asChanges {
		tree := v.g.trees.Scan(ctx, v.repo.Namespace, v.tree)
		tree.SeekGE(from)
		m.layers = append(m.layers, &layer{entries: tree})
	}
	return m, nil
}

// uncommitted calls emit with how the view differs from the head's tree, below prefix and from the key from on, until emit returns false.
//
// Two sorted streams hold the answer: how base and head differ, and what tokens and items change in the base. Where both have a
// key, the second has the last word.
func (v *view) uncommitted(ctx context.Context, from, prefix Key, emit func(Diff) bool) error {
	changes, err := v.changes(ctx, from, prefix)
	if err != nil {
		return err
	}
	folded := v.g.trees.Diff(ctx, v.repo.Namespace, v.head.Tree, v.tree)
	folded.SeekGE(from)
	tree := v.g.trees.Scan(ctx, v.repo.Namespace, v.tree)
	return closing(joinDiffs(folded, changes, tree, prefix, emit), folded, changes, tree)
}

func joinDiffs(folded Iterator[Diff], changes, tree Iterator[Entry], prefix Key, emit func(Diff) bool) error {
	inFolded, inChanges := folded.Next(), changes.Next()
	for inFolded || inChanges {
		order := -1 // the key is in folded alone
		switch {
		case !inFolded:
			order = 1
		case inChanges:
			order = bytes.Compare(folded.Item().Key, changes.Item().Key)
		}
		var d Diff
		switch {
		case order < 0:
			d = folded.Item()
		case order == 0:
			d = Diff{Key: changes.Item().Key, Left: folded.Item().Left, Right: changes.Item().Value}
		default:
			d = Diff{Key: changes.Item().Key, Right: changes.Item().Value}
			left, err := lookUp(tree, d.Key)
			if err != nil {
				return err
			}
			d.Left = left
		}
		if !bytes.HasPrefix(d.Key, prefix) {
			return nil
		}
		if !d.Left.Same(d.Right) && !emit(d) {
			return nil
		}
		if order <= 0 {
			inFolded = folded.Next()
		}
		if order >= 0 {
			inChanges = changes.Next()
		}
	}
	return errors.Join(folded.Err(), changes.Err())
}

// lookUp returns the value that an iteration has for key, nil where it has none.
func lookUp(it Iterator[Entry], key Key) (*Value, error) {
	it.SeekGE(key)
	if it.Next() && bytes.Equal(it.Item().Key, key) {
		return it.Item().Value, nil
	}
	return nil, it.Err()
}
