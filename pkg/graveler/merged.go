// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"errors"
)

// layer is one source of a merged iteration. A layer may also hide what older layers have below a prefix.
type layer struct {
	entries Iterator[Entry] // nil: the layer only hides
	hides   bool
	prefix  Key

	head  Entry
	state layerState
}

type layerState int

const (
	layerStale layerState = iota // the head must be fetched
	layerReady
	layerDone
)

// merged iterates over layers, newest first, as one map: of entries with the same key the one of the newest layer stands. Layers
// are few, so the least head is found by looking at all.
type merged struct {
	layers []*layer
	// tombstones tells whether entries without a value are passed on (a stream of changes) or left out (a view).
	tombstones bool
	cur        Entry
	err        error
}

func (m *merged) Next() bool {
	for m.err == nil {
		newest := m.least()
		if newest == nil {
			return false
		}
		m.cur = newest.head
		// Whatever has this key is used up. The heads stay valid until their layers are moved on, which the next call does.
		for _, l := range m.layers {
			if l.state == layerReady && bytes.Equal(l.head.Key, m.cur.Key) {
				l.state = layerStale
			}
		}
		if m.cur.Value != nil || m.tombstones {
			return true
		}
	}
	return false
}

// least fetches what must be fetched and returns the newest of the layers whose head has the least key, nil at the end or on an error.
func (m *merged) least() *layer {
	var least *layer
	for i, l := range m.layers {
		if l.state == layerStale && !m.fetch(i) {
			return nil
		}
		if l.state == layerReady && (least == nil || bytes.Compare(l.head.Key, least.head.Key) < 0) {
			least = l
		}
	}
	return least
}

// fetch moves layer i to its next entry that no newer layer hides. It reports false on an error.
func (m *merged) fetch(i int) bool {
	l := m.layers[i]
	if l.entries == nil {
		l.state = layerDone
		return true
	}
	for l.entries.Next() {
		l.head = l.entries.Item()
		hidden := m.hider(i, l.head.Key)
		if hidden == nil {
			l.state = layerReady
			return true
		}
		past := prefixEnd(hidden.prefix)
		if past == nil {
			l.state = layerDone
			return true
		}
		l.entries.SeekGE(past)
	}
	m.err = l.entries.Err()
	l.state = layerDone
	return m.err == nil
}

// hider returns a layer newer than layer i that hides key, if there is one.
func (m *merged) hider(i int, key Key) *layer {
	for _, l := range m.layers[:i] {
		if l.hides && bytes.HasPrefix(key, l.prefix) {
			return l
		}
	}
	return nil
}

func (m *merged) SeekGE(key Key) {
	for _, l := range m.layers {
		if l.entries != nil {
			l.entries.SeekGE(key)
		}
		l.state = layerStale
	}
}

func (m *merged) Item() Entry { return m.cur }
func (m *merged) Err() error  { return m.err }

func (m *merged) Close() error {
	errs := []error{m.err}
	for _, l := range m.layers {
		if l.entries != nil {
			if err := l.entries.Close(); err != nil && !errors.Is(m.err, err) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// prefixEnd returns the least key that is greater than every key with the prefix; nil where there is none.
func prefixEnd(prefix Key) Key {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// erased iterates over the entries of a tree below a prefix as tombstones: what a deleted prefix does to the tree.
type erased struct {
	tree    Iterator[Entry]
	prefix  Key
	started bool
}

func (e *erased) Next() bool {
	if !e.started {
		e.SeekGE(e.prefix)
	}
	return e.tree.Next() && bytes.HasPrefix(e.tree.Item().Key, e.prefix)
}

func (e *erased) SeekGE(key Key) {
	e.started = true
	if bytes.Compare(key, e.prefix) < 0 {
		key = e.prefix
	}
	e.tree.SeekGE(key)
}

func (e *erased) Item() Entry  { return Entry{Key: e.tree.Item().Key} }
func (e *erased) Err() error   { return e.tree.Err() }
func (e *erased) Close() error { return e.tree.Close() }
