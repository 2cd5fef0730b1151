// SPDX-License-Identifier: Apache-2.0

package memtrees

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

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

// FileTime implements [graveler.Trees].
func (s *Store) FileTime(ctx context.Context, _ string) (time.Time, error) { return s.Now(), ctx.Err() }

// RemoveFiles implements [graveler.Trees]. A tree that is removed is as good as never built.
func (s *Store) RemoveFiles(ctx context.Context, ns string, ids []string, before time.Time) (removed []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if now := s.Now(); before.After(now.Add(-graveler.FileGrace)) {
		return nil, fmt.Errorf("%w: removal of files from before %s, at %s", graveler.ErrInvalidValue, before, now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		tree := graveler.MetaRangeID(id)
		if _, ok := s.trees[ns][tree]; ok && s.written[ns+"/"+id].Before(before) {
			delete(s.trees[ns], tree)
			delete(s.written, ns+"/"+id)
			removed = append(removed, id)
		}
	}
	return removed, nil
}
