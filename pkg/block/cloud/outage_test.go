// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/cloud"
)

// gated is a driver whose calls first ask whether they may go on.
type gated struct {
	fake
	gate *func(ctx context.Context) error
}

func (g *gated) Attributes(ctx context.Context, key string) (*driver.Attributes, error) {
	if err := (*g.gate)(ctx); err != nil {
		return nil, err
	}
	return g.fake.Attributes(ctx, key)
}

func (g *gated) NewRangeReader(ctx context.Context, key string, offset, length int64, o *driver.ReaderOptions) (driver.Reader, error) {
	if err := (*g.gate)(ctx); err != nil {
		return nil, err
	}
	return g.fake.NewRangeReader(ctx, key, offset, length, o)
}

func (g *gated) NewTypedWriter(ctx context.Context, key, contentType string, o *driver.WriterOptions) (driver.Writer, error) {
	if err := (*g.gate)(ctx); err != nil {
		return nil, err
	}
	return g.fake.NewTypedWriter(ctx, key, contentType, o)
}

func (g *gated) ListPaged(ctx context.Context, o *driver.ListOptions) (*driver.ListPage, error) {
	if err := (*g.gate)(ctx); err != nil {
		return nil, err
	}
	return g.fake.ListPaged(ctx, o)
}

func (g *gated) Delete(ctx context.Context, key string, o *driver.DeleteOptions) error {
	if err := (*g.gate)(ctx); err != nil {
		return err
	}
	return g.fake.Delete(ctx, key, o)
}

// calls are all that a storage can be asked for, on the object "a".
func calls(s block.Storage) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"put":       func(ctx context.Context) error { return s.Put(ctx, "b", []byte("12345")) },
		"get":       func(ctx context.Context) error { _, err := s.Get(ctx, "a"); return err },
		"get range": func(ctx context.Context) error { _, err := s.GetRange(ctx, "a", 1, 2); return err },
		"stat":      func(ctx context.Context) error { _, err := s.Stat(ctx, "a"); return err },
		"delete":    func(ctx context.Context) error { return s.Delete(ctx, "a") },
		"refresh":   func(ctx context.Context) error { return s.Refresh(ctx, "a") },
		"sync":      func(ctx context.Context) error { return s.Sync(ctx, []string{"a"}) },
		"list": func(ctx context.Context) error {
			for _, err := range s.List(ctx, "") {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// A store that refuses every call, and one that answers none: each call says so, and goes on when the store is back.
func TestOutagesAreErrorsAndEnd(t *testing.T) {
	gate := func(context.Context) error { return nil }
	f := &gated{gate: &gate, fake: fake{stored: []byte("12345"), served: []byte("12345"), listed: [][]string{{"a"}}}}
	s := cloud.New(blob.NewBucket(f))
	for name, call := range calls(s) {
		gate = func(context.Context) error { return errRefused }
		err := call(t.Context())
		require.ErrorIs(t, err, errRefused, name)
		require.NotErrorIs(t, err, block.ErrNotFound, name)

		gate = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- call(ctx) }()
		cancel()
		require.ErrorIs(t, <-done, context.Canceled, name)

		gate = func(context.Context) error { return nil }
		require.NoError(t, call(t.Context()), name)
	}
	require.NoError(t, s.Close())
}
