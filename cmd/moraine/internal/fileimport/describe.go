// SPDX-License-Identifier: Apache-2.0

package fileimport

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/moraine-store/moraine/pkg/catalog"
)

// errChanging: a file was written to while it was read, each time.
var errChanging = errors.New("it keeps changing while it is read")

// Describe returns the object that stands for a file: its file: URL as address, size, modification time, and SHA-256 as checksum.
// The file may be named by a link.
func Describe(ctx context.Context, path string) (catalog.Object, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return catalog.Object{}, err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return catalog.Object{}, err
	}
	if !info.Mode().IsRegular() {
		return catalog.Object{}, fmt.Errorf("%s: not a regular file", abs)
	}
	return describe(ctx, abs, info, newBuffer(), func(int) {})
}

// newBuffer returns memory for reading one file after another.
func newBuffer() []byte { return make([]byte, 256<<10) }

func describe(ctx context.Context, path string, info fs.FileInfo, buffer []byte, progress func(bytes int)) (catalog.Object, error) {
	o, err := hashFile(ctx, path, info, buffer, progress)
	if errors.Is(err, errChanging) {
		o, err = hashFile(ctx, path, info, buffer, func(int) {})
	}
	if err != nil {
		return catalog.Object{}, err
	}
	o.PhysicalAddress = (&url.URL{Scheme: "file", Path: path}).String()
	return o, nil
}

// hashFile reads a file. It returns errChanging where it cannot be sure that what it read is one state of the file.
func hashFile(ctx context.Context, path string, info fs.FileInfo, buffer []byte, progress func(bytes int)) (o catalog.Object, err error) {
	f, err := open(path, info)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	before, err := f.Stat()
	if err != nil {
		return o, err
	}
	hash := sha256.New()
	size, err := io.CopyBuffer(hash, &reader{ctx, f, progress}, buffer)
	if err != nil {
		return o, err
	}
	after, err := f.Stat()
	if err != nil {
		return o, err
	}
	if size != before.Size() || size != after.Size() || !before.ModTime().Equal(after.ModTime()) {
		return o, errChanging
	}
	o.Size, o.ModifiedAt, o.Checksum = size, after.ModTime().UTC(), "sha256:"+hex.EncodeToString(hash.Sum(nil))
	return o, nil
}

// reader ends when its context does, and tells how far it is.
type reader struct {
	ctx      context.Context
	file     io.Reader
	progress func(bytes int)
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.file.Read(p)
	r.progress(n)
	return n, err
}
