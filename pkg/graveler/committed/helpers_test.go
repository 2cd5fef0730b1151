// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	"github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

const ns = "repo"

// small shapes make deep trees of few entries.
var small = shapes{ranges: shape{bits: 7, max: 300}, metaranges: shape{bits: 9, max: 1200}}

// newStore makes a store on counted memory, with the shapes of format version 1 unless others are given.
func newStore(t require.TestingT, sh ...shapes) (*Store, *blocktest.Counter) {
	counter := blocktest.Counting(mem.New())
	return storeOn(t, counter, sh...), counter
}

func storeOn(t require.TestingT, storage block.Storage, sh ...shapes) *Store {
	s, err := New(Config{Storage: func(context.Context, string) (block.Storage, error) { return storage, nil }})
	require.NoError(t, err)
	for _, x := range sh {
		s.shapes = x
	}
	return s
}

// reopened is the store with cold caches.
func reopened(t require.TestingT, s *Store) *Store {
	caches, err := newCaches(DefaultCacheBytes)
	require.NoError(t, err)
	return &Store{storage: s.storage, caches: caches, writers: s.writers, shapes: s.shapes, now: s.now}
}

// contents is the oracle: what a tree holds. Values are identities.
type contents map[string]string

func (c contents) keys() []string { return slices.Sorted(maps.Keys(c)) }

func (c contents) with(changes contents) contents {
	d := maps.Clone(c)
	if d == nil {
		d = contents{}
	}
	for k, v := range changes {
		if d[k] = v; v == "" {
			delete(d, k)
		}
	}
	return d
}

func value(identity string) *graveler.Value {
	if identity == "" {
		return nil
	}
	return &graveler.Value{Identity: []byte(identity), Data: []byte("data of " + identity)}
}

// iterator gives the contents as changes; an empty identity is a tombstone.
func (c contents) iterator() graveler.Iterator[graveler.Entry] {
	var es []graveler.Entry
	for _, k := range c.keys() {
		es = append(es, graveler.Entry{Key: graveler.Key(k), Value: value(c[k])})
	}
	return &sliceIterator{entries: es, at: -1}
}

type sliceIterator struct {
	entries []graveler.Entry
	at      int
	err     error // at the end
}

func (s *sliceIterator) Next() bool { s.at++; return s.at < len(s.entries) }
func (s *sliceIterator) SeekGE(key graveler.Key) {
	s.at = sort.Search(len(s.entries), func(i int) bool { return bytes.Compare(s.entries[i].Key, key) >= 0 }) - 1
}
func (s *sliceIterator) Item() graveler.Entry { return s.entries[s.at] }
func (s *sliceIterator) Err() error           { return s.err }
func (s *sliceIterator) Close() error         { return s.err }

// counted makes n entries without holding them.
type counted struct {
	n, at int
	entry func(i int) graveler.Entry
	each  func(i int)
}

func (c *counted) Next() bool {
	c.at++
	if c.each != nil {
		c.each(c.at)
	}
	return c.at <= c.n
}
func (c *counted) SeekGE(graveler.Key)  {}
func (c *counted) Item() graveler.Entry { return c.entry(c.at - 1) }
func (c *counted) Err() error           { return nil }
func (c *counted) Close() error         { return nil }

func apply(t require.TestingT, s *Store, tree graveler.MetaRangeID, changes contents) graveler.MetaRangeID {
	id, err := s.Apply(context.Background(), ns, tree, changes.iterator())
	require.NoError(t, err)
	return id
}

func write(t require.TestingT, s *Store, c contents) graveler.MetaRangeID {
	return apply(t, s, s.EmptyTree(), c)
}

// scanAll reads a whole tree.
func scanAll(s *Store, tree graveler.MetaRangeID) (contents, error) {
	it := s.Scan(context.Background(), ns, tree)
	c := contents{}
	for it.Next() {
		c[string(it.Item().Key)] = string(it.Item().Value.Identity)
	}
	return c, it.Close()
}

func requireContents(t require.TestingT, s *Store, tree graveler.MetaRangeID, want contents) {
	got, err := scanAll(s, tree)
	require.NoError(t, err)
	require.Equal(t, len(want), len(got))
	for k, v := range want {
		require.Equal(t, v, got[k], "key %q", k)
	}
}

// canonical computes the ID of a map as the package comment describes the shape: all records of a level at once, no editing.
func canonical(t require.TestingT, sh shapes, c contents) graveler.MetaRangeID {
	if len(c) == 0 {
		return graveler.MetaRangeID(rangefile.EmptyID().String())
	}
	var records []rangefile.Record
	for _, k := range c.keys() {
		v := value(c[k])
		records = append(records, rangefile.Record{Key: []byte(k), Identity: v.Identity, Data: v.Data})
	}
	for level := 0; ; level++ {
		nodes := cutAll(sh, level, records)
		records = nil
		for _, n := range nodes {
			b := rangefile.NewBuilder(level)
			for _, r := range n {
				require.NoError(t, b.Add(r))
			}
			child := b.Child()
			child.ID, _ = b.Build(nil)
			records = append(records, child.Record())
		}
		if level > 0 && len(nodes) == 1 {
			return graveler.MetaRangeID(rangefile.ID(records[0].Identity).String())
		}
	}
}

func cutAll(sh shapes, level int, records []rangefile.Record) (nodes [][]rangefile.Record) {
	sp := newSplitter(sh, level)
	var open []rangefile.Record
	for _, r := range records {
		open = append(open, r)
		if sp.add(r.Key, r.Size()) {
			nodes, open = append(nodes, open), nil
		}
	}
	switch {
	case level > 0 && len(open) == 1 && len(nodes) > 0:
		nodes[len(nodes)-1] = append(nodes[len(nodes)-1], open[0])
	case len(open) > 0:
		nodes = append(nodes, open)
	}
	return nodes
}

func height(t *testing.T, s *Store, tree graveler.MetaRangeID) int {
	f, err := s.open(t.Context(), ns)
	require.NoError(t, err)
	top, err := f.tree(t.Context(), tree)
	require.NoError(t, err)
	return top.level - 1
}
