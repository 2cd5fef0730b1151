// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"iter"
	"strings"
)

// Sub gives the files of a storage below a directory a namespace of their own: the name "b" of the
// result is the name "a/b" of the storage if dir is "a". The directory is a name itself, and counts
// towards the length of names; with a bad one every call is [ErrInvalidName]. Errors name files in
// full. Closing the result does nothing, since the storage belongs to whoever opened it.
func Sub(s Storage, dir string) Storage { return sub{s, dir + "/"} }

type sub struct {
	storage Storage
	dir     string // with a slash at its end
}

func (s sub) Put(ctx context.Context, name string, data []byte) error {
	return s.storage.Put(ctx, s.dir+name, data)
}

func (s sub) Get(ctx context.Context, name string) ([]byte, error) {
	return s.storage.Get(ctx, s.dir+name)
}

func (s sub) GetRange(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	return s.storage.GetRange(ctx, s.dir+name, offset, length)
}

func (s sub) Stat(ctx context.Context, name string) (Info, error) {
	info, err := s.storage.Stat(ctx, s.dir+name)
	return s.inside(info), err
}

func (s sub) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for info, err := range s.storage.List(ctx, s.dir+prefix) {
			if !yield(s.inside(info), err) {
				return
			}
		}
	}
}

func (s sub) Delete(ctx context.Context, name string) error {
	return s.storage.Delete(ctx, s.dir+name)
}

func (s sub) Refresh(ctx context.Context, name string) error {
	return s.storage.Refresh(ctx, s.dir+name)
}

func (s sub) Sync(ctx context.Context, names []string) error {
	full := make([]string, len(names))
	for i, name := range names {
		full[i] = s.dir + name
	}
	return s.storage.Sync(ctx, full)
}

func (sub) Close() error { return nil }

func (s sub) inside(info Info) Info {
	info.Name = strings.TrimPrefix(info.Name, s.dir)
	return info
}
