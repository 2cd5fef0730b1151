// SPDX-License-Identifier: Apache-2.0

// Package memtrees keeps committed trees in memory, as plain sorted slices named by a hash of their contents. It is the simplest thing that does
// what graveler.Trees promises: tests of the layers above run on it quickly, and tests of the real trees can compare with it.
package memtrees

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

var _ graveler.Trees = (*Store)(nil)

// Store holds trees. It is safe for concurrent use.
type Store struct {
	// Now is the clock that stamps files. It may be set before the store is used.
	Now func() time.Time

	mu    sync.Mutex
	trees map[string]map[graveler.MetaRangeID][]graveler.Entry // by namespace
	// written says when the file of a tree was last put or refreshed, by namespace and ID.
	written map[string]time.Time
}

// New returns a store without trees.
func New() *Store {
	return &Store{Now: time.Now, trees: map[string]map[graveler.MetaRangeID][]graveler.Entry{}, written: map[string]time.Time{}}
}

// EmptyTree implements [graveler.Trees]. It is that of package committed, which a sqlstore.Store knows.
func (s *Store) EmptyTree() graveler.MetaRangeID { return identify(nil) }

// CheckNamespace implements [graveler.Trees]; every namespace will do.
func (s *Store) CheckNamespace(context.Context, string) error { return nil }

func identify(entries []graveler.Entry) graveler.MetaRangeID {
	if len(entries) == 0 {
		return graveler.MetaRangeID(rangefile.EmptyID().String())
	}
	h := sha256.New()
	for _, e := range entries {
		for _, b := range [][]byte{e.Key, e.Value.Identity, e.Value.Data} {
			h.Write(binary.AppendUvarint(nil, uint64(len(b))))
			h.Write(b)
		}
	}
	return graveler.MetaRangeID(hex.EncodeToString(h.Sum(nil)))
}

func (s *Store) load(ns string, id graveler.MetaRangeID) ([]graveler.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, ok := s.trees[ns][id]
	if !ok && id != s.EmptyTree() {
		return nil, fmt.Errorf("%w: no tree %s in %s", graveler.ErrCorrupt, id, ns)
	}
	return entries, nil
}

func (s *Store) save(ns string, entries []graveler.Entry) graveler.MetaRangeID {
	id := identify(entries)
	if len(entries) == 0 {
		return id // has no file
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trees[ns] == nil {
		s.trees[ns] = map[graveler.MetaRangeID][]graveler.Entry{}
	}
	s.trees[ns][id] = entries
	s.written[ns+"/"+string(id)] = s.Now()
	return id
}

// Get implements [graveler.Trees].
func (s *Store) Get(ctx context.Context, ns string, tree graveler.MetaRangeID, key graveler.Key) (*graveler.Value, error) {
	entries, err := s.load(ns, tree)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	i, found := slices.BinarySearchFunc(entries, key, func(e graveler.Entry, key graveler.Key) int { return bytes.Compare(e.Key, key) })
	if !found {
		return nil, graveler.ErrEntryNotFound
	}
	return entries[i].Value.Clone(), nil
}

// Scan implements [graveler.Trees].
func (s *Store) Scan(_ context.Context, ns string, tree graveler.MetaRangeID) graveler.Iterator[graveler.Entry] {
	entries, err := s.load(ns, tree)
	return &iterator[graveler.Entry]{items: entries, key: func(e graveler.Entry) graveler.Key { return e.Key }, at: -1, err: err}
}

// Apply implements [graveler.Trees]. The file of the tree that it returns is young, unless there were no changes: then it was not touched.
func (s *Store) Apply(ctx context.Context, ns string, tree graveler.MetaRangeID, changes graveler.Iterator[graveler.Entry]) (graveler.MetaRangeID, error) {
	old, err := s.load(ns, tree)
	if err != nil {
		return "", err
	}
	var entries []graveler.Entry
	var last graveler.Key
	for changes.Next() {
		c := changes.Item().Clone()
		if last != nil && bytes.Compare(last, c.Key) >= 0 {
			return "", fmt.Errorf("changes are not in ascending order: %q after %q", c.Key, last)
		}
		last = c.Key
		for len(old) > 0 && bytes.Compare(old[0].Key, c.Key) < 0 {
			entries, old = append(entries, old[0]), old[1:]
		}
		if len(old) > 0 && bytes.Equal(old[0].Key, c.Key) {
			old = old[1:]
		}
		if c.Value != nil {
			entries = append(entries, c)
		}
	}
	if err := changes.Err(); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if last == nil {
		return tree, nil
	}
	return s.save(ns, append(entries, old...)), nil
}

// Drop implements [graveler.Trees].
func (s *Store) Drop(_ context.Context, ns string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.trees, ns)
	return nil
}

// Diff implements [graveler.Trees].
func (s *Store) Diff(_ context.Context, ns string, left, right graveler.MetaRangeID) graveler.Iterator[graveler.Diff] {
	it := &iterator[graveler.Diff]{key: func(d graveler.Diff) graveler.Key { return d.Key }, at: -1}
	l, err := s.load(ns, left)
	if err != nil {
		it.err = err
		return it
	}
	r, err := s.load(ns, right)
	if err != nil {
		it.err = err
		return it
	}
	for len(l) > 0 || len(r) > 0 {
		var d graveler.Diff
		if len(r) == 0 || len(l) > 0 && bytes.Compare(l[0].Key, r[0].Key) <= 0 {
			d = graveler.Diff{Key: l[0].Key, Left: l[0].Value}
			l = l[1:]
		} else {
			d = graveler.Diff{Key: r[0].Key}
		}
		if len(r) > 0 && bytes.Equal(r[0].Key, d.Key) {
			d.Right = r[0].Value
			r = r[1:]
		}
		if !d.Left.Same(d.Right) {
			it.items = append(it.items, d)
		}
	}
	return it
}

// iterator walks a sorted slice.
type iterator[T any] struct {
	items []T
	key   func(T) graveler.Key
	at    int
	err   error
}

func (it *iterator[T]) Next() bool {
	if it.err != nil || it.at+1 >= len(it.items) {
		it.at = len(it.items)
		return false
	}
	it.at++
	return true
}

func (it *iterator[T]) SeekGE(key graveler.Key) {
	i, _ := slices.BinarySearchFunc(it.items, key, func(t T, key graveler.Key) int { return bytes.Compare(it.key(t), key) })
	it.at = i - 1
}

func (it *iterator[T]) Item() T      { return it.items[it.at] }
func (it *iterator[T]) Err() error   { return it.err }
func (it *iterator[T]) Close() error { return it.err }
