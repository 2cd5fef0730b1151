// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	dirMode = 0o700
	// tempPrefix begins the names of files that are being written. They are made with mode 0600.
	tempPrefix = ".tmp-"
)

// diskName is a name of one length and without directories, so that no file gets into another's way.
func diskName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

func isDiskName(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == 2*sha256.Size
}

// load finds what an earlier process kept, and removes what it left unfinished. Anything else in the
// directory is left alone.
func (c *Cache) load() error {
	if err := os.MkdirAll(c.dir, dirMode); err != nil {
		return err
	}
	files, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	type kept struct {
		entry
		fetched time.Time
	}
	var found []kept
	for _, file := range files {
		if strings.HasPrefix(file.Name(), tempPrefix) {
			if err := os.Remove(filepath.Join(c.dir, file.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		info, err := file.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has evicted it just now
		}
		if err != nil {
			return err
		}
		if isDiskName(file.Name()) && info.Mode().IsRegular() {
			found = append(found, kept{entry{file.Name(), info.Size()}, info.ModTime()})
		}
	}
	slices.SortFunc(found, func(a, b kept) int {
		return cmp.Or(a.fetched.Compare(b.fetched), cmp.Compare(a.disk, b.disk))
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range found {
		c.add(k.entry)
		c.bytes += k.size
	}
	c.evict(0)
	return nil
}

// add needs the lock. The bytes of the entry are counted by the caller.
func (c *Cache) add(e entry) {
	c.entries[e.disk] = c.recent.PushFront(&e)
}

// evict makes room for that many bytes, if entries are all that is in the way. It needs the lock.
func (c *Cache) evict(room int64) {
	for c.bytes+room > c.bound && c.recent.Len() > 0 {
		c.remove(c.recent.Back())
		c.stats.Evicted++
	}
}

var errNoRoom = errors.New("other files that are being written take all the room")

// keep writes a fetched file to the disk, within the bound at every moment.
func (c *Cache) keep(f *fetch) {
	e := entry{diskName(f.name), diskSize(int64(len(f.data)))}
	temp := ""
	err := c.reserve(e.size)
	reserved := err == nil
	if reserved {
		temp, err = c.writeTemp(encode(f.name, f.data))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && !f.stale {
		if old, ok := c.entries[e.disk]; ok {
			c.remove(old)
		}
		if err = os.Rename(temp, filepath.Join(c.dir, e.disk)); err == nil {
			c.add(e)
			return
		}
	}
	if temp != "" {
		err = errors.Join(err, os.Remove(temp))
	}
	if reserved {
		c.bytes -= e.size
	}
	if err != nil {
		c.failed(fmt.Errorf("keep %s: %w", f.name, err))
	}
}

func (c *Cache) reserve(size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evict(size)
	if c.bytes+size > c.bound {
		return errNoRoom
	}
	c.bytes += size
	return nil
}

// writeTemp does not sync: what a loss of power leaves of a file, its checksums give away. It may
// return the name of a file along with an error.
func (c *Cache) writeTemp(data []byte) (string, error) {
	f, err := os.CreateTemp(c.dir, tempPrefix)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	return f.Name(), errors.Join(err, f.Close())
}
