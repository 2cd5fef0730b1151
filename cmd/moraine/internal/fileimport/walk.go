// SPDX-License-Identifier: Apache-2.0

package fileimport

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// errReplaced: something else is at a path than a moment ago.
var errReplaced = errors.New("it was replaced while it was opened")

// Own is what Import.Skipped hears of something that Import.Skip names.
const Own = "belongs to the store"

// found is something that a walk comes by.
type found struct {
	path, rel string // rel is below the root, with slashes
	info      fs.FileInfo
	special   string // what it is, if it is neither a file nor a directory
	problem   error  // why it cannot be looked at
}

// walker goes through a directory in the order of the keys that files will have.
type walker struct {
	root string
	skip []fs.FileInfo
}

// walk calls visit for everything but directories, which it enters.
func (w *walker) walk(ctx context.Context, visit func(found) error) error {
	info, err := os.Lstat(w.root)
	if err != nil {
		return err
	}
	return w.enter(ctx, found{path: w.root, info: info}, visit)
}

func (w *walker) enter(ctx context.Context, dir found, visit func(found) error) error {
	entries, err := readDir(dir)
	if err != nil {
		dir.problem = err
		return visit(dir)
	}
	// "a/b" comes after "a.b", although "a" comes before it.
	name := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(name(a), name(b)) })
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := found{path: filepath.Join(dir.path, e.Name()), rel: e.Name()}
		if dir.rel != "" {
			f.rel = dir.rel + "/" + e.Name()
		}
		f.info, f.problem = e.Info()
		if f.problem == nil {
			f.special = w.special(f.info)
		}
		if f.problem == nil && f.special == "" && f.info.IsDir() {
			err = w.enter(ctx, f, visit)
		} else {
			err = visit(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// special says what something is that is not to be imported.
func (w *walker) special(info fs.FileInfo) string {
	switch mode := info.Mode(); {
	case slices.ContainsFunc(w.skip, func(s fs.FileInfo) bool { return os.SameFile(s, info) }):
		return Own
	case mode.IsRegular(), mode.IsDir():
		return ""
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeDevice != 0:
		return "device"
	default:
		return "special file"
	}
}

func readDir(dir found) (entries []fs.DirEntry, err error) {
	f, err := open(dir.path, dir.info)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.ReadDir(-1)
}

// open opens what info describes, and nothing that has taken its place: a link is not followed. Nor does it wait for somebody to write into a pipe.
func open(path string, info fs.FileInfo) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(info, now) {
		err = errReplaced
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
