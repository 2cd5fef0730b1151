// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

func TestRepositoryNamesAreTakenOnce(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.ErrorIs(t, err, graveler.ErrExists)

	b, err := f.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	head, err := f.ResolveRef(ctx, "lake", "main")
	require.NoError(t, err)
	require.Equal(t, b.Head, head.ID)
	require.Empty(t, head.Parents)
	require.Empty(t, show(t, f.Graveler, "main", graveler.ListOptions{}))
}

// A creation fails at each of its calls in turn. Once the grace period has passed the name can be used again, and whatever was left is gone.
func TestCreationCutOffAnywhereIsUndone(t *testing.T) {
	ctx := context.Background()
	for at := 1; ; at++ {
		edit, breaks := breakable()
		f := newFixture(t, edit, dropAtOnce)
		calls := 0
		*breaks = func(string) (bool, bool) { calls++; return false, calls == at }
		_, err := f.CreateRepository(ctx, "other", graveler.CreateRepositoryParams{DefaultBranch: "trunk"})
		if calls < at {
			require.NoError(t, err)
			require.Greater(t, at, 3)
			return
		}
		*breaks = func(string) (bool, bool) { return false, false }
		if err != nil {
			_, err = f.Maintain(ctx)
			require.NoError(t, err)
			_, err = f.CreateRepository(ctx, "other", graveler.CreateRepositoryParams{})
			if !errors.Is(err, graveler.ErrExists) { // it had become active before the call failed
				require.NoError(t, err)
			}
		}
		require.NoError(t, f.Set(ctx, "other", defaultBranch(t, f, "other"), key("k"), value("v")))
	}
}

func defaultBranch(t *testing.T, f *fixture, id graveler.RepositoryID) graveler.BranchID {
	r, err := f.GetRepository(context.Background(), id)
	require.NoError(t, err)
	return r.DefaultBranch
}

// Deletion fails at each of its calls in turn, and Maintain goes on. Nothing is left in the end, and the name is free.
func TestDeletionCutOffAnywhereIsFinished(t *testing.T) {
	ctx := context.Background()
	for at := 1; ; at++ {
		edit, breaks := breakable()
		f := newFixture(t, edit, dropAtOnce)
		_, err := f.Maintain(ctx)
		require.NoError(t, err)
		f.set(t, "a", "1")
		f.commit(t, "first")
		_, err = f.CreateBranch(ctx, "lake", "dev", "main")
		require.NoError(t, err)
		_, err = f.CreateTag(ctx, "lake", "v1", "main")
		require.NoError(t, err)
		require.NoError(t, f.Set(ctx, "lake", "dev", key("b"), value("2")))

		calls := 0
		*breaks = func(string) (bool, bool) { calls++; return calls == at, false }
		err = f.DeleteRepository(ctx, "lake")
		finished := calls < at
		*breaks = func(string) (bool, bool) { return false, false }
		if finished {
			require.NoError(t, err)
		} else if err != nil && at > 1 {
			err := f.Set(ctx, "lake", "dev", key("c"), value("3"))
			require.True(t, errors.Is(err, graveler.ErrRepositoryInDeletion) || errors.Is(err, graveler.ErrBranchNotFound), "%v", err)
			_, err = f.another(t).GetRepository(ctx, "lake")
			require.ErrorIs(t, err, graveler.ErrRepositoryInDeletion)
		}
		_, err = f.Maintain(ctx)
		require.NoError(t, err)
		_, err = f.Maintain(ctx)
		require.NoError(t, err)
		if at > 1 {
			_, err = f.GetRepository(ctx, "lake")
			require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
			require.Empty(t, leftovers(t, f))
			_, err = f.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
			require.NoError(t, err)
			require.Empty(t, show(t, f.Graveler, "main", graveler.ListOptions{}))
		}
		if finished {
			require.Greater(t, at, 8)
			return
		}
	}
}

// leftovers lists what the store still has to clean up.
func leftovers(t *testing.T, f *fixture) []graveler.Cleanup {
	return collect(t, f.config.Refs.ScanCleanups(context.Background()))
}

// Another process deletes a repository and makes it again. What this process remembers of the old one must not show, nor swallow writes.
func TestARepositoryMadeAgainElsewhereIsNoticed(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "old", "1")
	_, err := f.Get(ctx, "lake", "main", key("old"))
	require.NoError(t, err)

	other := f.another(t)
	require.NoError(t, other.DeleteRepository(ctx, "lake"))
	require.ErrorIs(t, f.Set(ctx, "lake", "main", key("lost"), value("x")), graveler.ErrNotFound)
	_, err = f.Get(ctx, "lake", "main", key("old"))
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)

	_, err = other.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	f.set(t, "new", "2")
	require.Equal(t, []string{"new=2"}, show(t, other, "main", graveler.ListOptions{}))
	require.Equal(t, []string{"new=2"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
}

// A creation that was slow, and finishes just when upkeep is about to undo it, stands.
func TestACreationThatFinishesAtTheLastMomentIsNotUndone(t *testing.T) {
	ctx := context.Background()
	edit, breaks := breakable()
	f := newFixture(t, edit, dropAtOnce)
	for _, undo := range []func(g *graveler.Graveler) error{
		func(g *graveler.Graveler) error { _, err := g.Maintain(ctx); return err },
		func(g *graveler.Graveler) error {
			_, err := g.CreateRepository(ctx, "slow", graveler.CreateRepositoryParams{})
			return err
		},
	} {
		created := make(chan error)
		creating, goOn := make(chan struct{}), make(chan struct{})
		puts := 0
		*breaks = func(call string) (bool, bool) {
			if call != "PutRepository" {
				return false, false
			}
			switch puts++; puts {
			case 2: // the creation is about to finish
				close(creating)
				<-goOn
			}
			return false, false
		}
		slow := f.another(t)
		go func() {
			_, err := slow.CreateRepository(ctx, "slow", graveler.CreateRepositoryParams{})
			created <- err
		}()
		<-creating
		plain := f.config
		plain.Refs = &lastMoment{Refs: f.config.Refs.(*brokenRefs).Refs, do: func() { close(goOn); require.NoError(t, <-created) }}
		other, err := graveler.New(plain)
		require.NoError(t, err)
		if err := undo(other); err != nil {
			require.ErrorIs(t, err, graveler.ErrExists)
		}
		require.NoError(t, f.Set(ctx, "slow", "main", key("k"), value("v")))
		require.NoError(t, f.DeleteRepository(ctx, "slow"))
	}
}

// lastMoment does something before the first write of a repository's record.
type lastMoment struct {
	graveler.Refs
	do func()
}

func (l *lastMoment) PutRepository(ctx context.Context, r *graveler.Repository) (graveler.Stamp, error) {
	if do := l.do; do != nil {
		l.do = nil
		do()
	}
	return l.Refs.PutRepository(ctx, r)
}
