// SPDX-License-Identifier: Apache-2.0

// Package cloud keeps block storage in a bucket of an object store, through gocloud.dev/blob.
//
// It links no driver. A program imports those that it wants, which makes gocloud know their schemes,
// and names the schemes:
//
//	import _ "gocloud.dev/blob/s3blob"
//
//	engines := block.Engines{"s3": cloud.Open}
//
// What may follow the scheme is the driver's to say. All of them take prefix=DIR/, to share a bucket.
// Credentials come from where the driver looks for them, such as the environment, never from the URL.
//
// # How the promises are kept
//
// An object store shows an object whole or not at all, and has made it durable before it says that it
// is there. So Put writes a name directly, and Sync only has to see that the names exist. Large
// objects may travel in parts, which stay invisible and cost storage if a process dies meanwhile: have
// the bucket drop incomplete uploads after some days.
//
// Put looks first and then writes without a condition. Two writers of a name may therefore both write
// it: they write the same bytes, so nobody can tell but by the ModTime. A conditional write would
// save nothing, and not every object store knows it.
//
// Refresh reads the object and writes it again, because S3 refuses to copy an object onto itself, and
// drivers differ in whether a copy is young. What was read is checked against the size and, where the
// store knows it, the MD5 of the object first; and a store that is told an MD5 refuses other bytes.
//
// An object store tells a missing object from a forbidden one only to those who may list the bucket,
// so Open fails for those who may not.
package cloud

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync/atomic"
	"syscall"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/block"
)

// syncs is how many names Sync looks for at a time.
const syncs = 16

// New makes a storage of a bucket. Closing the storage closes the bucket.
func New(bucket *blob.Bucket) block.Storage { return &storage{bucket: bucket} }

type storage struct {
	bucket *blob.Bucket
	closed atomic.Bool
}

func (s *storage) check(ctx context.Context) error {
	if s.closed.Load() {
		return block.ErrClosed
	}
	return ctx.Err()
}

func (s *storage) checkName(ctx context.Context, name string) error {
	if err := block.CheckName(name); err != nil {
		return err
	}
	return s.check(ctx)
}

// fail says what was being done to which file, in the terms of package block.
func (s *storage) fail(ctx context.Context, op, name string, err error) error {
	switch {
	case s.closed.Load() && gcerrors.Code(err) == gcerrors.FailedPrecondition:
		err = block.ErrClosed // by another goroutine, in the middle of the call
	case missing(err) && !errors.Is(err, block.ErrNotFound):
		err = fmt.Errorf("%w: %w", block.ErrNotFound, err)
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		err = fmt.Errorf("%w: %w", ctx.Err(), err) // not every driver says that this was the reason
	}
	return fmt.Errorf("%s %s: %w", op, name, err)
}

// missing includes a name below one that is a file, where a driver keeps objects in a file system.
func missing(err error) bool {
	return gcerrors.Code(err) == gcerrors.NotFound || errors.Is(err, syscall.ENOTDIR)
}

// Put implements [block.Storage].
func (s *storage) Put(ctx context.Context, name string, data []byte) error {
	if err := s.put(ctx, name, data); err != nil {
		return s.fail(ctx, "put", name, err)
	}
	return nil
}

func (s *storage) put(ctx context.Context, name string, data []byte) error {
	if err := s.checkName(ctx, name); err != nil {
		return err
	}
	have, err := s.bucket.Attributes(ctx, name)
	if err == nil && have.Size == int64(len(data)) {
		return nil
	}
	if err != nil && !missing(err) {
		return err
	}
	return s.write(ctx, name, data)
}

func (s *storage) write(ctx context.Context, name string, data []byte) error {
	return s.bucket.WriteAll(ctx, name, data, &blob.WriterOptions{
		ContentType:                 "application/octet-stream",
		DisableContentTypeDetection: true,
	})
}

// Get implements [block.Storage].
func (s *storage) Get(ctx context.Context, name string) ([]byte, error) {
	data, err := s.get(ctx, name)
	if err != nil {
		return nil, s.fail(ctx, "get", name, err)
	}
	return data, nil
}

func (s *storage) get(ctx context.Context, name string) ([]byte, error) {
	if err := s.checkName(ctx, name); err != nil {
		return nil, err
	}
	r, err := s.bucket.NewReader(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	return readAndClose(r, r.Size())
}

// readAndClose reads exactly length bytes, which the object was said to hold.
func readAndClose(r *blob.Reader, length int64) (_ []byte, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	if length < 0 {
		return nil, errors.New("the object store does not say how large the object is")
	}
	data := make([]byte, length)
	if n, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("got %d of %d bytes: %w", n, length, err)
	}
	return data, nil
}

// GetRange implements [block.Storage].
func (s *storage) GetRange(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	data, err := s.getRange(ctx, name, offset, length)
	if err != nil {
		return nil, s.fail(ctx, "get", name, err)
	}
	return data, nil
}

func (s *storage) getRange(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	if err := s.checkName(ctx, name); err != nil {
		return nil, err
	}
	if err := block.CheckRange(math.MaxInt64, offset, length); errors.Is(err, block.ErrInvalidRange) {
		return nil, err
	}
	if length == 0 || offset > math.MaxInt64-length {
		return nil, s.checkRange(ctx, name, offset, length) // no request of HTTP has such a range
	}
	r, err := s.bucket.NewRangeReader(ctx, name, offset, length, nil)
	if err != nil {
		if missing(err) {
			return nil, err
		}
		// Object stores refuse a range that begins beyond the end, each in its own words.
		if rangeErr := s.checkRange(ctx, name, offset, length); errors.Is(rangeErr, block.ErrShort) {
			return nil, rangeErr
		}
		return nil, err
	}
	if err := block.CheckRange(r.Size(), offset, length); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return readAndClose(r, length)
}

func (s *storage) checkRange(ctx context.Context, name string, offset, length int64) error {
	have, err := s.bucket.Attributes(ctx, name)
	if err != nil {
		return err
	}
	return block.CheckRange(have.Size, offset, length)
}

// Stat implements [block.Storage].
func (s *storage) Stat(ctx context.Context, name string) (block.Info, error) {
	have, err := s.attributes(ctx, name)
	if err != nil {
		return block.Info{}, s.fail(ctx, "stat", name, err)
	}
	return block.Info{Name: name, Size: have.Size, ModTime: have.ModTime}, nil
}

func (s *storage) attributes(ctx context.Context, name string) (*blob.Attributes, error) {
	if err := s.checkName(ctx, name); err != nil {
		return nil, err
	}
	return s.bucket.Attributes(ctx, name)
}

// Delete implements [block.Storage].
func (s *storage) Delete(ctx context.Context, name string) error {
	if err := s.checkName(ctx, name); err != nil {
		return s.fail(ctx, "delete", name, err)
	}
	err := s.bucket.Delete(ctx, name)
	if err == nil || missing(err) {
		return nil
	}
	if _, statErr := s.bucket.Attributes(ctx, name); missing(statErr) {
		return nil // a driver on a file system may have failed to remove a directory
	}
	return s.fail(ctx, "delete", name, err)
}

// Refresh implements [block.Storage]. It costs a download and an upload.
func (s *storage) Refresh(ctx context.Context, name string) error {
	if err := s.refresh(ctx, name); err != nil {
		return s.fail(ctx, "refresh", name, err)
	}
	return nil
}

func (s *storage) refresh(ctx context.Context, name string) error {
	have, err := s.attributes(ctx, name)
	if err != nil {
		return err
	}
	data, err := s.get(ctx, name)
	if err != nil {
		return err
	}
	if int64(len(data)) != have.Size {
		return fmt.Errorf("read %d bytes of an object of %d", len(data), have.Size)
	}
	if sum := md5.Sum(data); len(have.MD5) > 0 && !bytes.Equal(sum[:], have.MD5) {
		return fmt.Errorf("read bytes of MD5 %x from an object of MD5 %x", sum, have.MD5)
	}
	return s.write(ctx, name, data)
}

// Sync implements [block.Storage]: what exists is durable.
func (s *storage) Sync(ctx context.Context, names []string) error {
	if err := s.check(ctx); err != nil {
		return fmt.Errorf("sync %d files: %w", len(names), err)
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(syncs)
	for _, name := range names {
		g.Go(func() error {
			if _, err := s.attributes(ctx, name); err != nil {
				return s.fail(ctx, "sync", name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// Close implements [block.Storage].
func (s *storage) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	return s.bucket.Close()
}
