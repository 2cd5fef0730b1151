// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// errFailed is what writes say after something has failed in the background or on the disk.
var errFailed = errors.New("the store takes no writes until it is opened again")

// disk is the file system that pebble gets. It stops at the first error of a write.
//
// Pebble ends the process when its log or its manifest cannot be written, by a panic with locks held
// or by a call that is not meant to return. Here it does not learn of such an error: from then on
// nothing reaches the file system any more, as if the machine had lost its power, and pebble goes on
// in memory, where it can still serve reads, end the flush that somebody waits for, and be closed.
// Every write asks failure before it is acknowledged, and so none is that was not synced for real.
// What is on disk is what a crash at that moment leaves, which the next Open recovers from.
type disk struct {
	vfs.FS
	cause atomic.Pointer[error]

	scratch *vfs.MemFS    // files that are made after the failure, by their base names
	opening atomic.Bool   // pebble.Open has not returned: it waits for compactions that it has begun
	closing chan struct{} // closed by release
	release func()        // lets go of what waits for the end
}

func newDisk(fs vfs.FS) *disk {
	d := &disk{FS: fs, scratch: vfs.NewMem(), closing: make(chan struct{})}
	d.release = sync.OnceFunc(func() { close(d.closing) })
	d.opening.Store(true)
	return d
}

// fail stops all writing. The first cause counts.
func (d *disk) fail(err error) { d.cause.CompareAndSwap(nil, &err) }

// failure returns why nothing is written any more, or nil.
func (d *disk) failure() error {
	if cause := d.cause.Load(); cause != nil {
		return fmt.Errorf("%w: %w", errFailed, *cause)
	}
	return nil
}

// do performs a change, unless the disk has failed, and reports whether it is done.
func (d *disk) do(change func() error) (done bool) {
	if d.cause.Load() != nil {
		return false
	}
	err := change()
	if err != nil {
		d.fail(err)
	}
	return err == nil
}

// What pebble calls the files that it writes.
const (
	flushed   vfs.DiskWriteCategory = "pebble-memtable-flush"
	compacted vfs.DiskWriteCategory = "pebble-compaction"
	rewritten vfs.DiskWriteCategory = "pebble-blob-file-rewrite"
)

// Create makes a file.
func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.create(name, category, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

// ReuseForWrite makes a file out of an old one.
func (d *disk) ReuseForWrite(oldName, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.create(name, category, func() (vfs.File, error) { return d.FS.ReuseForWrite(oldName, name, category) })
}

func (d *disk) create(name string, category vfs.DiskWriteCategory, create func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	if d.do(func() (err error) {
		f, err = create()
		return err
	}) {
		// Pebble survives an error of a table, and must learn of it, since it is going to read it.
		table := category == flushed || category == compacted || category == rewritten
		return &file{File: f, disk: d, honest: table}, nil
	}
	if category == compacted || category == rewritten {
		// A compaction may be larger than the memory, and would be tried again at once, but for one that Open waits for.
		if !d.opening.Load() {
			<-d.closing
		}
		return nil, d.failure()
	}
	return d.scratch.Create(d.inScratch(name), category)
}

func (d *disk) inScratch(name string) string { return "/" + d.PathBase(name) }

// Open opens a file for reading.
func (d *disk) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	if d.cause.Load() != nil {
		if f, err := d.scratch.Open(d.inScratch(name), o...); err == nil {
			return f, nil
		}
	}
	return d.FS.Open(name, o...)
}

// Stat describes a file.
func (d *disk) Stat(name string) (vfs.FileInfo, error) {
	if d.cause.Load() != nil {
		if info, err := d.scratch.Stat(d.inScratch(name)); err == nil {
			return info, nil
		}
	}
	return d.FS.Stat(name)
}

// OpenDir opens a directory, which is there to be synced.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &file{File: f, disk: d}, nil
}

// Remove removes a file, or leaves it to the next Open.
func (d *disk) Remove(name string) error {
	if d.cause.Load() != nil {
		return nil
	}
	return d.FS.Remove(name)
}

// Rename renames a file.
func (d *disk) Rename(oldName, name string) error {
	d.do(func() error { return d.FS.Rename(oldName, name) })
	return nil
}

// Unwrap returns the file system below.
func (d *disk) Unwrap() vfs.FS { return d.FS }

// file is an open file that stops when the disk does.
type file struct {
	vfs.File
	disk   *disk
	honest bool // tell pebble of errors
}

func (f *file) do(change func() error) error {
	if !f.disk.do(change) && f.honest {
		return f.disk.failure()
	}
	return nil
}

func (f *file) Write(p []byte) (n int, err error) {
	err = f.do(func() error {
		n, err = f.File.Write(p)
		return err
	})
	if err == nil {
		n = len(p)
	}
	return n, err
}

func (f *file) Sync() error     { return f.do(f.File.Sync) }
func (f *file) SyncData() error { return f.do(f.File.SyncData) }

func (f *file) SyncTo(length int64) (full bool, err error) {
	err = f.do(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

func (f *file) Close() error {
	if err := f.File.Close(); err != nil {
		return f.do(func() error { return err })
	}
	return nil
}
