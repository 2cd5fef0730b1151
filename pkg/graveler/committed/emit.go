// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"
	"slices"

	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// This file is the part of the editor that makes new nodes and tells the level above.

// add puts a record into the open node and closes the node if there is a cut.
func (e *editor) add(i item) error {
	if e.open == nil {
		e.open = e.w.node(e.level)
		e.first = i
	} else if e.held != nil {
		if err := e.release(); err != nil { // the open node gets a second child
			return err
		}
	}
	if err := e.open.add(i); err != nil {
		return err
	}
	if e.split.add(i.Key, i.Size()) {
		return e.cut()
	}
	return nil
}

// add appends a record, naming it later if its file is still being written.
func (p *pending) add(i item) error {
	if i.task == nil {
		return p.builder.Add(i.Record)
	}
	slot, err := p.builder.AddUnnamed(i.Record)
	p.unnamed = append(p.unnamed, unnamed{slot, i.task})
	return err
}

// cut completes the open node.
func (e *editor) cut() error {
	if err := context.Cause(e.w.ctx); err != nil {
		return err
	}
	c := e.open.builder.Child()
	c.First, c.Last = bytes.Clone(c.First), bytes.Clone(c.Last)
	e.held = &made{e.open, c}
	e.open = nil
	if e.level == 0 {
		return e.release()
	}
	return nil
}

// release writes the node that was held back and tells the level above.
func (e *editor) release() error {
	m := e.held
	e.held = nil
	ed := edit{lo: e.lo, hi: m.child.Last, put: true, item: item{m.child.Record(), e.w.write(m.pending)}}
	if ed.lo == nil {
		ed.lo = ed.hi
	}
	if e.lo != nil {
		e.lo = nil
		if bytes.Compare(m.child.Last, e.done) < 0 {
			// The rest of the region has yet to be told: all that is behind this node.
			e.lo = append(slices.Clip(m.child.Last), 0)
		}
	}
	return e.tellUp(ed)
}

// tell reports to the level above all that it does not know, at the end of a region.
func (e *editor) tell() error {
	if e.held != nil {
		if err := e.release(); err != nil {
			return err
		}
	}
	if e.lo == nil {
		return nil
	}
	ed := edit{lo: e.lo, hi: e.done}
	e.lo = nil
	return e.tellUp(ed)
}

func (e *editor) tellUp(ed edit) error {
	if e.up == nil {
		e.up = newEditor(e.w, e.shapes, e.top, e.level+1)
	}
	return e.up.apply(ed)
}

// finish ends the last region. If the level turns out to have one node or none, that is the root, which is nil for the empty
// tree; else up is to be finished.
func (e *editor) finish() (root *item, done bool, err error) {
	for e.have || e.open != nil && !e.ended {
		if e.have {
			err = e.addOld()
		} else {
			err = e.follow()
		}
		if err != nil {
			return nil, false, err
		}
	}
	if e.open != nil {
		if root, err = e.last(); root != nil || err != nil {
			return root, true, err
		}
	}
	err = e.tell()
	return nil, e.up == nil, err
}

// last completes the node that the sequence ends with, and returns it if it is the root.
func (e *editor) last() (root *item, err error) {
	if e.level == 0 || e.open.builder.Count() > 1 {
		return nil, e.cut()
	}
	if e.held != nil { // a lone child joins the node before it
		err = e.held.add(e.first)
		c := e.held.builder.Child()
		e.held.child.Last, e.held.child.Count, e.held.child.Size = bytes.Clone(c.Last), c.Count, c.Size
		e.open = nil
		return nil, err
	}
	if e.start != nil { // so it does if that is an old node
		before := newCursor(e.w.files, e.top, e.level)
		ok, err := before.seekBefore(e.w.ctx, e.start)
		if err != nil {
			return nil, err
		}
		if ok {
			return nil, e.join(before.child())
		}
	}
	if e.level > 1 { // levels end where one node remains
		return &e.first, nil
	}
	return &item{task: e.w.write(e.open)}, nil
}

// join replaces an old node by one that has the lone child too.
func (e *editor) join(before rangefile.Child) error {
	n, err := e.w.files.node(e.w.ctx, before, e.level)
	if err != nil {
		return err
	}
	e.lo = before.Last
	e.open = e.w.node(e.level)
	for old := (&childRecords{node: n, i: -1}); old.Next(); {
		if err := e.open.add(item{Record: old.Record()}); err != nil {
			return err
		}
	}
	if err := e.open.add(e.first); err != nil {
		return err
	}
	return e.cut()
}

// childRecords are the records of an old metarange.
type childRecords struct {
	node *node
	i    int
}

func (c *childRecords) Next() bool { c.i++; return c.i < len(c.node.children) }

func (c *childRecords) Err() error { return nil }

func (c *childRecords) Record() rangefile.Record {
	return c.node.children[c.i].Record()
}
