// SPDX-License-Identifier: Apache-2.0

// Package local keeps block storage in a directory: a name is the path of a file below it.
//
// # Durability
//
// Put writes to a temporary name, syncs, and renames. A file is thus never seen half written, and the
// name of a file never leads to contents that are not on the device: not after a loss of power, and
// not when two writers of one name rename over each other after one of them was told that its file is
// safe. Syncing later, together with others, was measured to cost the same as long as several
// Puts run at a time (the file system groups their syncs), and would give up that second guarantee.
//
// Sync then syncs the directory that a file is in, which nobody may have synced since the file got its name,
// and, unless this process has done so before, each directory further up, which another process may have created a moment
// ago. It also syncs each file that is not as Put of this process left it: somebody may have copied it here.
// What is done already is known by inode, so that a directory which somebody has moved away and replaced is synced anew.
//
// # Layout
//
// Temporary files stand in one directory, "~tmp", whose name is no valid name of a file; what a dead
// process left there is removed on open when it is older than a day. Anything else with a name that
// is not valid (lost+found, say) is left alone and not shown. Files are created with mode 0600,
// directories with 0700. Directories that have become empty stay, so that Delete does not race with Put.
//
// # Open files
//
// The files of which parts were read last stay open, at most 512. What is read from one is what its path leads to at that moment:
// a file that was removed or replaced, by whichever process, has no name any more and is opened anew. The space of a removed one
// is free when the last process that has it open closes it or finds out.
//
// Unix only: it relies on syncing directories and on renaming over a file that others have open.
package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/moraine-store/moraine/pkg/block"
)

// storage reaches files through an os.Root, so that not even a symbolic link leads outside.
type storage struct {
	dir     string // as the caller named it, for messages
	root    *os.Root
	closed  atomic.Bool
	kept    kept
	durable durable
	syncs   atomic.Int64
}

// check refuses a call that must not go ahead.
func (s *storage) check(ctx context.Context) error {
	if s.closed.Load() {
		return block.ErrClosed
	}
	return ctx.Err()
}

func (s *storage) checkName(ctx context.Context, name string) error {
	if err := block.CheckName(name); err != nil {
		return err
	}
	return s.check(ctx)
}

// Put implements [block.Storage].
func (s *storage) Put(ctx context.Context, name string, data []byte) error {
	if err := s.put(ctx, name, data); err != nil {
		return s.fail("put", name, err)
	}
	return nil
}

func (s *storage) put(ctx context.Context, name string, data []byte) error {
	if err := s.checkName(ctx, name); err != nil {
		return err
	}
	have, err := s.root.Lstat(name)
	if err == nil && have.Mode().IsRegular() && have.Size() == int64(len(data)) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp, id, err := s.writeTemp(data)
	if err != nil {
		return err
	}
	if err := s.rename(temp, name); err != nil {
		return errors.Join(cause(err), s.root.Remove(temp))
	}
	s.durable.addFile(name, id)
	return nil
}

// writeTemp writes and syncs a temporary file, and leaves none behind when it fails.
func (s *storage) writeTemp(data []byte) (name string, id identity, err error) {
	name = path.Join(tempDir, rand.Text())
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return "", identity{}, fmt.Errorf("create a temporary file: %w", cause(err))
	}
	_, err = f.Write(data)
	if err == nil {
		s.syncs.Add(1)
		err = f.Sync()
	}
	if err == nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil {
			id = identityOf(info)
		}
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", identity{}, errors.Join(cause(err), s.root.Remove(name))
	}
	return name, id, nil
}

// rename creates directories only when they turn out to be missing, which is rare.
func (s *storage) rename(temp, name string) error {
	err := s.root.Rename(temp, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, err := s.root.Lstat(dir); err == nil {
			break
		}
		s.durable.forgetDir(dir) // it may get the inode of one that somebody has removed
	}
	if err := s.root.MkdirAll(path.Dir(name), dirMode); err != nil {
		return err
	}
	return s.root.Rename(temp, name)
}

// Get implements [block.Storage].
func (s *storage) Get(ctx context.Context, name string) ([]byte, error) {
	return s.read(ctx, name, func() ([]byte, error) {
		f, err := s.openFile(name)
		if err != nil {
			return nil, err
		}
		data, err := readPart(f, isFile, func(size int64) (int64, int64) { return 0, size })
		return data, errors.Join(err, f.Close())
	})
}

// GetRange implements [block.Storage].
func (s *storage) GetRange(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	part := func(int64) (int64, int64) { return offset, length }
	return s.read(ctx, name, func() ([]byte, error) {
		if f := s.kept.get(name); f != nil {
			if data, err := readPart(f, hasName, part); err == nil {
				return data, nil
			}
			// Whatever it was, what is there now decides.
			if err := s.kept.drop(name); err != nil {
				return nil, err
			}
		}
		f, err := s.openFile(name)
		if err != nil {
			return nil, err
		}
		data, err := readPart(f, isFile, part)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return data, s.kept.keep(name, f)
	})
}

func (s *storage) read(ctx context.Context, name string, read func() ([]byte, error)) ([]byte, error) {
	var data []byte
	err := s.checkName(ctx, name)
	if err == nil {
		data, err = read()
	}
	if err != nil {
		return nil, s.fail("get", name, missing(err))
	}
	return data, nil
}

// openFile opens a file for reading. Without O_NONBLOCK a named pipe that somebody left here would hold the caller for ever.
func (s *storage) openFile(name string) (*os.File, error) {
	return s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// readPart reads a part of a file of which is holds; of any other it says that there is none.
func readPart(f *os.File, is func(os.FileInfo) bool, part func(size int64) (offset, length int64)) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !is(info) {
		return nil, block.ErrNotFound
	}
	offset, length := part(info.Size())
	if err := block.CheckRange(info.Size(), offset, length); err != nil {
		return nil, err
	}
	data := make([]byte, length)
	n, err := f.ReadAt(data, offset)
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: it was cut to %d bytes while it was read", block.ErrShort, offset+int64(n))
	}
	return data, err
}

// Stat implements [block.Storage].
func (s *storage) Stat(ctx context.Context, name string) (block.Info, error) {
	info, err := s.stat(ctx, name)
	if err != nil {
		return block.Info{}, s.fail("stat", name, missing(err))
	}
	return info, nil
}

func (s *storage) stat(ctx context.Context, name string) (block.Info, error) {
	if err := s.checkName(ctx, name); err != nil {
		return block.Info{}, err
	}
	info, err := s.regular(name)
	if err != nil {
		return block.Info{}, err
	}
	return block.Info{Name: name, Size: info.Size(), ModTime: info.ModTime()}, nil
}

// Delete implements [block.Storage]. It looks first, because Remove would take an empty directory.
func (s *storage) Delete(ctx context.Context, name string) error {
	_, err := s.stat(ctx, name)
	if err == nil {
		err = s.root.Remove(name)
	}
	err = errors.Join(cause(err), s.kept.drop(name)) // or its space would not be free
	if err := missing(err); err != nil && !errors.Is(err, block.ErrNotFound) {
		return s.fail("delete", name, err)
	}
	return nil
}

// Refresh implements [block.Storage].
func (s *storage) Refresh(ctx context.Context, name string) error {
	_, err := s.stat(ctx, name)
	if err == nil {
		now := time.Now()
		err = s.root.Chtimes(name, now, now)
	}
	if err != nil {
		return s.fail("refresh", name, missing(err))
	}
	return nil
}

// Close implements [block.Storage].
func (s *storage) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	return errors.Join(s.kept.close(), s.root.Close())
}

// fail says what was being done to which file.
func (s *storage) fail(op, name string, err error) error {
	if errors.Is(err, os.ErrClosed) {
		err = block.ErrClosed // closed by another goroutine in the middle of the call
	}
	return fmt.Errorf("%s %s: %w", op, filepath.Join(s.dir, name), cause(err))
}

// missing turns what the system says about an absent file into [block.ErrNotFound].
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return block.ErrNotFound
	}
	return err
}

// cause drops the path that the os package puts around an error: ours is more complete.
func cause(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	}
	return err
}
