// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// Get returns a copy of the value of a key, or graveler.ErrEntryNotFound. It reads at most one metarange per level, then
// the index and one block of a range, each through the caches. Where they have all of it, the block storage is not even asked for.
func (s *Store) Get(ctx context.Context, ns string, tree graveler.MetaRangeID, key graveler.Key) (*graveler.Value, error) {
	l := lookup{ctx: ctx, store: s, ns: ns}
	v, err := l.find(tree, key)
	if err != nil {
		return nil, fmt.Errorf("get %q from tree %s: %w", key, tree, err)
	}
	return v, nil
}

// lookup is the search for one key. It looks into the caches first, which costs less than to load through them, and opens the
// namespace when something is missing there.
type lookup struct {
	ctx   context.Context
	store *Store
	ns    string
	files *files // nil: not opened yet
}

func (l *lookup) open() (*files, error) {
	if l.files != nil {
		return l.files, nil
	}
	var err error
	l.files, err = l.store.open(l.ctx, l.ns)
	return l.files, err
}

func (l *lookup) find(tree graveler.MetaRangeID, key []byte) (*graveler.Value, error) {
	n, err := l.root(tree)
	if err != nil {
		return nil, err
	}
	for {
		i := n.find(key)
		if i == len(n.children) || bytes.Compare(key, n.children[i].First) < 0 {
			return nil, graveler.ErrEntryNotFound
		}
		if n.level == 1 {
			return l.value(n.children[i], key)
		}
		if n, err = l.node(n.children[i], n.level-1); err != nil {
			return nil, err
		}
	}
}

// root returns the uppermost node of a tree.
func (l *lookup) root(tree graveler.MetaRangeID) (*node, error) {
	id, err := rangefile.ParseID(string(tree))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", graveler.ErrInvalidTree, err)
	}
	if id == rangefile.EmptyID() {
		return &node{level: 1}, nil
	}
	if h, ok := l.store.caches.heads.GetIfPresent(fileKey{l.ns, id}); ok && h.node != nil {
		return h.node, nil
	}
	f, err := l.open()
	if err != nil {
		return nil, err
	}
	return f.load(l.ctx, id, -1)
}

// node returns the node of a child.
func (l *lookup) node(c rangefile.Child, level int) (*node, error) {
	if h, ok := l.store.caches.heads.GetIfPresent(fileKey{l.ns, c.ID}); ok && h.node != nil && h.node.is(c, level) {
		return h.node, nil
	}
	f, err := l.open()
	if err != nil {
		return nil, err
	}
	return f.node(l.ctx, c, level)
}

// value looks the key up in a range.
func (l *lookup) value(c rangefile.Child, key []byte) (*graveler.Value, error) {
	file, err := l.index(c)
	if err != nil {
		return nil, err
	}
	r, ok, err := file.Get(key, func(i int) (*rangefile.Block, error) { return l.block(file, i) })
	if err != nil {
		return nil, damage(err)
	}
	if !ok {
		return nil, graveler.ErrEntryNotFound
	}
	// One piece of memory for both.
	both := append(append(make([]byte, 0, len(r.Identity)+len(r.Data)), r.Identity...), r.Data...)
	n := len(r.Identity)
	return &graveler.Value{Identity: both[:n:n], Data: both[n:]}, nil
}

func (l *lookup) index(c rangefile.Child) (*rangefile.File, error) {
	if h, ok := l.store.caches.heads.GetIfPresent(fileKey{l.ns, c.ID}); ok && h.index != nil {
		return h.index, nil
	}
	f, err := l.open()
	if err != nil {
		return nil, err
	}
	return f.index(l.ctx, c)
}

func (l *lookup) block(file *rangefile.File, i int) (*rangefile.Block, error) {
	if b, ok := l.store.caches.blocks.GetIfPresent(blockKey{fileKey{l.ns, file.ID}, i}); ok {
		return b, nil
	}
	f, err := l.open()
	if err != nil {
		return nil, err
	}
	return f.block(l.ctx, file, i)
}
