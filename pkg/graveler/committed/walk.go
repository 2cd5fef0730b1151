// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"time"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// Walk visits the files of a tree, each before those below it, in the order of their keys. A file is read only to visit what is
// below it: a range never is. What several trees share is visited once for each; who remembers what was visited need not enter it
// again.
func (s *Store) Walk(ctx context.Context, ns string, tree graveler.MetaRangeID, visit func(graveler.TreeFile) (enter bool, err error)) error {
	files, err := s.open(ctx, ns)
	if err != nil {
		return err
	}
	id, err := rangefile.ParseID(string(tree))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", graveler.ErrInvalidTree, err)
	case id == rangefile.EmptyID():
		return nil
	}
	enter, err := visit(graveler.TreeFile{ID: string(tree), Root: true})
	if err != nil || !enter {
		return err
	}
	root, err := files.load(ctx, id, -1)
	if err == nil {
		err = files.walk(ctx, root, visit)
	}
	if err != nil {
		return fmt.Errorf("walk tree %s: %w", tree, err)
	}
	return nil
}

func (f *files) walk(ctx context.Context, n *node, visit func(graveler.TreeFile) (bool, error)) error {
	for _, c := range n.children {
		if err := ctx.Err(); err != nil {
			return err
		}
		enter, err := visit(treeFile(c, n.level-1))
		if err != nil {
			return err
		}
		if !enter || n.level == 1 {
			continue
		}
		below, err := f.node(ctx, c, n.level-1)
		if err == nil {
			err = f.walk(ctx, below, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func treeFile(c rangefile.Child, level int) graveler.TreeFile {
	return graveler.TreeFile{ID: c.ID.String(), Level: level, First: c.First, Last: c.Last, Entries: c.Count, Bytes: c.Size}
}

// ListFiles yields what is in a namespace, of which the store reads nothing. Its cost is that of a listing of the block storage.
func (s *Store) ListFiles(ctx context.Context, ns string) iter.Seq2[graveler.StoredFile, error] {
	return func(yield func(graveler.StoredFile, error) bool) {
		files, err := s.open(ctx, ns)
		if err != nil {
			yield(graveler.StoredFile{}, err)
			return
		}
		for info, err := range files.storage.List(ctx, "") {
			if err != nil {
				yield(graveler.StoredFile{}, fmt.Errorf("list files of %s: %w", ns, err))
				return
			}
			f := graveler.StoredFile{Name: info.Name, Size: info.Size, ModTime: info.ModTime, Sweep: isSweepFile(info.Name)}
			if id, err := rangefile.ParseID(path.Base(info.Name)); err == nil && info.Name == fileName(id) {
				f.ID = id.String()
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

// CheckFile reads a file of a tree past the caches and checks every byte of it: checksums, order, the ID, which is computed again
// from the records, and what its parent says of it.
func (s *Store) CheckFile(ctx context.Context, ns string, want graveler.TreeFile) error {
	files, err := s.open(ctx, ns)
	if err != nil {
		return err
	}
	id, err := rangefile.ParseID(want.ID)
	if err != nil {
		return fmt.Errorf("%w: %w", graveler.ErrInvalidTree, err)
	}
	level := want.Level
	if want.Root {
		level = -1
	}
	file, data, err := files.whole(ctx, id, level)
	if err != nil {
		return err
	}
	if file.Level > 0 { // children do not overlap
		if _, err := decodeNode(ctx, file, data); err != nil {
			return damage(fmt.Errorf("%s: %w", files.path(id), err))
		}
	}
	b := rangefile.NewBuilder(file.Level)
	var block rangefile.Block
	it := file.Iter(func(i int) (*rangefile.Block, error) { return file.Read(ctx, data, i, &block) })
	for it.Next() {
		if err := b.Add(it.Record()); err != nil {
			return damage(fmt.Errorf("%s: %w", files.path(id), err))
		}
	}
	if it.Err() != nil {
		return damage(it.Err())
	}
	if uint64(b.Count()) != file.Count {
		return damage(fmt.Errorf("%s: %d records, not %d: %w", files.path(id), b.Count(), file.Count, rangefile.ErrCorrupt))
	}
	found := treeFile(b.Child(), file.Level)
	if found.ID = want.ID; !want.Root && !found.Equal(want) {
		return damage(fmt.Errorf("%s is not what its parent says: %w", files.path(id), rangefile.ErrCorrupt))
	}
	if computed, _ := b.Build(nil); computed != id {
		return damage(fmt.Errorf("%s holds what has the ID %s: %w", files.path(id), computed, rangefile.ErrCorrupt))
	}
	return nil
}

// ScanFile iterates over the entries of one range, which it reads at once. A metarange has none.
func (s *Store) ScanFile(ctx context.Context, ns, id string) iter.Seq2[graveler.Entry, error] {
	return func(yield func(graveler.Entry, error) bool) {
		it, err := s.recordsOf(ctx, ns, id)
		for err == nil && it != nil && it.Next() {
			r := it.Record()
			if !yield(graveler.Entry{Key: r.Key, Value: &graveler.Value{Identity: r.Identity, Data: r.Data}}, nil) {
				return
			}
		}
		if err == nil && it != nil {
			err = damage(it.Err())
		}
		if err != nil {
			yield(graveler.Entry{}, err)
		}
	}
}

// recordsOf opens a range; nil for a metarange.
func (s *Store) recordsOf(ctx context.Context, ns, id string) (*rangefile.Iter, error) {
	files, err := s.open(ctx, ns)
	if err != nil {
		return nil, err
	}
	parsed, err := rangefile.ParseID(id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", graveler.ErrInvalidRef, err)
	}
	data, err := files.storage.Get(ctx, fileName(parsed))
	if err != nil {
		return nil, files.failed(parsed, err)
	}
	file, err := rangefile.Open(ctx, files.path(parsed), rangefile.Bytes(data), int64(len(data)))
	if err != nil {
		return nil, damage(err)
	}
	if file.Level > 0 {
		return nil, files.expect(file, parsed, -1)
	}
	var b rangefile.Block
	it := file.Iter(func(i int) (*rangefile.Block, error) { return file.Read(ctx, rangefile.Bytes(data), i, &b) })
	return it, files.expect(file, parsed, 0)
}

// CopyTree makes a tree of one namespace one of another, durably. It copies the files that are not there, bytes and all, once it
// has checked them, and looks at those that visit wants copied, each before those below it. Like a build it refreshes old files
// that it finds in place, and returns graveler.ErrSwept where some were removed meanwhile. Who copies many trees and remembers
// what was visited sees each file once.
func (s *Store) CopyTree(ctx context.Context, from, to string, tree graveler.MetaRangeID, visit func(graveler.TreeFile) (copy bool, err error)) error {
	source, err := s.open(ctx, from)
	if err != nil {
		return err
	}
	target, err := s.open(ctx, to)
	if err != nil {
		return err
	}
	var names []string
	err = s.Walk(ctx, from, tree, func(f graveler.TreeFile) (bool, error) {
		if wanted, err := visit(f); !wanted || err != nil {
			return false, err
		}
		id, err := rangefile.ParseID(f.ID)
		if err != nil {
			return false, err
		}
		names = append(names, fileName(id))
		if there, err := target.keep(ctx, fileName(id), s.now()); there || err != nil {
			return true, err
		}
		if err := s.CheckFile(ctx, from, f); err != nil {
			return false, err
		}
		data, err := source.storage.Get(ctx, fileName(id))
		if err != nil {
			return false, source.failed(id, err)
		}
		return true, target.storage.Put(ctx, fileName(id), data)
	})
	if err == nil && len(names) > 0 {
		err = target.settle(ctx, names)
	}
	if err != nil {
		return fmt.Errorf("copy tree %s from %s to %s: %w", tree, from, to, err)
	}
	return nil
}

// keep reports whether a file is in place, and sees to it that it stays.
func (f *files) keep(ctx context.Context, name string, now time.Time) (bool, error) {
	info, err := f.storage.Stat(ctx, name)
	if err == nil && !young(info, now) {
		err = f.storage.Refresh(ctx, name)
	}
	if errors.Is(err, block.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
