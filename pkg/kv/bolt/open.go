// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/internal/files"
)

// lockWait is how long Open waits for whoever has the file open: long enough for a process that is
// about to end, short enough not to look like a hang.
const lockWait = time.Second

// The bucket that marks a file as ours, and what it holds.
const (
	markBucket = "moraine"
	layoutKey  = "layout"
	layout     = 1 // in ASCII decimal
)

// Open is the kv.Opener of bolt:PATH. It creates the file, and the directories that lead to it,
// unless the store is opened read-only. A file that is not a store of ours is kv.ErrNotAStore and is
// left as it is; one that is open elsewhere, in this process or another, is kv.ErrLocked after a
// second. Opening takes no longer for a large file than for a small one, except after a crash.
func Open(ctx context.Context, url string, o kv.OpenOptions) (kv.Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := files.Path(url)
	if err != nil {
		return nil, err
	}
	if !o.ReadOnly {
		if err := create(path); err != nil {
			return nil, fmt.Errorf("create: %w", err)
		}
	}
	db, err := openStore(path, o.ReadOnly)
	if err != nil {
		return nil, err
	}
	return newStore(db), nil
}

func openStore(path string, readOnly bool) (*bbolt.DB, error) {
	if err := inspect(path); err != nil {
		return nil, err
	}
	if !readOnly {
		if err := verify(path); err != nil {
			return nil, err
		}
	}
	db, err := openFile(path, readOnly)
	if err != nil {
		return nil, err
	}
	if err := guard(func() error { return db.View(checkMark) }); err != nil {
		return nil, errors.Join(notAStore(err), db.Close())
	}
	return db, nil
}

// inspect looks at a file without locking it, which is enough to tell whether it is a bolt database
// of full length: each commit lengthens the file first and replaces one of two headers last.
func inspect(path string) error {
	// Not by opening it: the open of a pipe waits.
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: not a regular file", kv.ErrNotAStore)
	}
	return withFile(path, func(f *os.File) error {
		_, err := readHeader(f)
		return err
	})
}

// verify makes sure that bbolt can find out which pages are free, which it does while it opens a file
// for writing, and in which it trusts the file: from the list of them, or by a walk through all pages
// on a goroutine of its own, where a panic could not be caught. A lock keeps the file as it is
// meanwhile.
func verify(path string) (err error) {
	db, err := openFile(path, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return withFile(path, verifyFile)
}

func withFile(path string, use func(f *os.File) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(use(f), f.Close())
}

// openFile opens and locks an existing file.
func openFile(path string, readOnly bool) (*bbolt.DB, error) {
	var file *os.File
	options := &bbolt.Options{
		ReadOnly:       readOnly,
		Timeout:        lockWait,
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		NoStatistics:   true,
		OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
			return file, err
		},
	}
	var db *bbolt.DB
	err := guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, options)
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("%w (waited %v)", kv.ErrLocked, lockWait)
	case errors.Is(err, errCorrupt):
		// bbolt did not come to close the file. Its memory map is lost, and with it the lock until
		// the process ends; verify is there so that it does not come to this.
		return nil, errors.Join(notAStore(err), file.Close())
	case err != nil:
		return nil, err
	}
	return db, nil
}

// checkMark refuses the database of another program, and a layout that this one does not know.
func checkMark(tx *bbolt.Tx) error {
	b := tx.Bucket([]byte(markBucket))
	if b == nil {
		return fmt.Errorf("%w: a bolt database of another program", kv.ErrNotAStore)
	}
	stored, err := strconv.ParseUint(string(b.Get([]byte(layoutKey))), 10, 16)
	switch {
	case err != nil || stored < layout:
		return fmt.Errorf("%w: no version of the layout", kv.ErrNotAStore)
	case stored > layout:
		return fmt.Errorf("%w: layout of the file is %d, this program knows %d", kv.ErrSchemaNewer, stored, layout)
	}
	return nil
}

func notAStore(err error) error {
	if errors.Is(err, errCorrupt) {
		return fmt.Errorf("%w: %w", kv.ErrNotAStore, err)
	}
	return err
}

// create makes a new file unless there is something at path already. The file gets its name only when
// it is complete and on disk. If two processes do this at once, the later one finds the name taken,
// which is as good.
func create(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	if err := files.MakeDir(dir); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.new") // 0600
	if err != nil {
		return err
	}
	err = errors.Join(f.Close(), initialise(f.Name()))
	if err == nil {
		if err = os.Link(f.Name(), path); errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	return errors.Join(err, os.Remove(f.Name()), files.SyncDir(dir))
}

// initialise turns an empty file into an empty store.
func initialise(path string) error {
	db, err := openFile(path, false)
	if err != nil {
		return err
	}
	err = update(db, func(tx *bbolt.Tx) (bool, error) {
		b, err := tx.CreateBucket([]byte(markBucket))
		if err != nil {
			return false, err
		}
		return true, b.Put([]byte(layoutKey), strconv.AppendInt(nil, layout, 10))
	})
	if err == nil {
		err = storeFreeList(db)
	}
	return errors.Join(err, db.Close())
}
