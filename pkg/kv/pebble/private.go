// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// private is the file system of the machine, with files that only their owner can read, and with a
// lock that several readers can share.
type private struct {
	vfs.FS
	readOnly bool
}

// Create makes a file.
func (p private) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(name, 0o600); err != nil {
		_ = f.Close() // it is empty, and the other error says more
		return nil, err
	}
	return f, nil
}

// Lock locks a file against other processes and against the rest of this one.
func (p private) Lock(name string) (io.Closer, error) { return lockFile(name, p.readOnly) }
