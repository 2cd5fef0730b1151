// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"
	"sort"

	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// cursor walks the nodes of one level of a tree, without reading them: it reads the levels above. It stands on a node, or
// nowhere where a move returned false.
type cursor struct {
	files *files
	level int
	top   *node
	stack []frame // from top down to the parents of the nodes it walks; empty if it stands nowhere
}

type frame struct {
	node *node
	i    int
}

func newCursor(f *files, top *node, level int) *cursor {
	return &cursor{files: f, level: level, top: top}
}

// child is the node that the cursor stands on.
func (c *cursor) child() rangefile.Child {
	f := c.stack[len(c.stack)-1]
	return f.node.children[f.i]
}

// seekGE goes to the first node that ends at or after key. It reads again only what is below the lowest common ancestor.
func (c *cursor) seekGE(ctx context.Context, key []byte) (bool, error) {
	for len(c.stack) > 0 {
		n := c.stack[len(c.stack)-1].node
		if bytes.Compare(n.first(), key) <= 0 && bytes.Compare(key, n.last()) <= 0 {
			break
		}
		c.stack = c.stack[:len(c.stack)-1]
	}
	if len(c.stack) == 0 {
		c.stack = append(c.stack, frame{node: c.top})
	}
	bottom := &c.stack[len(c.stack)-1]
	if bottom.i = bottom.node.find(key); bottom.i == len(bottom.node.children) {
		c.stack = c.stack[:0]
		return false, nil
	}
	return c.descend(ctx, func(n *node) int { return n.find(key) })
}

// seekBefore goes to the last node that starts before key.
func (c *cursor) seekBefore(ctx context.Context, key []byte) (bool, error) {
	before := func(n *node) int {
		return sort.Search(len(n.children), func(i int) bool { return bytes.Compare(n.children[i].First, key) >= 0 }) - 1
	}
	if c.stack = c.stack[:0]; before(c.top) < 0 {
		return false, nil
	}
	c.stack = append(c.stack, frame{c.top, before(c.top)})
	return c.descend(ctx, before)
}

// seekLast goes to the last node.
func (c *cursor) seekLast(ctx context.Context) (bool, error) {
	last := func(n *node) int { return len(n.children) - 1 }
	if c.stack = c.stack[:0]; last(c.top) < 0 {
		return false, nil
	}
	c.stack = append(c.stack, frame{c.top, last(c.top)})
	return c.descend(ctx, last)
}

// next goes to the following node.
func (c *cursor) next(ctx context.Context) (bool, error) {
	for len(c.stack) > 0 {
		bottom := &c.stack[len(c.stack)-1]
		if bottom.i++; bottom.i < len(bottom.node.children) {
			return c.descend(ctx, func(*node) int { return 0 })
		}
		c.stack = c.stack[:len(c.stack)-1]
	}
	return false, nil
}

// peek gives the following node where that takes no reading.
func (c *cursor) peek() (rangefile.Child, bool) {
	f := c.stack[len(c.stack)-1]
	if f.i+1 == len(f.node.children) {
		return rangefile.Child{}, false
	}
	return f.node.children[f.i+1], true
}

// descend completes the stack; in each node that it reads it takes the child that choose says.
func (c *cursor) descend(ctx context.Context, choose func(*node) int) (bool, error) {
	for {
		n := c.stack[len(c.stack)-1].node
		if n.level == c.level+1 {
			return true, nil
		}
		child, err := c.files.node(ctx, c.child(), n.level-1)
		if err != nil {
			c.stack = c.stack[:0]
			return false, err
		}
		c.stack = append(c.stack, frame{child, choose(child)})
	}
}
