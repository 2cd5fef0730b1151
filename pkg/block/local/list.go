// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/moraine-store/moraine/pkg/block"
)

// List implements [block.Storage]. It reads only directories that can hold the prefix, and keeps the
// entries of one directory per level in memory.
func (s *storage) List(ctx context.Context, prefix string) iter.Seq2[block.Info, error] {
	return func(yield func(block.Info, error) bool) {
		err := block.CheckPrefix(prefix)
		if err == nil {
			err = s.check(ctx)
		}
		if err != nil {
			yield(block.Info{}, s.fail("list", prefix, err))
			return
		}
		s.list(ctx, path.Dir(prefix+"x"), prefix, yield)
	}
}

// list yields what is below a directory, and reports whether to go on.
func (s *storage) list(ctx context.Context, dir, prefix string, yield func(block.Info, error) bool) bool {
	entries, err := s.readDir(dir)
	if err = missing(err); errors.Is(err, block.ErrNotFound) {
		return true
	}
	if err != nil {
		yield(block.Info{}, s.fail("list", dir, err))
		return false
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if block.CheckName(name) != nil {
			continue // temporary, or not ours
		}
		if e.IsDir() {
			if strings.HasPrefix(name+"/", prefix) && !s.list(ctx, name, prefix, yield) {
				return false
			}
			continue
		}
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		info, err := s.stat(ctx, name)
		if err = missing(err); errors.Is(err, block.ErrNotFound) {
			continue // deleted meanwhile, or not a regular file
		}
		if err != nil {
			yield(block.Info{}, s.fail("list", name, err))
			return false
		}
		if !yield(info, nil) {
			return false
		}
	}
	return true
}

// readDir gives the entries of a directory in the order of the names below them: a directory counts
// with its slash, so "a.b" comes before what is in "a".
func (s *storage) readDir(dir string) ([]fs.DirEntry, error) {
	f, err := s.root.Open(dir)
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(sortName(a), sortName(b)) })
	return entries, nil
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}
