// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// everyTree has every tree, and nothing in it: what a dump says of records decides alone.
type everyTree struct{ *memtrees.Store }

func (e everyTree) Scan(ctx context.Context, ns string, _ graveler.MetaRangeID) graveler.Iterator[graveler.Entry] {
	return e.Store.Scan(ctx, ns, e.EmptyTree())
}

func (e everyTree) Diff(ctx context.Context, ns string, _, _ graveler.MetaRangeID) graveler.Iterator[graveler.Diff] {
	return e.Store.Diff(ctx, ns, e.EmptyTree(), e.EmptyTree())
}

func (everyTree) CopyTree(context.Context, string, string, graveler.MetaRangeID, func(graveler.TreeFile) (bool, error)) error {
	return nil
}

// Whatever is read as a dump, with its own trailer or with one that belongs to its lines: either nothing is loaded, and the name
// stays free, or what is loaded can be dumped again, as the same lines.
func FuzzLoad(f *testing.F) {
	golden, err := os.ReadFile("testdata/v1.dump")
	require.NoError(f, err)
	f.Add(golden)
	lines := bytes.SplitAfter(golden, []byte("\n"))
	for i := range lines {
		f.Add(append(bytes.Clone(lines[0]), lines[i]...))
		f.Add(bytes.Join(append(append([][]byte{}, lines[:i]...), lines[min(i+1, len(lines)):]...), nil))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		loadAny(t, text)
		if all := strings.SplitAfter(string(text), "\n"); len(all) > 2 {
			loadAny(t, sealed(t, all[:len(all)-2]...))
		}
	})
}

func loadAny(t *testing.T, text []byte) {
	s := newStore(t, mem.New(), everyTree{memtrees.New()})
	err := s.load("copy", text, dump.LoadParams{})
	if err != nil {
		require.True(t, errors.Is(err, dump.ErrInvalid) || errors.Is(err, graveler.ErrCorrupt), "%v", err)
		_, err := s.refs.GetRepository(t.Context(), "copy")
		require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
		return
	}
	again := s.dump(t, "copy")
	other := newStore(t, mem.New(), everyTree{memtrees.New()})
	require.NoError(t, other.load("copy", again, dump.LoadParams{}))
	require.Equal(t, body(again), body(other.dump(t, "copy")))
}
