// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	"github.com/moraine-store/moraine/pkg/block/mem"
)

// whole closes the storage along with its part, as the suite expects of what it opens.
type whole struct {
	block.Storage
	storage block.Storage
}

func (w whole) Close() error { return w.storage.Close() }

func TestSubConforms(t *testing.T) {
	blocktest.Run(t, func(*testing.T) blocktest.Harness {
		s := mem.New()
		return blocktest.Harness{Forgetful: true, Taken: len("p/"), Open: func(_ context.Context, o block.OpenOptions) (block.Storage, error) {
			var sub block.Storage = whole{block.Sub(s, "p"), s}
			if o.ReadOnly {
				sub = block.ReadOnly(sub)
			}
			return sub, nil
		}}
	})
}

func TestSubSeparatesNamespaces(t *testing.T) {
	ctx := t.Context()
	s := mem.New()
	a, ab := block.Sub(s, "a"), block.Sub(s, "ab")
	nested := block.Sub(a, "b")
	require.NoError(t, a.Put(ctx, "x", []byte("a")))
	require.NoError(t, ab.Put(ctx, "x", []byte("ab")))
	require.NoError(t, nested.Put(ctx, "x", []byte("a/b")))
	for name, want := range map[string]string{"a/x": "a", "ab/x": "ab", "a/b/x": "a/b"} {
		got, err := s.Get(ctx, name)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	var names []string
	for info, err := range a.List(ctx, "") {
		require.NoError(t, err)
		names = append(names, info.Name)
	}
	require.Equal(t, []string{"b/x", "x"}, names)
	_, err := a.Get(ctx, "missing")
	require.ErrorContains(t, err, "a/missing")

	require.NoError(t, a.Close())
	require.NoError(t, s.Put(ctx, "still-open", nil))

	for _, dir := range []string{"", "..", "A", "/a", "a/"} {
		_, err := block.Sub(s, dir).Get(ctx, "x")
		require.ErrorIs(t, err, block.ErrInvalidName, dir)
	}
}

func TestOpenPicksTheEngineByScheme(t *testing.T) {
	boom := errors.New("boom")
	var opened string
	engines := block.Engines{
		"mem":  mem.Open,
		"fail": func(context.Context, string, block.OpenOptions) (block.Storage, error) { return nil, boom },
		"note": func(_ context.Context, url string, o block.OpenOptions) (block.Storage, error) {
			opened = url
			require.True(t, o.ReadOnly)
			return mem.New(), nil
		},
	}
	_, err := block.Open(t.Context(), "NOTE://host/x?y", engines, block.OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	require.Equal(t, "NOTE://host/x?y", opened)

	_, err = block.Open(t.Context(), "fail:", engines, block.OpenOptions{})
	require.ErrorIs(t, err, boom)

	for _, url := range []string{"", "path", "/a:b", ":x", "s3://user:secret@host/bucket"} {
		_, err = block.Open(t.Context(), url, engines, block.OpenOptions{})
		require.ErrorIs(t, err, block.ErrUnknownEngine, url)
		require.ErrorContains(t, err, "fail, mem, note")
		require.NotContains(t, err.Error(), "secret")
	}
	_, err = block.Open(t.Context(), "file:x", nil, block.OpenOptions{})
	require.ErrorContains(t, err, "known: none")
}

// What CheckPrefix lets through is what names begin with.
func TestEveryBeginningOfANameIsAPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-c./~]{0,8}`).Draw(t, "name")
		prefix := name[:rapid.IntRange(0, len(name)).Draw(t, "cut")]
		if block.CheckName(name) == nil && block.CheckPrefix(prefix) != nil {
			t.Fatalf("%q is a name, but %q no prefix", name, prefix)
		}
		if block.CheckPrefix(name) == nil && block.CheckName(name) != nil && block.CheckName(name+"a") != nil {
			t.Fatalf("%q is a prefix, but of which name?", name)
		}
	})
}
