// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// A load is cut off at each of its writes in turn, before or after it. Nobody sees the repository, and once the grace period has
// passed upkeep removes all that was made, but for files that were there before.
func TestALoadThatIsCutOffAnywhereIsUndone(t *testing.T) {
	trees := memtrees.New()
	s := rich(t, trees)
	text := s.dump(t, "lake")
	lake, err := s.GetRepository(t.Context(), "lake")
	require.NoError(t, err)
	for name, p := range map[string]dump.LoadParams{"copied": {}, "in place": {InPlace: true}} {
		for _, crash := range []func(kvtest.Pick) kvtest.Script{kvtest.CrashBefore, kvtest.CrashAfter} {
			for n, crashed := 1, true; crashed; n++ {
				var written partitions
				engine := mem.New()
				to := newStore(t, kvtest.Faulty(engine, kvtest.Chain(written.note, crash(kvtest.NthWrite(n)))), trees)
				err := to.load("copy", text, p)
				crashed = errors.Is(err, kvtest.ErrInjected)
				if !crashed {
					require.NoError(t, err)
					require.Greater(t, n, 10)
					continue
				}
				checkUndone(t, engine, &written, trees)
				require.NotEmpty(t, slices.Collect(all(t, trees.ListFiles(t.Context(), lake.Namespace))), "%s: the files of the dump", name)
			}
		}
	}
	// And they still serve.
	to := newStore(t, mem.New(), trees)
	require.NoError(t, to.load("lake", text, dump.LoadParams{InPlace: true}))
	require.Equal(t, look(t, s, "lake"), look(t, to, "lake"))
}

func checkUndone(t *testing.T, engine kv.Store, written *partitions, trees *memtrees.Store) {
	t.Helper()
	ctx := t.Context()
	clock := &later{}
	s := newStore(t, engine, trees, clock.edit)
	_, err := s.GetRepository(ctx, "copy")
	if err == nil {
		return // the last write was made, and its answer lost
	}
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
	namespace := ""
	if r, err := s.refs.GetRepository(ctx, "copy"); err == nil && !r.Adopting {
		namespace = r.Namespace
	}
	for range 3 {
		clock.pass(time.Hour)
		_, err := s.Maintain(ctx)
		require.NoError(t, err)
	}
	require.Empty(t, written.held(t, engine))
	if namespace != "" {
		require.Empty(t, slices.Collect(all(t, trees.ListFiles(ctx, namespace))))
	}
	_, err = s.CreateRepository(ctx, "copy", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
}

// A load that is told of the end of its context removes what it made all the same.
func TestAnInterruptedLoadCleansUp(t *testing.T) {
	trees := memtrees.New()
	text := rich(t, trees).dump(t, "lake")
	for at := range bytes.Count(text, []byte("\n")) {
		var written partitions
		engine := mem.New()
		s := newStore(t, kvtest.Faulty(engine, written.note), trees)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := dump.Load(ctx, s.Graveler, "copy", &byLine{text: text, before: func(line int) {
			if line == at {
				cancel()
			}
		}}, dump.LoadParams{})
		cancel()
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.refs.GetRepository(t.Context(), "copy")
		require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
		for _, p := range written.held(t, engine) {
			require.Equal(t, "cleanup-tokens", p, "only what upkeep is to look at again")
		}
	}
}

// byLine gives a line at a time, and calls before ahead of each.
type byLine struct {
	text   []byte
	line   int
	before func(line int)
}

func (b *byLine) Read(p []byte) (int, error) {
	if len(b.text) == 0 {
		return 0, io.EOF
	}
	b.before(b.line)
	b.line++
	line, _, _ := bytes.Cut(b.text, []byte("\n"))
	n := copy(p, b.text[:len(line)+1])
	b.text = b.text[n:]
	return n, nil
}

// A load that takes long lives as long as it goes on; upkeep knows, whoever runs it.
func TestALongLoadIsNotUndoneByUpkeep(t *testing.T) {
	trees := memtrees.New()
	s := newLake(t, trees)
	for range 20 {
		s.commit(t, "main")
	}
	text := s.dump(t, "lake")
	engine, clock := mem.New(), &later{}
	to, cleaner := newStore(t, engine, trees, clock.edit), newStore(t, engine, trees, clock.edit)
	_, err := dump.Load(t.Context(), to.Graveler, "copy", &byLine{text: text, before: func(line int) {
		clock.pass(4 * time.Minute)
		report, err := cleaner.Maintain(t.Context())
		require.NoError(t, err)
		require.Zero(t, report.RepositoriesDeleted)
		_, err = cleaner.GetRepository(t.Context(), "copy")
		require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
		_, err = cleaner.CreateRepository(t.Context(), "copy", graveler.CreateRepositoryParams{})
		if line > 0 {
			require.ErrorIs(t, err, graveler.ErrExists)
		} else {
			require.NoError(t, err)
			require.NoError(t, cleaner.DeleteRepository(t.Context(), "copy"))
		}
	}}, dump.LoadParams{})
	require.NoError(t, err)
	r, err := to.GetRepository(t.Context(), "copy")
	require.NoError(t, err)
	lake, err := s.GetRepository(t.Context(), "lake")
	require.NoError(t, err)
	require.Equal(t, lake.CreatedAt, r.CreatedAt)
}

// A load that stood still, and was taken for dead, is told so, writes no more, and leaves nothing.
func TestALoadThatStoodStillIsTold(t *testing.T) {
	trees := memtrees.New()
	text := rich(t, trees).dump(t, "lake")
	lines := bytes.Count(text, []byte("\n"))
	for at := 1; at < lines; at++ {
		var written partitions
		engine, clock := mem.New(), &later{}
		to := newStore(t, kvtest.Faulty(engine, written.note), trees, clock.edit)
		_, err := dump.Load(t.Context(), to.Graveler, "copy", &byLine{text: text, before: func(line int) {
			if line == at {
				clock.pass(time.Hour)
				_, err := to.Maintain(t.Context())
				require.NoError(t, err)
			}
		}}, dump.LoadParams{})
		require.ErrorIs(t, err, graveler.ErrRepositoryInDeletion, "at line %d", at)
		clock.pass(-time.Hour)
		for range 2 {
			clock.pass(2 * time.Hour)
			_, err = to.Maintain(t.Context())
			require.NoError(t, err)
		}
		require.Empty(t, written.held(t, engine))
	}
}
