// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// The records of a store are lost, its files are not.
func TestALoadInPlaceTakesTheFilesOver(t *testing.T) {
	ctx, trees := t.Context(), memtrees.New()
	s := rich(t, trees)
	text := s.dump(t, "lake")
	lake, err := s.GetRepository(ctx, "lake")
	require.NoError(t, err)
	files := slices.Collect(all(t, trees.ListFiles(ctx, lake.Namespace)))

	to := newStore(t, mem.New(), trees)
	require.NoError(t, to.load("lake", text, dump.LoadParams{InPlace: true}))
	require.Equal(t, look(t, s, "lake"), look(t, to, "lake"))
	r, err := to.GetRepository(ctx, "lake")
	require.NoError(t, err)
	require.Equal(t, lake.Namespace, r.Namespace)
	require.NotEqual(t, lake.UID, r.UID)
	require.False(t, r.Adopting)
	require.Equal(t, files, slices.Collect(all(t, trees.ListFiles(ctx, lake.Namespace))))

	// They are its own now.
	require.NoError(t, to.DeleteRepository(ctx, "lake"))
	require.Empty(t, slices.Collect(all(t, trees.ListFiles(ctx, lake.Namespace))))
}

func TestANamespaceThatSomebodyHasIsNotTakenOver(t *testing.T) {
	ctx, trees := t.Context(), memtrees.New()
	s := rich(t, trees)
	text := s.dump(t, "lake")
	lake, err := s.GetRepository(ctx, "lake")
	require.NoError(t, err)
	before := look(t, s, "lake")
	for _, files := range []string{"", "file:/elsewhere/" + lake.Namespace, "s3://bucket/" + lake.Namespace + "?region=x"} {
		err = s.load("copy", text, dump.LoadParams{InPlace: true, Files: files})
		require.ErrorIs(t, err, graveler.ErrNamespaceTaken)
		_, err = s.refs.GetRepository(ctx, "copy")
		require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
		require.Equal(t, before, look(t, s, "lake"))
	}

	// Nor while what is left of a repository that had it is still to be removed.
	require.NoError(t, s.DeleteRepository(ctx, "lake"))
	require.ErrorIs(t, s.load("lake", text, dump.LoadParams{InPlace: true}), graveler.ErrNamespaceTaken)
}

func TestOfTwoThatTakeANamespaceOverAtOnceOneDoesAtMost(t *testing.T) {
	trees := memtrees.New()
	text := rich(t, trees).dump(t, "lake")
	for range 50 {
		engine := mem.New()
		var group errgroup.Group
		errs := make([]error, 2)
		for i, name := range []graveler.RepositoryID{"one", "other"} {
			group.Go(func() error {
				errs[i] = newStore(t, engine, trees).load(name, text, dump.LoadParams{InPlace: true})
				return nil
			})
		}
		require.NoError(t, group.Wait())
		made := 0
		for _, err := range errs {
			if err == nil {
				made++
			} else {
				require.ErrorIs(t, err, graveler.ErrNamespaceTaken)
			}
		}
		require.LessOrEqual(t, made, 1)
	}
}

// A load in place that fails leaves the files alone, now and when upkeep has run.
func TestALoadInPlaceThatFailsLeavesTheFiles(t *testing.T) {
	ctx, trees := t.Context(), memtrees.New()
	s := rich(t, trees)
	text := s.dump(t, "lake")
	lake, err := s.GetRepository(ctx, "lake")
	require.NoError(t, err)
	clock := &later{}
	to := newStore(t, mem.New(), trees, clock.edit)
	require.ErrorIs(t, to.load("lake", text[:len(text)-10], dump.LoadParams{InPlace: true}), dump.ErrInvalid)
	for range 2 {
		clock.pass(time.Hour)
		_, err := to.Maintain(ctx)
		require.NoError(t, err)
	}
	require.NotEmpty(t, slices.Collect(all(t, trees.ListFiles(ctx, lake.Namespace))))
	require.NoError(t, to.load("lake", text, dump.LoadParams{InPlace: true}))
	require.Equal(t, look(t, s, "lake"), look(t, to, "lake"))
}

func TestALoadWithoutFilesToTakeOverIsRefused(t *testing.T) {
	s := newLake(t, memtrees.New())
	_, err := s.LoadRepository(t.Context(), "copy", graveler.LoadParams{DefaultBranch: "main", InPlace: true})
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	_, err = s.LoadRepository(t.Context(), "Copy", graveler.LoadParams{DefaultBranch: "main"})
	require.ErrorIs(t, err, graveler.ErrInvalidName)
	_, err = s.LoadRepository(t.Context(), "copy", graveler.LoadParams{})
	require.ErrorIs(t, err, graveler.ErrInvalidName)
	_, err = s.LoadRepository(t.Context(), "lake", graveler.LoadParams{DefaultBranch: "main"})
	require.ErrorIs(t, err, graveler.ErrExists)
}
