// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// Scan iterates over the entries of a tree. It opens nothing until the first Next. A seek costs nothing within the block it stands in, and at most
// one block, one index and one metarange per level elsewhere, each through the caches. A long walk reads whole files, one ahead. It holds
// one node per level and at most two ranges in memory.
func (s *Store) Scan(ctx context.Context, ns string, tree graveler.MetaRangeID) graveler.Iterator[graveler.Entry] {
	return &scan{ctx: ctx, store: s, ns: ns, tree: tree, seek: []byte{}}
}

type scan struct {
	ctx   context.Context
	store *Store
	ns    string
	tree  graveler.MetaRangeID

	cursor *cursor // nil before the first Next
	leaves leaves
	seek   []byte          // where to go first, nil if Next just goes on
	it     *rangefile.Iter // of the range that the cursor stands on, nil if there is none or it is not open
	value  graveler.Value
	entry  graveler.Entry
	err    error
	closed bool
}

func (s *scan) Next() bool {
	for s.err == nil && !s.closed {
		if s.it == nil || s.seek != nil {
			if !s.position() {
				return false
			}
		}
		if s.it.Next() {
			r := s.it.Record()
			s.value = graveler.Value{Identity: r.Identity, Data: r.Data}
			s.entry = graveler.Entry{Key: r.Key, Value: &s.value}
			return true
		}
		if s.fail(s.it.Err()) || !s.advance() {
			return false
		}
	}
	return false
}

// position goes to the range of the key to seek and to the key in it. False at the end of the tree and on an error.
func (s *scan) position() bool {
	if s.cursor == nil && s.fail(s.start()) || s.seek == nil {
		return false
	}
	stays := s.it != nil && contains(s.cursor.child(), s.seek)
	if !stays {
		s.it = nil
		ok, err := s.cursor.seekGE(s.ctx, s.seek)
		if s.fail(err) {
			return false
		}
		if !ok {
			s.seek = nil
			return false
		}
		if s.it, err = s.leaves.look(s.ctx, s.cursor.child()); s.fail(err) {
			return false
		}
	}
	s.leaves.seeking = true
	s.it.SeekGE(s.seek)
	s.leaves.seeking = false
	s.seek = nil
	return true
}

func (s *scan) start() error {
	files, err := s.store.open(s.ctx, s.ns)
	if err != nil {
		return err
	}
	top, err := files.tree(s.ctx, s.tree)
	if err != nil {
		return err
	}
	s.leaves.files = files
	s.cursor = newCursor(files, top, 0)
	return nil
}

// advance goes to the beginning of the next range.
func (s *scan) advance() bool {
	s.it = nil
	ok, err := s.cursor.next(s.ctx)
	if s.fail(err) || !ok || s.fail(s.ctx.Err()) {
		return false
	}
	if s.leaves.streaming {
		s.it, err = s.leaves.stream(s.ctx, s.cursor)
	} else {
		s.it, err = s.leaves.look(s.ctx, s.cursor.child())
	}
	return !s.fail(err)
}

func contains(c rangefile.Child, key []byte) bool {
	return bytes.Compare(c.First, key) <= 0 && bytes.Compare(key, c.Last) <= 0
}

func (s *scan) SeekGE(key graveler.Key) {
	s.seek = append(make([]byte, 0, len(key)+1), key...) // not nil, whatever key is
}

func (s *scan) Item() graveler.Entry { return s.entry }

func (s *scan) Err() error { return s.err }

func (s *scan) Close() error {
	if !s.closed {
		s.closed = true
		s.leaves.close()
		s.it, s.cursor = nil, nil
	}
	return s.err
}

func (s *scan) fail(err error) bool {
	if err != nil {
		s.err = fmt.Errorf("scan tree %s: %w", s.tree, damage(err))
	}
	return err != nil
}
