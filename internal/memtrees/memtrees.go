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
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

var _ graveler.Trees = (*Store)(nil)

// Store holds trees. It is safe for concurrent use.
type Store struct {
	mu    sync.Mutex
	trees map[string]map[graveler.MetaRangeID][]graveler.Entry // by namespace
	// written says when a tree was last written, by namespace and ID.
	written map[string]time.Time
}

// New returns a store without trees.
func New() *Store {
	return &Store{trees: map[string]map[graveler.MetaRangeID][]graveler.Entry{}, written: map[string]time.Time{}}
}

// EmptyTree implements [graveler.Trees].
func (s *Store) EmptyTree() graveler.MetaRangeID { return identify(nil) }

// CheckNamespace implements [graveler.Trees]; every namespace will do.
func (s *Store) CheckNamespace(context.Context, string) error { return nil }

func identify(entries []graveler.Entry) graveler.MetaRangeID {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trees[ns] == nil {
		s.trees[ns] = map[graveler.MetaRangeID][]graveler.Entry{}
	}
	id := identify(entries)
	s.trees[ns][id] = entries
	s.written[ns+"/"+string(id)] = time.Now()
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

// Apply implements [graveler.Trees].
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
	return s.save(ns, append(entries, old...)), nil
}

// Walk implements [graveler.Trees]. A tree is one file, its root.
func (s *Store) Walk(ctx context.Context, ns string, tree graveler.MetaRangeID, visit func(graveler.TreeFile) (bool, error)) error {
	if tree == s.EmptyTree() {
		return ctx.Err()
	}
	enter, err := visit(graveler.TreeFile{ID: string(tree), Root: true})
	if err == nil && enter {
		_, err = s.load(ns, tree)
	}
	return err
}

// ListFiles implements [graveler.Trees].
func (s *Store) ListFiles(_ context.Context, ns string) iter.Seq2[graveler.StoredFile, error] {
	return func(yield func(graveler.StoredFile, error) bool) {
		for _, f := range s.files(ns) {
			if !yield(f, nil) {
				return
			}
		}
	}
}

func (s *Store) files(ns string) []graveler.StoredFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	var files []graveler.StoredFile
	for _, id := range slices.Sorted(maps.Keys(s.trees[ns])) {
		files = append(files, graveler.StoredFile{Name: string(id), ID: string(id), Size: int64(len(s.trees[ns][id])), ModTime: s.written[ns+"/"+string(id)]})
	}
	return files
}

// CheckFile implements [graveler.Trees].
func (s *Store) CheckFile(_ context.Context, ns string, f graveler.TreeFile) error {
	_, err := s.load(ns, graveler.MetaRangeID(f.ID))
	return err
}

// ScanFile implements [graveler.Trees].
func (s *Store) ScanFile(_ context.Context, ns, id string) iter.Seq2[graveler.Entry, error] {
	return func(yield func(graveler.Entry, error) bool) {
		entries, err := s.load(ns, graveler.MetaRangeID(id))
		if err != nil {
			yield(graveler.Entry{}, err)
		}
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// CopyTree implements [graveler.Trees].
func (s *Store) CopyTree(ctx context.Context, from, to string, tree graveler.MetaRangeID, visit func(graveler.TreeFile) (bool, error)) error {
	return s.Walk(ctx, from, tree, func(f graveler.TreeFile) (bool, error) {
		wanted, err := visit(f)
		if !wanted || err != nil {
			return false, err
		}
		entries, err := s.load(from, tree)
		if err == nil {
			s.save(to, entries)
		}
		return false, err
	})
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
