// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"path"

	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/block"
)

// syncsAtOnce is how many syncs run at a time: enough for the file system to group them.
const syncsAtOnce = 8

// Sync implements [block.Storage]. Each file, and each directory from a file up to the root, is
// synced once.
func (s *storage) Sync(ctx context.Context, names []string) error {
	if err := s.check(ctx); err != nil {
		return fmt.Errorf("sync %d files in %s: %w", len(names), s.dir, err)
	}
	isFile := map[string]bool{} // false for the directories that lead to the files
	for _, name := range names {
		if err := block.CheckName(name); err != nil {
			return s.fail("sync", name, err)
		}
		isFile[name] = true
		for dir := path.Dir(name); ; dir = path.Dir(dir) {
			if _, known := isFile[dir]; known {
				break
			}
			isFile[dir] = false
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
	return g.Wait()
}

func (s *storage) sync(ctx context.Context, p string, file bool) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	if file {
		if _, err := s.stat(ctx, p); err != nil {
			return err
		}
	}
	f, err := s.root.Open(p)
	if err != nil {
		return err
	}
	return syncAndClose(f)
}
