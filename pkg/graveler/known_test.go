// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// A commit never changes, so what a process knows of it needs no proof but that its repository is still there, once in a second.
func TestAGetOfAKnownCommitAsksForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ctx := context.Background()
		f.set(t, "a", "1")
		id := string(f.commit(t, "base").ID)
		get := func(ref string, calls map[string]int) {
			f.kv.Reset()
			_, err := f.Get(ctx, "lake", ref, key("a"))
			require.NoError(t, err)
			require.Equal(t, calls, f.kv.Counts())
		}
		time.Sleep(time.Hour) // of the bubble's clock
		get(id, map[string]int{"Get": 1})
		for range 3 {
			get(id, map[string]int{})
		}
		_, err := f.Get(ctx, "lake", id, key("nothing here"))
		require.ErrorIs(t, err, graveler.ErrEntryNotFound)
		require.Equal(t, map[string]int{}, f.kv.Counts())
		require.Len(t, show(t, f.Graveler, id, graveler.ListOptions{}), 1)
		require.Equal(t, map[string]int{}, f.kv.Counts())
		time.Sleep(time.Second)
		get(id, map[string]int{"Get": 1})
		get("main@", map[string]int{"Get": 2}) // only a whole ID names what never changes
	})
}

func TestACommitOfADeletedRepositoryIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ctx := context.Background()
		f.set(t, "a", "1")
		id := string(f.commit(t, "base").ID)
		other, err := graveler.New(f.config) // as in another process
		require.NoError(t, err)
		for range 2 {
			_, err := f.Get(ctx, "lake", id, key("a"))
			require.NoError(t, err)
			_, err = other.Get(ctx, "lake", id, key("a"))
			require.NoError(t, err)
		}
		require.NoError(t, f.DeleteRepository(ctx, "lake"))
		_, err = f.Get(ctx, "lake", id, key("a"))
		require.ErrorIs(t, err, graveler.ErrRepositoryNotFound, "at once where it was deleted")
		time.Sleep(time.Second)
		_, err = other.Get(ctx, "lake", id, key("a"))
		require.ErrorIs(t, err, graveler.ErrRepositoryNotFound, "a second later elsewhere")

		_, err = f.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
		require.NoError(t, err)
		for _, g := range []*graveler.Graveler{f.Graveler, other} {
			_, err = g.Get(ctx, "lake", id, key("a"))
			require.ErrorIs(t, err, graveler.ErrRefNotFound, "a repository of the same name does not have its commits")
		}
	})
}
