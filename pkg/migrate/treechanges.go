// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// treeReader reads what became of the trees of a repository.
type treeReader struct {
	trees []graveler.MetaRangeID // by the place of the metarange; "": it has not become a tree
	empty graveler.MetaRangeID
	scan  func(graveler.MetaRangeID) (graveler.Iterator[graveler.Entry], error)
}

func (r *treeReader) tree(at int32) graveler.MetaRangeID {
	if at == noTree {
		return r.empty
	}
	return r.trees[at]
}

// steps are pulled one by one, since the entries of a tree's ranges come behind it.
type steps struct {
	next func() (treeStep, error, bool)
	stop func()
	left int // ranges of the last tree that have not come yet
}

// pullSteps has the next range read while the last one is worked on.
func pullSteps(ctx context.Context, s *treeSteps) *steps {
	next, stop := iter.Pull2(oneAhead(s.all(ctx)))
	return &steps{next: next, stop: stop}
}

// errOutOfStep: trees and the entries behind them were not taken one by one. That would be a mistake here.
var errOutOfStep = errors.New("entries of trees are out of step")

// change returns the next tree, without one after the last. Its ranges must have been taken, or left out, before the next call.
func (s *steps) change() (treeStep, error) {
	if s.left > 0 {
		return treeStep{}, errOutOfStep
	}
	step, err, more := s.next()
	if err != nil || !more {
		return treeStep{}, err
	}
	s.left = len(step.toRead())
	return step, nil
}

// entries returns the entries of the next range.
func (s *steps) entries() (treeStep, error) {
	if s.left == 0 {
		return treeStep{}, errOutOfStep
	}
	step, err, more := s.next()
	if err == nil && !more {
		err = errOutOfStep
	}
	s.left--
	return step, err
}

// leave leaves out what has not come of the last tree.
func (s *steps) leave() error {
	for s.left > 0 {
		if _, err := s.entries(); err != nil {
			return err
		}
	}
	return nil
}

// errStopped ends a walk that its caller wants no more of.
var errStopped = errors.New("stopped")

// newEntries gives the entries of a span in the new tree, by key, and the ranges of which the source has the file no more, if it
// goes on behind these.
func (r *treeReader) newEntries(s *steps, sp span, emit func(graveler.Entry) error, unread func(Range, error) error) error {
	for _, changed := range sp.ranges {
		if changed.from == noTree {
			step, err := s.entries()
			if err == nil && step.unread != nil {
				err = unread(changed.Range, step.unread)
			}
			if err != nil {
				return err
			}
			for _, e := range step.entries {
				if err := emit(e); err != nil {
					return err
				}
			}
			continue
		}
		if err := r.between(changed.from, changed.First, changed.Last, emit); err != nil {
			return err
		}
	}
	return nil
}

// between gives the entries of a tree from one key to another.
func (r *treeReader) between(tree int32, first, last []byte, emit func(graveler.Entry) error) error {
	it, err := r.scan(r.tree(tree))
	if err != nil {
		return err
	}
	w := within{Iterator: it}
	for w.seek(first, last); w.ok && err == nil; w.next() {
		err = emit(w.Item())
	}
	return errors.Join(err, it.Close())
}

// within goes through the entries of one span after another.
type within struct {
	graveler.Iterator[graveler.Entry]
	last []byte
	ok   bool // it stands on an entry of the span
}

func (w *within) seek(first, last []byte) {
	w.SeekGE(first)
	w.last = last
	w.next()
}

func (w *within) next() { w.ok = w.Next() && bytes.Compare(w.Item().Key, w.last) <= 0 }

// changes yields what makes the new tree of the base, by key, comparing identities and data.
func (r *treeReader) changes(c *treeChange, s *steps) iter.Seq2[graveler.Entry, error] {
	return func(yield func(graveler.Entry, error) bool) {
		err := r.eachChange(c, s, func(e graveler.Entry) error {
			if !yield(e, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(graveler.Entry{}, err)
		}
	}
}

func (r *treeReader) eachChange(c *treeChange, s *steps, emit func(graveler.Entry) error) (err error) {
	it, err := r.scan(r.tree(c.base))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	old := within{Iterator: it}
	remove := func(below []byte) error { // what the base has before a key; nil: in all of the span
		for ; old.ok && (below == nil || bytes.Compare(old.Item().Key, below) < 0); old.next() {
			if err := emit(graveler.Entry{Key: old.Item().Key}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, sp := range c.spans {
		old.seek(sp.first, sp.last)
		err := r.newEntries(s, sp, func(e graveler.Entry) error {
			if err := remove(e.Key); err != nil {
				return err
			}
			if old.ok && bytes.Equal(old.Item().Key, e.Key) {
				same := alike(old.Item().Value, e.Value)
				old.next()
				if same {
					return nil
				}
			}
			return emit(e)
		}, nil)
		if err == nil {
			err = remove(nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// alike is stricter than Same: entries of one identity may have data that differ.
func alike(a, b *graveler.Value) bool {
	return bytes.Equal(a.Identity, b.Identity) && bytes.Equal(a.Data, b.Data)
}

// entryChanges is a sequence of changes as an iterator, which cannot seek.
type entryChanges struct {
	next func() (graveler.Entry, error, bool)
	stop func()
	item graveler.Entry
	err  error
}

func iterate(changes iter.Seq2[graveler.Entry, error]) *entryChanges {
	next, stop := iter.Pull2(changes)
	return &entryChanges{next: next, stop: stop}
}

func (c *entryChanges) Next() bool {
	if c.err != nil {
		return false
	}
	var more bool
	c.item, c.err, more = c.next()
	return more && c.err == nil
}

func (c *entryChanges) SeekGE(key graveler.Key) {
	c.err = fmt.Errorf("seek %s in changes, which come once", quoted(string(key)))
}

func (c *entryChanges) Item() graveler.Entry { return c.item }
func (c *entryChanges) Err() error           { return c.err }

func (c *entryChanges) Close() error {
	c.stop()
	return c.err
}
