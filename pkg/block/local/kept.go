// SPDX-License-Identifier: Apache-2.0

package local

import (
	"container/list"
	"errors"
	"os"
	"sync"
	"syscall"
)

// keptFiles is how many files a storage keeps open.
const keptFiles = 512

// kept holds the files open of which parts were read last, least recently used out: to open one by its path takes several calls
// of the system, to read a part of one that is open takes two.
//
// A file is closed while others may still read it; they are told so, and open it by its path. It is safe for concurrent use.
type kept struct {
	mu     sync.Mutex
	byName map[string]*list.Element
	recent list.List // of keptFile, the last used in front
	closed bool
}

type keptFile struct {
	name string
	file *os.File
}

// get returns the file that is open under a name, nil if there is none.
func (k *kept) get(name string) *os.File {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.byName[name]
	if !ok {
		return nil
	}
	k.recent.MoveToFront(e)
	return e.Value.(keptFile).file
}

// keep takes a file over, which it closes sooner or later. What closing says is of a file that was only read.
func (k *kept) keep(name string, f *os.File) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, other := k.byName[name]; other || k.closed {
		return f.Close()
	}
	if k.byName == nil {
		k.byName = map[string]*list.Element{}
	}
	k.byName[name] = k.recent.PushFront(keptFile{name, f})
	if k.recent.Len() > keptFiles {
		return k.remove(k.recent.Back())
	}
	return nil
}

// drop closes the file that is open under a name.
func (k *kept) drop(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e, ok := k.byName[name]; ok {
		return k.remove(e)
	}
	return nil
}

// remove needs the lock.
func (k *kept) remove(e *list.Element) error {
	k.recent.Remove(e)
	delete(k.byName, e.Value.(keptFile).name)
	return e.Value.(keptFile).file.Close()
}

// close closes all files, and makes keep close those that come later.
func (k *kept) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	var errs []error
	for k.recent.Len() > 0 {
		errs = append(errs, k.remove(k.recent.Back()))
	}
	return errors.Join(errs...)
}

func isFile(info os.FileInfo) bool { return info.Mode().IsRegular() }

// hasName reports whether an open file still has a name: one that was removed, or that another took the name of, has none.
func hasName(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && isFile(info) && stat.Nlink > 0
}
