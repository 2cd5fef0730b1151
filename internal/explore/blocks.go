// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/block"
)

// Blocks is a block storage all of whose calls are parked at the scheduler. A listing is one step.
//
// A change whose context has ended by the time at which it is picked takes effect nevertheless, as one may that is under way, and
// its caller is told an error; but not more than Late after it was parked.
type Blocks struct {
	block.Storage
	scheduler *Scheduler
	Late      time.Duration

	// OnDelete, if set, is told of each file that was there and has been deleted.
	OnDelete func(name string)
}

// NewBlocks wraps a storage that does not block.
func NewBlocks(s block.Storage, scheduler *Scheduler) *Blocks {
	return &Blocks{Storage: s, scheduler: scheduler}
}

// step describes a call by what is the same in every run: without the random ends of names such as sweeps/run-….
func step(method, name string) string {
	if dir, file, ok := strings.Cut(name, "/"); ok && strings.Contains(file, "-") {
		kind, _, _ := strings.Cut(file, "-")
		name = dir + "/" + kind
	}
	return method + " " + name
}

func (b *Blocks) change(ctx context.Context, method, name string, do func(ctx context.Context) error) error {
	parked := time.Now()
	return b.scheduler.park(ctx, step(method, name), true, func() error {
		if time.Since(parked) > b.Late {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return errors.Join(do(context.WithoutCancel(ctx)), ctx.Err())
	})
}

func (b *Blocks) Put(ctx context.Context, name string, data []byte) error {
	data = slices.Clone(data)
	return b.change(ctx, "put", name, func(ctx context.Context) error { return b.Storage.Put(ctx, name, data) })
}

func (b *Blocks) Delete(ctx context.Context, name string) error {
	return b.change(ctx, "delete", name, func(ctx context.Context) error {
		_, missing := b.Storage.Stat(ctx, name)
		err := b.Storage.Delete(ctx, name)
		if err == nil && missing == nil && b.OnDelete != nil {
			b.OnDelete(name)
		}
		return err
	})
}

func (b *Blocks) Refresh(ctx context.Context, name string) error {
	return b.change(ctx, "refresh", name, func(ctx context.Context) error { return b.Storage.Refresh(ctx, name) })
}

func (b *Blocks) Sync(ctx context.Context, names []string) error {
	return b.change(ctx, "sync", "", func(ctx context.Context) error { return b.Storage.Sync(ctx, names) })
}

func (b *Blocks) Get(ctx context.Context, name string) (data []byte, err error) {
	err = b.scheduler.park(ctx, step("get", name), false, func() (err error) {
		data, err = b.Storage.Get(ctx, name)
		return err
	})
	return data, err
}

func (b *Blocks) GetRange(ctx context.Context, name string, offset, length int64) (data []byte, err error) {
	err = b.scheduler.park(ctx, step("get", name), false, func() (err error) {
		data, err = b.Storage.GetRange(ctx, name, offset, length)
		return err
	})
	return data, err
}

func (b *Blocks) Stat(ctx context.Context, name string) (info block.Info, err error) {
	err = b.scheduler.park(ctx, step("stat", name), false, func() (err error) {
		info, err = b.Storage.Stat(ctx, name)
		return err
	})
	return info, err
}

func (b *Blocks) List(ctx context.Context, prefix string) iter.Seq2[block.Info, error] {
	return func(yield func(block.Info, error) bool) {
		var infos []block.Info
		err := b.scheduler.park(ctx, "list "+prefix, false, func() error {
			for info, err := range b.Storage.List(ctx, prefix) {
				if err != nil {
					return err
				}
				infos = append(infos, info)
			}
			return nil
		})
		for _, info := range infos {
			if !yield(info, nil) {
				return
			}
		}
		if err != nil {
			yield(block.Info{}, err)
		}
	}
}
