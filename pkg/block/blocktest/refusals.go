// SPDX-License-Identifier: Apache-2.0

package blocktest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
)

func invalidNames(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	for _, name := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/./b", "a/../b", "A", "a b", "a\x00", "a\\b", "ä", "~tmp/x", "a:b", "%2e",
		strings.Repeat("a", block.MaxSegmentBytes+1),
		strings.Repeat("a/", block.MaxNameBytes/2) + "a",
	} {
		for _, c := range append(reads(name), writes(name)...) {
			require.ErrorIs(t, c.run(t.Context(), s), block.ErrInvalidName, "%s %q", c.method, name)
		}
	}
	require.Empty(t, names(t, s, ""))

	segment := strings.Repeat("a", block.MaxSegmentBytes)
	longest := (segment + "/" + segment[1:] + "/a")[h.Taken:]
	require.Len(t, longest, block.MaxNameBytes-h.Taken)
	put(t, s, longest, "fits")
	requireFile(t, s, longest, "fits")
	require.Equal(t, []string{longest}, names(t, s, longest))
}

func invalidPrefixes(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	put(t, s, "a", "x")
	for _, prefix := range []string{"/", "../", "./", "a//", "a/../", "A", " ", "\x00", "~", strings.Repeat("a", block.MaxNameBytes+1)} {
		require.ErrorIs(t, listing(prefix).run(t.Context(), s), block.ErrInvalidName, "%q", prefix)
	}
}

func everyCall(name string) []call {
	return append(append(reads(name), writes(name)...), listing(""))
}

func cancelled(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	put(t, s, "a", "data")
	put(t, s, "b", "data")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for info, err := range s.List(ctx, "") {
		if info.Name == "a" {
			require.NoError(t, err)
			cancel()
			continue
		}
		if err != nil { // or else the listing is complete
			require.ErrorIs(t, err, context.Canceled)
		}
	}
	for _, c := range everyCall("a") {
		require.ErrorIs(t, c.run(ctx, s), context.Canceled, c.method)
	}
	require.ErrorIs(t, s.Put(ctx, "new", nil), context.Canceled)
	require.Equal(t, []string{"a", "b"}, names(t, s, ""))
}

func closed(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	put(t, s, "a", "data")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	for _, c := range everyCall("a") {
		require.ErrorIs(t, c.run(t.Context(), s), block.ErrClosed, c.method)
	}
	require.ErrorIs(t, s.Sync(t.Context(), nil), block.ErrClosed)
}

func reopen(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	put(t, s, "a/b", "data")
	require.NoError(t, s.Sync(t.Context(), []string{"a/b"}))
	before, err := s.Stat(t.Context(), "a/b")
	require.NoError(t, err)
	if h.Forgetful {
		return
	}
	require.NoError(t, s.Close())
	s = open(t, h, block.OpenOptions{})
	requireFile(t, s, "a/b", "data")
	after, err := s.Stat(t.Context(), "a/b")
	require.NoError(t, err)
	require.True(t, before.ModTime.Equal(after.ModTime))
}

func readOnly(t *testing.T, h Harness) {
	put(t, open(t, h, block.OpenOptions{}), "a", "data")
	s := open(t, h, block.OpenOptions{ReadOnly: true})
	for _, name := range []string{"a", "new"} {
		for _, c := range writes(name) {
			require.ErrorIs(t, c.run(t.Context(), s), block.ErrReadOnly, "%s %s", c.method, name)
		}
	}
	requireFile(t, s, "a", "data")
	part, err := s.GetRange(t.Context(), "a", 1, 2)
	require.NoError(t, err)
	require.Equal(t, "at", string(part))
	require.Equal(t, []string{"a"}, names(t, s, ""))

	require.NoError(t, s.Close())
	for _, c := range append(reads("a"), listing("")) {
		require.ErrorIs(t, c.run(t.Context(), s), block.ErrClosed, c.method)
	}
}
