// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package pebble

import (
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/moraine-store/moraine/pkg/kv"
)

// lockFile locks a file until the result is closed. Readers cannot share it here.
func lockFile(name string, _ bool) (io.Closer, error) {
	c, err := vfs.Default.Lock(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kv.ErrLocked, err)
	}
	return c, nil
}
