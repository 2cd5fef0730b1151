// SPDX-License-Identifier: Apache-2.0

package local

import (
	"io/fs"
	"sync"
	"syscall"
)

// durable remembers what is on the device already, so that Sync need not put it there again: files that Put has written, until
// Sync has asked for them, and directories whose names are durable in the directories above. Both are known by what the file
// system calls them, so that what somebody puts in their place is not taken for them.
type durable struct {
	mu    sync.Mutex
	files map[string]identity
	dirs  map[string]identity
}

// durableLimit bounds each of the two. Where there are more all are forgotten, which costs syncs.
const durableLimit = 1 << 16

// identity tells a file or a directory from another of the same name. Directories change with what is put into them, so only
// files have a size and a time.
type identity struct {
	device, inode  uint64
	size, modified int64
}

// identityOf returns the zero identity, which is remembered of nothing, where the system does not tell.
func identityOf(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	id := identity{device: uint64(st.Dev), inode: st.Ino}
	if !info.IsDir() {
		id.size, id.modified = info.Size(), info.ModTime().UnixNano()
	}
	return id
}

// addFile notes a file that was synced before it got its name.
func (d *durable) addFile(name string, id identity) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = remember(d.files, name, id)
}

// takeFile reports whether the file of a name was synced, and forgets it.
func (d *durable) takeFile(name string, id identity) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.files[name]
	delete(d.files, name)
	return ok && known == id
}

// addDirs notes directories whose names have become durable.
func (d *durable) addDirs(dirs map[string]identity) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for dir, id := range dirs {
		d.dirs = remember(d.dirs, dir, id)
	}
}

func (d *durable) hasDir(dir string, id identity) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.dirs[dir]
	return ok && known == id
}

// forgetDir forgets a directory that is about to be made.
func (d *durable) forgetDir(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.dirs, dir)
}

func remember(known map[string]identity, name string, id identity) map[string]identity {
	if id == (identity{}) {
		return known
	}
	if known == nil || len(known) >= durableLimit {
		known = map[string]identity{}
	}
	known[name] = id
	return known
}
