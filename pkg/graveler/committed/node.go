// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"
	"fmt"
	"sort"

	"github.com/maypok86/otter/v2"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// node is a decoded metarange. It is immutable and shared.
type node struct {
	level    int
	children []rangefile.Child
	keys     int // bytes of all keys
}

// find gives the first child that ends at or after key.
func (n *node) find(key []byte) int {
	return sort.Search(len(n.children), func(i int) bool { return bytes.Compare(n.children[i].Last, key) >= 0 })
}

func (n *node) first() []byte { return n.children[0].First }
func (n *node) last() []byte  { return n.children[len(n.children)-1].Last }

// is reports whether the node has the level and the bounds that its parent says.
func (n *node) is(c rangefile.Child, level int) bool {
	return n.level == level && bytes.Equal(n.first(), c.First) && bytes.Equal(n.last(), c.Last)
}

// memory is roughly what the node holds, in bytes.
func (n *node) memory() int { return n.keys + 112*len(n.children) }

// tree returns a node that has the root as its only child, so that the root is found as every other node is. The
// empty tree is a node without children.
func (f *files) tree(ctx context.Context, tree graveler.MetaRangeID) (*node, error) {
	id, err := rangefile.ParseID(string(tree))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", graveler.ErrInvalidTree, err)
	}
	if id == rangefile.EmptyID() {
		return &node{level: 1}, nil
	}
	root, err := f.load(ctx, id, -1)
	if err != nil {
		return nil, err
	}
	top := rangefile.Child{First: root.first(), Last: root.last(), ID: id}
	return &node{level: root.level + 1, children: []rangefile.Child{top}}, nil
}

// node reads the metarange of a child, which must have the level and the bounds that its parent says.
func (f *files) node(ctx context.Context, c rangefile.Child, level int) (*node, error) {
	n, err := f.load(ctx, c.ID, level)
	if err != nil {
		return nil, err
	}
	if !n.is(c, level) {
		return nil, damage(fmt.Errorf("%s is not what its parent says: %w", f.path(c.ID), rangefile.ErrCorrupt))
	}
	return n, nil
}

func (f *files) load(ctx context.Context, id rangefile.ID, level int) (*node, error) {
	h, err := f.caches.heads.Get(ctx, fileKey{f.ns, id}, otter.LoaderFunc[fileKey, head](func(ctx context.Context, k fileKey) (head, error) {
		file, data, err := f.whole(ctx, k.id, level)
		if err != nil {
			return head{}, err
		}
		n, err := decodeNode(ctx, file, data)
		if err != nil {
			return head{}, damage(fmt.Errorf("%s: %w", f.path(k.id), err))
		}
		return head{node: n}, nil
	}))
	if err != nil {
		return nil, err
	}
	if h.node == nil {
		return nil, damage(fmt.Errorf("%s is a range, not a metarange: %w", f.path(id), rangefile.ErrCorrupt))
	}
	return h.node, nil
}

// decodeNode reads all children. The footer bounds their number and their size, and so the memory they take.
func decodeNode(ctx context.Context, file *rangefile.File, data rangefile.Bytes) (*node, error) {
	n := &node{level: file.Level}
	keys := make([]byte, 0, file.Size)
	var b rangefile.Block
	it := file.Iter(func(i int) (*rangefile.Block, error) { return file.Read(ctx, data, i, &b) })
	size := 0
	for it.Next() {
		c, err := rangefile.ParseChild(it.Record())
		if err != nil {
			return nil, err
		}
		if size += it.Record().Size(); size > int(file.Size) || len(n.children) > 0 && bytes.Compare(n.last(), c.First) >= 0 {
			return nil, fmt.Errorf("child %d is out of order or too many: %w", len(n.children), rangefile.ErrCorrupt)
		}
		keys = append(append(keys, c.First...), c.Last...)
		both := keys[len(keys)-len(c.First)-len(c.Last):]
		c.First, c.Last = both[:len(c.First):len(c.First)], both[len(c.First):len(both):len(both)]
		n.children = append(n.children, c)
	}
	if it.Err() != nil {
		return nil, it.Err()
	}
	if uint64(len(n.children)) != file.Count || size != int(file.Size) {
		return nil, fmt.Errorf("%d children of %d bytes, not %d of %d: %w", len(n.children), size, file.Count, file.Size, rangefile.ErrCorrupt)
	}
	n.keys = len(keys)
	return n, nil
}
