// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"

	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// editor makes the nodes of one level, from the nodes that the old tree has there and the edits of the records in them.
//
// It is always in one of two states. Between regions the records put out so far end with a cut where an old node ends
// too (or there are none): old nodes are kept, by saying nothing about them, up to the one that the next edit falls into. There a region
// begins: old nodes are taken apart one after another and their records go, with the edits, through the splitter. It ends with
// the next cut that coincides with the end of an old node. As the splitter remembers nothing across a cut, what follows is what it was.
//
// What a region did to the sequence of nodes is an edit of the level above.
type editor struct {
	w      *writer
	shapes shapes
	top    *node
	level  int
	up     *editor // made with its first edit

	// The old nodes.
	cursor *cursor
	leaves leaves
	run    int    // old nodes opened in a row
	opened bool   // the cursor has been moved
	ended  bool   // there are no more old nodes
	done   []byte // last key of the old node that the cursor stands on, or stood on last
	start  []byte // first key of the first old node of the region
	rest   records
	have   bool // rest stands on a record that was not used yet

	// The new nodes.
	split splitter
	open  *pending // records since the last cut, nil if none
	first item     // of open
	held  *made    // the node before open, held back because a lone last child would join it

	// lo is where the edit begins that the level above has not been told of, nil if it knows everything.
	lo []byte
}

// item is a record of a level. If task is not nil, it is that of a child whose ID is the result of the task.
type item struct {
	rangefile.Record
	task *task
}

// edit replaces the old records from lo to hi, which may be none, by at most one new record. Edits come in ascending order.
type edit struct {
	lo, hi []byte
	put    bool
	item   item
}

// made is a node that is complete but for a lone last child.
type made struct {
	*pending
	child rangefile.Child
}

// records is a sequence of old records.
type records interface {
	Next() bool
	Record() rangefile.Record
	Err() error
}

func newEditor(w *writer, s shapes, top *node, level int) *editor {
	e := &editor{w: w, shapes: s, top: top, level: level, split: newSplitter(s, level), leaves: leaves{files: w.files}}
	if level >= top.level || len(top.children) == 0 {
		e.ended = true // the old tree is not as high
	} else {
		e.cursor = newCursor(w.files, top, level)
	}
	return e
}

// close releases the files of this level and those above.
func (e *editor) close() {
	for ; e != nil; e = e.up {
		e.leaves.close()
	}
}

// apply does one edit.
func (e *editor) apply(ed edit) error {
	if err := e.keep(ed.lo); err != nil {
		return err
	}
	if err := e.skip(ed.hi); err != nil || !ed.put {
		return err
	}
	return e.add(ed.item)
}

// keep goes to the first old record >= lo. What is before stays as it is.
func (e *editor) keep(lo []byte) error {
	for {
		for e.have && bytes.Compare(e.rest.Record().Key, lo) < 0 {
			if err := e.addOld(); err != nil {
				return err
			}
		}
		if e.have || e.ended {
			return nil
		}
		var err error
		if e.open == nil {
			err = e.jump(lo)
		} else {
			err = e.follow()
		}
		if err != nil {
			return err
		}
	}
}

// jump begins a region at the old node that lo falls into, or continues the last one if that is the node that follows it.
func (e *editor) jump(lo []byte) error {
	ctx := e.w.ctx
	if e.opened {
		ok, err := e.cursor.next(ctx)
		if err != nil || !ok {
			e.ended = true
			return err
		}
		if bytes.Compare(e.cursor.child().Last, lo) >= 0 {
			return e.take()
		}
		if err := e.tell(); err != nil {
			return err
		}
	}
	ok, err := e.cursor.seekGE(ctx, lo)
	if err == nil && !ok {
		_, err = e.cursor.seekLast(ctx) // its end was the end of the tree, not a cut
	}
	if err != nil {
		return err
	}
	e.run, e.start = 0, e.cursor.child().First
	return e.take()
}

// follow takes the next old node, because no cut has coincided with the end of the one before.
func (e *editor) follow() error {
	ok, err := e.cursor.next(e.w.ctx)
	if err != nil || !ok {
		e.ended = true
		return err
	}
	return e.take()
}

// take opens the old node that the cursor stands on.
func (e *editor) take() error {
	if err := context.Cause(e.w.ctx); err != nil {
		return err
	}
	e.drop()
	child := e.cursor.child()
	var err error
	switch e.run++; {
	case e.level > 0:
		var n *node
		if n, err = e.w.files.node(e.w.ctx, child, e.level); err == nil {
			e.rest = &childRecords{node: n, i: -1}
		}
	case e.run > 2: // likely to go on
		e.rest, err = e.leaves.stream(e.w.ctx, e.cursor)
	default:
		e.rest, err = e.leaves.take(e.w.ctx, child.ID)
	}
	if err != nil {
		return err
	}
	return e.step()
}

// drop notes that the old node that the cursor stands on will not be in the new tree.
func (e *editor) drop() {
	e.opened, e.done = true, e.cursor.child().Last
	if e.lo == nil {
		e.lo = e.done
	}
}

// step goes to the next old record of the node.
func (e *editor) step() error {
	e.have = e.rest.Next()
	return e.rest.Err()
}

// skip drops old records up to hi. Nodes that end before are not even read.
func (e *editor) skip(hi []byte) error {
	for {
		for e.have && bytes.Compare(e.rest.Record().Key, hi) <= 0 {
			if err := e.step(); err != nil {
				return err
			}
		}
		if e.have || e.ended || bytes.Compare(hi, e.done) <= 0 {
			return nil
		}
		ok, err := e.cursor.next(e.w.ctx)
		switch {
		case err != nil || !ok:
			e.ended = true
			return err
		case bytes.Compare(e.cursor.child().Last, hi) <= 0:
			e.drop()
		default:
			if err := e.take(); err != nil {
				return err
			}
		}
	}
}

func (e *editor) addOld() error {
	if err := e.add(item{Record: e.rest.Record()}); err != nil {
		return err
	}
	return e.step()
}
