// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// Diff iterates over the keys on which two trees differ. It reads the files in which they differ, of either tree, and skips
// equal ones at the highest level where the trees agree: equal trees are not read at all. It holds one node per level and
// one range of each tree in memory.
func (s *Store) Diff(ctx context.Context, ns string, left, right graveler.MetaRangeID) graveler.Iterator[graveler.Diff] {
	return &diff{ctx: ctx, store: s, ns: ns, leftID: left, rightID: right}
}

type diff struct {
	ctx             context.Context
	store           *Store
	ns              string
	leftID, rightID graveler.MetaRangeID

	left, right           walk
	from                  []byte // where to start, while not started
	started               bool
	leftValue, rightValue graveler.Value
	item                  graveler.Diff
	moveLeft, moveRight   bool // the current item is made of the entry that this side stands on
	err                   error
	closed                bool
}

func (d *diff) Next() bool {
	if d.err != nil || d.closed || d.leftID == d.rightID {
		return false
	}
	found, err := d.next()
	if err != nil {
		d.err = fmt.Errorf("diff of trees %s and %s: %w", d.leftID, d.rightID, damage(err))
	}
	return found && err == nil
}

func (d *diff) next() (bool, error) {
	if !d.started {
		if err := d.start(); err != nil {
			return false, err
		}
	}
	for {
		if err := d.move(); err != nil {
			return false, err
		}
		switch l, r := &d.left, &d.right; {
		case l.ended() && r.ended():
			return false, nil
		case r.ended() || !l.ended() && bytes.Compare(l.last(), r.first()) < 0: // only on the left
			if l.level() < 0 {
				d.found(true, false)
				return true, nil
			}
			if err := l.enter(d.ctx); err != nil {
				return false, err
			}
		case l.ended() || bytes.Compare(r.last(), l.first()) < 0: // only on the right
			if r.level() < 0 {
				d.found(false, true)
				return true, nil
			}
			if err := r.enter(d.ctx); err != nil {
				return false, err
			}
		case l.level() < 0 && r.level() < 0: // the same key
			if d.found(true, true); !d.item.Left.Same(d.item.Right) {
				return true, nil
			}
		case l.level() == r.level() && l.child().ID == r.child().ID:
			d.moveLeft, d.moveRight = true, true
		default:
			if err := d.enterHigher(); err != nil {
				return false, err
			}
		}
	}
}

// start opens the trees, from the key that was sought.
func (d *diff) start() error {
	files, err := d.store.open(d.ctx, d.ns)
	if err != nil {
		return err
	}
	for _, side := range []struct {
		walk *walk
		id   graveler.MetaRangeID
	}{{&d.left, d.leftID}, {&d.right, d.rightID}} {
		top, err := files.tree(d.ctx, side.id)
		if err != nil {
			return err
		}
		side.walk.start(files, top, d.from)
	}
	d.started, d.moveLeft, d.moveRight = true, false, false
	return nil
}

// move leaves what has been dealt with.
func (d *diff) move() error {
	if err := d.ctx.Err(); err != nil {
		return err
	}
	if d.moveLeft {
		if err := d.left.next(); err != nil {
			return err
		}
	}
	if d.moveRight {
		if err := d.right.next(); err != nil {
			return err
		}
	}
	d.moveLeft, d.moveRight = false, false
	return nil
}

// enterHigher enters the node that is on the higher level, or both.
func (d *diff) enterHigher() error {
	l, r := d.left.level(), d.right.level()
	if l >= r {
		if err := d.left.enter(d.ctx); err != nil {
			return err
		}
	}
	if r >= l {
		return d.right.enter(d.ctx)
	}
	return nil
}

// found makes an item of the entries that one side or both stand on.
func (d *diff) found(left, right bool) {
	d.moveLeft, d.moveRight = left, right
	d.item = graveler.Diff{}
	if left {
		d.leftValue = d.left.value()
		d.item.Key, d.item.Left = d.left.first(), &d.leftValue
	}
	if right {
		d.rightValue = d.right.value()
		d.item.Key, d.item.Right = d.right.first(), &d.rightValue
	}
}

func (d *diff) SeekGE(key graveler.Key) {
	d.from = append(d.from[:0:0], key...)
	d.started = false
}

func (d *diff) Item() graveler.Diff { return d.item }

func (d *diff) Err() error { return d.err }

func (d *diff) Close() error {
	d.closed = true
	d.left, d.right = walk{}, walk{}
	return d.err
}

// walk goes through a tree and stands on a node that has not been entered, or on an entry.
type walk struct {
	files *files
	from  []byte  // what is before is left out
	stack []frame // nodes that were entered; empty at the end
	it    *rangefile.Iter
}

func (w *walk) start(f *files, top *node, from []byte) {
	*w = walk{files: f, from: from}
	w.push(top)
}

// push enters a node at its first child that is not before from.
func (w *walk) push(n *node) {
	if i := n.find(w.from); i < len(n.children) {
		w.stack = append(w.stack, frame{n, i})
	}
}

func (w *walk) ended() bool { return len(w.stack) == 0 }

// level is that of the node it stands on, -1 for an entry.
func (w *walk) level() int {
	if w.it != nil {
		return -1
	}
	return w.stack[len(w.stack)-1].node.level - 1
}

func (w *walk) child() rangefile.Child {
	f := w.stack[len(w.stack)-1]
	return f.node.children[f.i]
}

func (w *walk) first() []byte {
	if w.it != nil {
		return w.it.Record().Key
	}
	return w.child().First
}

func (w *walk) last() []byte {
	if w.it != nil {
		return w.it.Record().Key
	}
	return w.child().Last
}

func (w *walk) value() graveler.Value {
	r := w.it.Record()
	return graveler.Value{Identity: r.Identity, Data: r.Data}
}

// enter goes into the node it stands on.
func (w *walk) enter(ctx context.Context) error {
	if level := w.level(); level > 0 {
		n, err := w.files.node(ctx, w.child(), level)
		if err == nil {
			w.push(n)
		}
		return err
	}
	it, err := w.files.leaf(ctx, w.child().ID)
	if err != nil {
		return err
	}
	w.it = it
	w.it.SeekGE(w.from)
	return w.next()
}

// next leaves what it stands on.
func (w *walk) next() error {
	if w.it != nil {
		if w.it.Next() {
			return nil
		}
		if err := w.it.Err(); err != nil {
			return err
		}
		w.it = nil
	}
	for len(w.stack) > 0 {
		f := &w.stack[len(w.stack)-1]
		if f.i++; f.i < len(f.node.children) {
			return nil
		}
		w.stack = w.stack[:len(w.stack)-1]
	}
	return nil
}
