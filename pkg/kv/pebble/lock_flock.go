// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pebble

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/moraine-store/moraine/pkg/kv"
)

// lockFile locks a file, shared by those that only read, until the result is closed. It does not wait.
// The lock belongs to the open file: unlike the lock that pebble would take, it also holds within one
// process, under whatever names the file has.
func lockFile(name string, readOnly bool) (io.Closer, error) {
	flag, how := os.O_RDWR|os.O_CREATE, syscall.LOCK_EX
	if readOnly {
		flag, how = os.O_RDONLY, syscall.LOCK_SH
	}
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = kv.ErrLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
