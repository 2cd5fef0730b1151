// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/internal/files"
)

const (
	lockName = "LOCK" // pebble's name for it

	// lockWait is how long Open waits for whoever has the directory open: long enough for a process
	// that is about to end, short enough not to look like a hang. It asks every lockPoll.
	lockWait = time.Second
	lockPoll = 20 * time.Millisecond
)

// Open is the kv.Opener of pebble:DIR. It creates the directory, and those that lead to it, unless the
// store is opened read-only. A directory that holds anything but a store of ours is kv.ErrNotAStore and
// is left as it is; one that is open elsewhere, in this process or another, is kv.ErrLocked after a
// second. After a crash it replays the end of the log, some dozens of megabytes at most.
func Open(ctx context.Context, url string, o kv.OpenOptions) (kv.Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dir, err := files.Path(url)
	if err != nil {
		return nil, err
	}
	if !o.ReadOnly {
		if err := files.MakeDir(dir); err != nil {
			return nil, fmt.Errorf("create: %w", err)
		}
	}
	s, err := open(ctx, private{vfs.Default, o.ReadOnly}, dir, o.ReadOnly, memTableSize)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// open opens the store in an existing directory of any file system.
func open(ctx context.Context, fs vfs.FS, dir string, readOnly bool, memTable uint64) (*Store, error) {
	found, err := inspect(fs, dir) // before anything is touched, even to lock it
	if err != nil {
		return nil, err
	}
	if readOnly && found != whole {
		return nil, fmt.Errorf("%w: nothing has been stored yet", kv.ErrNotAStore)
	}
	lock, err := lockDir(ctx, fs, dir)
	if err != nil {
		return nil, err
	}
	s, err := openLocked(fs, dir, lock, readOnly, memTable)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

func lockDir(ctx context.Context, fs vfs.FS, dir string) (*pebble.Lock, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, fmt.Errorf("%w (waited %v)", kv.ErrLocked, lockWait))
	defer cancel()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		lock, err := pebble.LockDirectory(dir, fs)
		if !errors.Is(err, kv.ErrLocked) {
			return lock, err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func openLocked(fs vfs.FS, dir string, lock *pebble.Lock, readOnly bool, memTable uint64) (*Store, error) {
	found, err := inspect(fs, dir)
	if err != nil {
		return nil, err
	}
	if found == nothing {
		if err := writeMark(fs, dir, begun); err != nil {
			return nil, err
		}
	}
	d := newDisk(fs)
	o := options(d, memTable)
	o.Lock, o.ReadOnly, o.ErrorIfNotExists = lock, readOnly, found == whole
	db, err := openDB(dir, o)
	d.opening.Store(false)
	if err != nil {
		d.release()
		return nil, err
	}
	err = d.failure() // pebble was not told
	if err == nil && found != whole {
		err = writeMark(fs, dir, whole)
	}
	if err != nil {
		d.release()
		return nil, errors.Join(err, db.Close())
	}
	return newStore(db, d, lock, readOnly), nil
}

// openDB turns what pebble says of a directory that is marked as ours but is not one into
// kv.ErrNotAStore, even if it says so with a panic.
func openDB(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: database is corrupt: %v", kv.ErrNotAStore, r)
		}
	}()
	db, err = pebble.Open(dir, o)
	if pebble.IsCorruptionError(err) || errors.Is(err, pebble.ErrDBDoesNotExist) || errors.Is(err, pebble.ErrDBNotPristine) || errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%w: database is corrupt or incomplete: %w", kv.ErrNotAStore, err)
	}
	return db, err
}
