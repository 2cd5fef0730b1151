// SPDX-License-Identifier: Apache-2.0

// Package files has what engines share that keep a store in a file or a directory.
package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Path returns the path that a URL of the form SCHEME:PATH or SCHEME:///PATH names. It is taken as it stands, without percent-decoding.
func Path(url string) (string, error) {
	scheme, path, _ := strings.Cut(url, ":")
	if strings.HasPrefix(path, "//") {
		path = path[2:]
		if !strings.HasPrefix(path, "/") {
			return "", fmt.Errorf("%w: a %s URL names no host: write %[2]s:PATH or %[2]s:///PATH", kv.ErrInvalidURL, scheme)
		}
	}
	switch {
	case path == "":
		return "", fmt.Errorf("%w: a %s URL needs a path: write %[2]s:PATH or %[2]s:///PATH", kv.ErrInvalidURL, scheme)
	case strings.ContainsAny(path, "?\x00"):
		return "", fmt.Errorf("%w: a %s URL has no parameters, and its path no question mark", kv.ErrInvalidURL, scheme)
	}
	return path, nil
}

// MakeDir makes a directory and its parents, and syncs each parent, so that what is stored below does
// not get lost with the name of a directory. Whatever is there already is left alone.
func MakeDir(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return fmt.Errorf("no directory %s", dir)
	}
	if err := MakeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return SyncDir(parent)
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
