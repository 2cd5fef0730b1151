// SPDX-License-Identifier: Apache-2.0

package blocktest

import (
	"bytes"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/block"
)

func putAndGet(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	long := string(bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16))
	files := map[string]string{"empty": "", "f": "data", "some/dir.x/a_b-c.1": "\x00\xff\n", "long": long, ".hidden": "h", "...": "dots"}
	for name, data := range files {
		put(t, s, name, data)
	}
	require.NoError(t, s.Put(t.Context(), "nil", nil))
	requireFile(t, s, "nil", "")
	for name, data := range files {
		requireFile(t, s, name, data)
	}
}

func putOnce(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	put(t, s, "a", "first")
	before, err := s.Stat(t.Context(), "a")
	require.NoError(t, err)
	put(t, s, "a", "first")
	after, err := s.Stat(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, before, after)
	requireFile(t, s, "a", "first")
}

func putReplacesAnotherSize(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	for _, damaged := range []string{"", "sho", "much too long"} {
		put(t, s, "a", damaged)
		put(t, s, "a", "whole")
		requireFile(t, s, "a", "whole")
	}
}

func putConcurrently(t *testing.T, h Harness) {
	a, b := open(t, h, block.OpenOptions{}), open(t, h, block.OpenOptions{})
	for round := range 10 {
		name, data := "dir"+strconv.Itoa(round)+"/file", bytes.Repeat([]byte{byte(round)}, 100_000)
		var g errgroup.Group
		for i := range 8 {
			s := a
			if i%2 == 1 {
				s = b
			}
			g.Go(func() error {
				// A name that another has put shows the whole file already.
				if info, err := s.Stat(t.Context(), name); err == nil && info.Size != int64(len(data)) {
					t.Errorf("%s is visible with %d bytes", name, info.Size)
				}
				return s.Put(t.Context(), name, data)
			})
		}
		require.NoError(t, g.Wait())
		requireFile(t, a, name, string(data))
	}
}

func aliasing(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	passed := []byte("data")
	require.NoError(t, s.Put(t.Context(), "a", passed))
	clear(passed)
	requireFile(t, s, "a", "data")

	got, err := s.Get(t.Context(), "a")
	require.NoError(t, err)
	clear(got)
	part, err := s.GetRange(t.Context(), "a", 1, 2)
	require.NoError(t, err)
	clear(part)
	_ = append(part, 'x')
	requireFile(t, s, "a", "data")
}

func ranges(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	put(t, s, "a", "0123456789")
	put(t, s, "empty", "")
	for _, c := range []struct {
		name           string
		offset, length int64
		want           string
		err            error
	}{
		{"a", 0, 10, "0123456789", nil},
		{"a", 3, 4, "3456", nil},
		{"a", 9, 1, "9", nil},
		{"a", 0, 0, "", nil},
		{"a", 10, 0, "", nil},
		{"empty", 0, 0, "", nil},
		{"empty", 0, 1, "", block.ErrShort},
		{"a", 10, 1, "", block.ErrShort},
		{"a", 9, 2, "", block.ErrShort},
		{"a", 0, 11, "", block.ErrShort},
		{"a", 11, 0, "", block.ErrShort},
		{"a", 0, math.MaxInt64, "", block.ErrShort},
		{"a", math.MaxInt64, math.MaxInt64, "", block.ErrShort},
		{"a", -1, 2, "", block.ErrInvalidRange},
		{"a", 0, -1, "", block.ErrInvalidRange},
		{"missing", 0, 1, "", block.ErrNotFound},
	} {
		got, err := s.GetRange(t.Context(), c.name, c.offset, c.length)
		require.ErrorIs(t, err, c.err, "%+v", c)
		require.Equal(t, c.want, string(got), "%+v", c)
	}
}

func missingFiles(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	put(t, s, "file", "x")
	for _, name := range []string{"a", "a/b/c", "file/below", "fil", "file2"} {
		for _, c := range reads(name) {
			err := c.run(t.Context(), s)
			require.ErrorIs(t, err, block.ErrNotFound, c.method)
			require.ErrorContains(t, err, name, c.method)
		}
		require.ErrorIs(t, s.Refresh(t.Context(), name), block.ErrNotFound)
		require.ErrorIs(t, s.Sync(t.Context(), []string{"file", name}), block.ErrNotFound)
		require.NoError(t, s.Delete(t.Context(), name))
	}
	require.Equal(t, []string{"file"}, names(t, s, ""))
}

func directories(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	put(t, s, "dir/file", "x")
	for range 2 { // with a file in it, then without
		for _, c := range reads("dir") {
			require.ErrorIs(t, c.run(t.Context(), s), block.ErrNotFound, c.method)
		}
		require.ErrorIs(t, s.Refresh(t.Context(), "dir"), block.ErrNotFound)
		require.ErrorIs(t, s.Sync(t.Context(), []string{"dir"}), block.ErrNotFound)
		require.NoError(t, s.Delete(t.Context(), "dir"))
		require.NoError(t, s.Delete(t.Context(), "dir/file"))
		require.Empty(t, names(t, s, ""))
	}
	put(t, s, "dir/file", "x")
	requireFile(t, s, "dir/file", "x")
}

func list(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	require.Empty(t, names(t, s, ""))
	// A dot and a hyphen sort before the slash, a digit after it.
	all := []string{"a-b", "a.b/x", "a/1", "a/b/c", "a/b0", "a/c", "a0", "b", "b.", "c/d/e/f"}
	for i := range all {
		put(t, s, all[(i*7)%len(all)], "data")
	}
	require.Equal(t, all, names(t, s, ""))
	for prefix, want := range map[string][]string{
		"a":         {"a-b", "a.b/x", "a/1", "a/b/c", "a/b0", "a/c", "a0"},
		"a/":        {"a/1", "a/b/c", "a/b0", "a/c"},
		"a/b":       {"a/b/c", "a/b0"},
		"a/b/c":     {"a/b/c"},
		"a/b/c/":    {},
		"a.":        {"a.b/x"},
		"b":         {"b", "b."},
		"b/":        {},
		"c/d/e":     {"c/d/e/f"},
		"d":         {},
		".":         {},
		"..":        {},
		"nowhere/x": {},
	} {
		require.Equal(t, want, names(t, s, prefix), "prefix %q", prefix)
	}
	for info, err := range s.List(t.Context(), "a/1") {
		require.NoError(t, err)
		stat, err := s.Stat(t.Context(), "a/1")
		require.NoError(t, err)
		require.Equal(t, stat, info)
	}
}

func listStops(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	for i := range 20 {
		put(t, s, "d"+strconv.Itoa(i%3)+"/"+strconv.Itoa(i), "")
	}
	seen := 0
	for _, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		if seen++; seen == 5 {
			break
		}
	}
	require.Equal(t, 5, seen)

	// A listing lets go of what it listed: its files may be deleted as it goes.
	for info, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), info.Name))
	}
	require.Empty(t, names(t, s, ""))
}

func deleteFile(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	put(t, s, "a/b", "1")
	put(t, s, "a/c", "2")
	for range 2 {
		require.NoError(t, s.Delete(t.Context(), "a/b"))
		_, err := s.Get(t.Context(), "a/b")
		require.ErrorIs(t, err, block.ErrNotFound)
	}
	require.Equal(t, []string{"a/c"}, names(t, s, ""))
	put(t, s, "a/b", "1")
	requireFile(t, s, "a/b", "1")
}

// refresh repeats until the clock of the storage, however coarse, has moved on.
func refresh(t *testing.T, h Harness) {
	s := open(t, h, block.OpenOptions{})
	put(t, s, "a", "data")
	first, err := s.Stat(t.Context(), "a")
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), first.ModTime, time.Hour)
	for {
		require.NoError(t, s.Refresh(t.Context(), "a"))
		now, err := s.Stat(t.Context(), "a")
		require.NoError(t, err)
		if now.ModTime.After(first.ModTime) {
			break
		}
	}
	require.NoError(t, s.Sync(t.Context(), []string{"a"}))
	requireFile(t, s, "a", "data")
}

func syncOfAnother(t *testing.T, h Harness) {
	a, b := open(t, h, block.OpenOptions{}), open(t, h, block.OpenOptions{})
	put(t, a, "x/y/1", "1")
	put(t, a, "x/z/2", "2")
	require.NoError(t, b.Sync(t.Context(), []string{"x/y/1", "x/z/2", "x/y/1"}))
	require.NoError(t, b.Sync(t.Context(), nil))
	requireFile(t, b, "x/y/1", "1")
}
