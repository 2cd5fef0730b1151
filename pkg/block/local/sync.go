// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/block"
)

// syncsAtOnce is how many syncs run at a time: enough for the file system to group them.
const syncsAtOnce = 8

// Sync implements [block.Storage]. What is not known to be durable already is synced once: a file unless Put has
// written it, the directory that it is in, and each one above in which the name of the next one is new.
func (s *storage) Sync(ctx context.Context, names []string) error {
	if err := s.check(ctx); err != nil {
		return fmt.Errorf("sync %d files in %s: %w", len(names), s.dir, err)
	}
	isFile := map[string]bool{}
	named := map[string]identity{} // directories whose names become durable
	for _, name := range names {
		if err := block.CheckName(name); err != nil {
			return s.fail("sync", name, err)
		}
		isFile[name] = true
	}
	for _, name := range names {
		if err := s.above(path.Dir(name), isFile, named); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(syncsAtOnce)
	for p, file := range isFile {
		g.Go(func() error {
			if err := s.sync(ctx, p, file); err != nil {
				return s.fail("sync", p, missing(err))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	s.durable.addDirs(named)
	return nil
}

// above adds to syncs a directory that holds a file, and those above it that do not durably name the next one, which it adds to named.
func (s *storage) above(dir string, syncs map[string]bool, named map[string]identity) error {
	syncs[dir] = false
	for ; dir != "."; dir = path.Dir(dir) {
		if _, done := named[dir]; done {
			return nil
		}
		info, err := s.root.Lstat(dir)
		if err != nil {
			return s.fail("sync", dir, missing(err))
		}
		if id := identityOf(info); !s.durable.hasDir(dir, id) {
			syncs[path.Dir(dir)] = false
			named[dir] = id
		}
	}
	return nil
}

func (s *storage) sync(ctx context.Context, p string, file bool) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	if file {
		info, err := s.regular(p)
		if err != nil || s.durable.takeFile(p, identityOf(info)) {
			return err
		}
	}
	f, err := s.root.Open(p)
	if err != nil {
		return err
	}
	s.syncs.Add(1)
	return syncAndClose(f)
}

// regular returns what there is to know of a file.
func (s *storage) regular(name string) (fs.FileInfo, error) {
	info, err := s.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = block.ErrNotFound
	}
	return info, err
}

// Syncs returns how many syncs of files and directories Put and Sync have asked the system for.
func (s *storage) Syncs() int64 { return s.syncs.Load() }
