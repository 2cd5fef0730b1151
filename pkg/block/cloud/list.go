// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"gocloud.dev/blob"

	"github.com/moraine-store/moraine/pkg/block"
)

// List implements [block.Storage]. It lists directory by directory, because drivers agree on the
// order of names only within one; a driver that does not keep to it is an error, since callers rely
// on the order to tell what is missing. Objects whose names are not valid are not shown.
func (s *storage) List(ctx context.Context, prefix string) iter.Seq2[block.Info, error] {
	return func(yield func(block.Info, error) bool) {
		err := block.CheckPrefix(prefix)
		if err == nil {
			l := lister{storage: s, ctx: ctx, yield: yield}
			err = l.list(prefix)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(block.Info{}, s.fail(ctx, "list", prefix, err))
		}
	}
}

// errStopped ends a listing whose caller has had enough.
var errStopped = errors.New("stopped")

type lister struct {
	storage *storage
	ctx     context.Context
	yield   func(block.Info, error) bool
	last    string // name of the last file shown
}

func (l *lister) list(prefix string) error {
	entries := l.storage.bucket.List(&blob.ListOptions{Prefix: prefix, Delimiter: "/"})
	for {
		if err := l.storage.check(l.ctx); err != nil {
			return err
		}
		e, err := entries.Next(l.ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.show(prefix, e); err != nil {
			return err
		}
	}
}

func (l *lister) show(prefix string, e *blob.ListObject) error {
	if !strings.HasPrefix(e.Key, prefix) {
		return fmt.Errorf("the object store lists %q below the prefix", e.Key)
	}
	if e.IsDir {
		if block.CheckPrefix(e.Key) != nil || e.Key == prefix {
			return nil // not one of ours
		}
		return l.list(e.Key)
	}
	if block.CheckName(e.Key) != nil {
		return nil
	}
	if e.Key <= l.last {
		return fmt.Errorf("the object store lists %q after %q", e.Key, l.last)
	}
	l.last = e.Key
	if !l.yield(block.Info{Name: e.Key, Size: e.Size, ModTime: e.ModTime}, nil) {
		return errStopped
	}
	return nil
}
