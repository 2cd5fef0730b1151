// SPDX-License-Identifier: Apache-2.0

package walker

import (
	"context"
	"iter"

	"github.com/moraine-store/moraine/pkg/catalog"
)

// Group is all objects of one key. It is valid until the next one is asked for.
type Group struct {
	Key  string
	tree *Tree
	has  [areas]bool // where the tree has entries of the key; all, where that is not known
}

// Group returns the objects of a key.
func (t *Tree) Group(key string) *Group {
	return &Group{Key: key, tree: t, has: [areas]bool{true, true, true}}
}

// Objects yields the objects: the current version, the others with the newest first, multipart uploads. It may be ranged over more
// than once. It ends with ErrNoObject at an entry that holds none.
func (g *Group) Objects(ctx context.Context) iter.Seq2[*Object, error] {
	if g.has[catalog.VersionsArea] || !g.has[catalog.CurrentArea] {
		return g.tree.objects(ctx, g.Key, g.has[catalog.UploadsArea])
	}
	return func(yield func(*Object, error) bool) {
		current := g.tree.areas[catalog.CurrentArea].entry
		if o, err := g.tree.object(current.Key, *current.Value); !yield(o, err) || err != nil {
			return
		}
		if g.has[catalog.UploadsArea] {
			g.tree.uploads(ctx, g.Key, yield)
		}
	}
}

// Groups yields the keys that are greater than after and have objects, each with its objects, by key. Parts of uploads are not read.
func (t *Tree) Groups(after string) iter.Seq2[*Group, error] {
	return func(yield func(*Group, error) bool) {
		for i := range t.areas {
			a := &t.areas[i]
			a.key, a.at, a.taken, a.moved = after, true, true, true
		}
		for {
			g, err := t.next()
			if err != nil {
				yield(nil, err)
				return
			}
			if g == nil || !yield(g, nil) {
				return
			}
		}
	}
}

// next goes to the next key: the least of those at which the areas stand.
func (t *Tree) next() (*Group, error) {
	g := &Group{tree: t}
	found := false
	for i := range t.areas {
		a := &t.areas[i]
		if err := a.step(); err != nil {
			return nil, err
		}
		if a.at && (!found || a.key < g.Key) {
			g.Key, found = a.key, true
		}
	}
	if !found {
		return nil, nil
	}
	for i := range t.areas {
		a := &t.areas[i]
		a.taken = a.at && a.key == g.Key
		g.has[i] = a.taken
	}
	return g, nil
}

// step goes to the first entry of the next key, where the last group was the one at which it stands.
func (a *area) step() error {
	if !a.at || !a.taken {
		return nil
	}
	if a.moved || a.of != catalog.CurrentArea {
		a.it.SeekGE(a.of.After(a.key))
	}
	a.moved, a.at = false, false
	for a.next() && a.of.Contains(a.it.Item().Key) {
		e := a.it.Item()
		place, err := catalog.ParseKey(e.Key)
		if err != nil {
			continue // it is no entry that a bucket has
		}
		a.key, a.entry, a.at = place.Key, e.Clone(), true
		return nil
	}
	return a.it.Err()
}
