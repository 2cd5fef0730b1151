// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/block"
)

const (
	fileMode = 0o600
	dirMode  = 0o700

	tempDir = "~tmp"
	// staleAge is far above the time that any Put takes: a younger temporary file may be somebody's.
	staleAge = 24 * time.Hour
)

// Open is the [block.Opener] of file:PATH (relative to the current directory, or absolute) and
// file:///PATH. The path is taken as it stands; nothing in it is unescaped.
func Open(_ context.Context, url string, o block.OpenOptions) (block.Storage, error) {
	_, dir, _ := strings.Cut(url, ":")
	if host, ok := strings.CutPrefix(dir, "//"); ok {
		if !strings.HasPrefix(host, "/") {
			return nil, fmt.Errorf("%w %q: use file:PATH or file:///PATH", block.ErrInvalidURL, url)
		}
		dir = host
	}
	if dir == "" {
		return nil, fmt.Errorf("%w %q: the path is missing", block.ErrInvalidURL, url)
	}
	return OpenDir(dir, o)
}

// OpenDir opens the storage in a directory, and creates it unless it is opened read-only.
func OpenDir(dir string, o block.OpenOptions) (block.Storage, error) {
	s, err := open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("directory %s: %w", dir, cause(err))
	}
	if o.ReadOnly {
		return block.ReadOnly(s), nil
	}
	return s, nil
}

func open(dir string, o block.OpenOptions) (*storage, error) {
	if !o.ReadOnly {
		if err := makeDurable(dir); err != nil {
			return nil, err
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errors.New("not a directory")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &storage{dir: dir, root: root}
	if !o.ReadOnly {
		if err := s.prepareTemp(time.Now()); err != nil {
			return nil, errors.Join(cause(err), root.Close())
		}
	}
	return s, nil
}

// makeDurable creates a directory and what is missing above it, and syncs the directories that hold
// the new ones. The one above dir is always synced: another process may have created dir just now.
func makeDurable(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	above := []string{filepath.Dir(abs)}
	for {
		last := above[len(above)-1]
		_, err := os.Stat(last)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		above = append(above, filepath.Dir(last))
	}
	_, err = os.Stat(abs)
	existed := err == nil
	if err := os.MkdirAll(abs, dirMode); err != nil {
		return err
	}
	for _, d := range above {
		err := syncDir(d)
		if existed && errors.Is(err, fs.ErrPermission) {
			continue // whoever created dir could read what holds it, and synced it
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return syncAndClose(f)
}

func syncAndClose(f *os.File) error {
	return errors.Join(f.Sync(), f.Close())
}

// prepareTemp makes sure that there is a place for temporary files, and takes out what processes
// that died have left there.
func (s *storage) prepareTemp(now time.Time) error {
	if err := s.root.Mkdir(tempDir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := s.readDir(tempDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(tempDir, e.Name())
		info, err := s.root.Lstat(name)
		if err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > staleAge {
			err = s.root.Remove(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the temporary file %s: %w", name, cause(err))
		}
	}
	return nil
}
