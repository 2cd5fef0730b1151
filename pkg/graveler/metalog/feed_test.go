// SPDX-License-Identifier: Apache-2.0

package metalog_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
)

func TestCreationAndDeletionAreOneEventUnlessContentsAreAskedFor(t *testing.T) {
	ctx, f := t.Context(), newFixture(t)
	f.commit(t, "main", "a", "1")
	f.commit(t, "main", "b", "1")
	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	dev := f.source(t, "dev")
	f.commit(t, "dev", "c", "1")
	require.NoError(t, f.DeleteBranch(ctx, "lake", "dev", false))

	events := func() []string { return summary(collect(t, f.feed.Events(ctx, []metalog.Source{dev}, 0, forever))) }
	require.Equal(t, []string{"head", "put c=1", "head -"}, events())
	dev.Contents = true
	require.Equal(t, []string{"head", "put a=1", "put b=1", "put c=1", "head -", "delete a", "delete b", "delete c"}, events())
}

func TestABranchMadeAgainIsAnotherSource(t *testing.T) {
	ctx, f := t.Context(), newFixture(t)
	var want []metalog.Source
	for i := range 3 {
		f.clock.Add(100)
		_, err := f.CreateBranch(ctx, "lake", "dev", "main")
		require.NoError(t, err)
		f.commit(t, "dev", "k", fmt.Sprint(i))
		want = append(want, f.source(t, "dev"))
		if i < 2 {
			require.NoError(t, f.DeleteBranch(ctx, "lake", "dev", false))
		}
	}
	sources, err := f.feed.Sources(ctx, "lake", "dev")
	require.NoError(t, err)
	require.ElementsMatch(t, want, sources)
	require.Equal(t, []string{"head", "put k=0", "head -", "head", "put k=1", "head -", "head", "put k=2"},
		summary(collect(t, f.feed.Events(ctx, sources, 0, forever))))
	require.Equal(t, []string{"head", "put k=1", "head -"}, summary(collect(t, f.feed.Events(ctx, want[1:2], 0, forever))))

	sources, err = f.feed.Sources(ctx, "lake", "")
	require.NoError(t, err)
	require.ElementsMatch(t, append(want, f.source(t, "main")), sources)
}

// A net effect does not show what was undone; the events do, each with what was there before.
func TestWhatIsUndoneIsInTheEventsAndNotInTheNetEffect(t *testing.T) {
	ctx, f := t.Context(), newFixture(t)
	f.commit(t, "main", "a", "1")
	main := f.source(t, "main")
	before, err := f.feed.HeadAt(ctx, main, forever)
	require.NoError(t, err)
	require.NoError(t, f.Delete(ctx, "lake", "main", graveler.Key("a")))
	f.commit(t, "main", "b", "1")
	_, err = f.Revert(ctx, "lake", "main", "main", graveler.PickParams{})
	require.NoError(t, err)
	f.commit(t, "main", "c", "1")
	_, err = f.Reset(ctx, "lake", "main", "main~1", graveler.ResetParams{})
	require.NoError(t, err)

	events := collect(t, f.feed.Events(ctx, []metalog.Source{main}, before.Time, forever))
	require.Equal(t, []string{"delete a", "put b=1", "put a=1", "delete b", "put c=1", "delete c"}, summary(events))
	require.Equal(t, "1", string(events[0].Previous.Data))
	require.Equal(t, []graveler.Op{graveler.OpCommit, graveler.OpRevert, graveler.OpReset}, []graveler.Op{events[1].Op, events[2].Op, events[5].Op})
	require.Empty(t, collect(t, f.feed.Net(ctx, main, before.Time, forever)))

	head, err := f.feed.HeadAt(ctx, main, forever)
	require.NoError(t, err)
	net := collect(t, f.feed.Net(ctx, main, 0, forever))
	require.Len(t, net, 1)
	v := value("1")
	require.Equal(t, metalog.Event{
		Timestamp: head.Time, Repository: "lake", Branch: "main", UID: main.UID, Commit: head.Commit, Kind: metalog.Put, Key: graveler.Key("a"), Value: &v,
	}, net[0])
	main.After = forever
	require.Empty(t, collect(t, f.feed.Net(ctx, main, 0, forever)))
}

func TestWhatIsNoSource(t *testing.T) {
	ctx, f := t.Context(), newFixture(t)
	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	main, dev := f.source(t, "main"), f.source(t, "dev")
	_, err = f.feed.Sources(ctx, "lake", "none")
	require.ErrorIs(t, err, graveler.ErrBranchNotFound)
	_, err = f.feed.Sources(ctx, "sea", "main")
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
	for want, sources := range map[error][]metalog.Source{
		graveler.ErrBranchNotFound:     {main, {Repository: "lake", Branch: "dev", UID: main.UID}},
		graveler.ErrRepositoryNotFound: {main, {Repository: "sea", Branch: "main", UID: main.UID}},
		graveler.ErrInvalidName:        {main, {Repository: "lake", Branch: "a..b", UID: main.UID}},
		graveler.ErrInvalidValue:       {main, dev, main},
	} {
		require.ErrorIs(t, failure(f.feed.Events(ctx, sources, 0, forever)), want)
	}
	unnamed := metalog.Source{Repository: "lake", Branch: "main"}
	_, err = f.feed.TreeAt(ctx, unnamed, 0)
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	require.ErrorIs(t, failure(f.feed.Events(ctx, []metalog.Source{unnamed}, 0, forever)), graveler.ErrInvalidValue)
	require.ErrorIs(t, failure(f.feed.Net(ctx, unnamed, 0, forever)), graveler.ErrInvalidValue)

	require.NoError(t, f.DeleteRepository(ctx, "lake"))
	_, err = f.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	require.ErrorIs(t, failure(f.feed.Events(ctx, []metalog.Source{main}, 0, forever)), graveler.ErrBranchNotFound, "it is another main")
}

func TestAnEarlyBreakReleasesEverything(t *testing.T) {
	ctx, f := t.Context(), newFixture(t)
	var sources []metalog.Source
	for _, b := range []graveler.BranchID{"main", "dev", "side"} {
		if b != "main" {
			_, err := f.CreateBranch(ctx, "lake", b, "main")
			require.NoError(t, err)
		}
		for i := range 3 {
			f.commit(t, b, "k", fmt.Sprint(b, i))
			f.commit(t, b, "l", fmt.Sprint(b, i))
		}
		sources = append(sources, f.source(t, b))
	}
	all := len(collect(t, f.feed.Events(ctx, sources, 0, forever)))
	goroutines := runtime.NumGoroutine()
	for stopAfter := 1; stopAfter <= all; stopAfter++ {
		n := 0
		for _, err := range f.feed.Events(ctx, sources, 0, forever) {
			require.NoError(t, err)
			if n++; n == stopAfter {
				break
			}
		}
		require.Zero(t, f.trees.open.Load())
	}
	for range f.feed.Net(ctx, sources[0], 0, forever) {
		break
	}
	require.Zero(t, f.trees.open.Load())
	// Those of earlier tests may take a moment to be gone.
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), "%d goroutines before, %d after", goroutines, runtime.NumGoroutine())
	}
}

func TestACancelledContextEndsTheFeed(t *testing.T) {
	f := newFixture(t)
	f.commit(t, "main", "a", "1")
	f.commit(t, "main", "b", "1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var err error
	for _, err = range f.feed.Events(ctx, []metalog.Source{f.source(t, "main")}, 0, forever) {
		cancel()
	}
	require.ErrorIs(t, err, context.Canceled)
}

func TestAChangeOfATreeShowsAsItsChanges(t *testing.T) {
	ctx, f := t.Context(), newFixture(t)
	f.commit(t, "main", "a", "1")
	f.commit(t, "main", "b", "1")
	since := f.clock.Add(100) + epoch
	f.clock.Add(100)
	_, err := f.ChangeTree(ctx, "lake", "main", graveler.ChangeTreeParams{Op: graveler.OpLifecycle}, func(_ context.Context, _ *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
		return func(yield func(graveler.Entry, error) bool) {
			v := value("2")
			_ = yield(graveler.Entry{Key: graveler.Key("a")}, nil) && yield(graveler.Entry{Key: graveler.Key("b"), Value: &v}, nil)
		}, nil
	})
	require.NoError(t, err)
	events := collect(t, f.feed.Events(ctx, []metalog.Source{f.source(t, "main")}, since, forever))
	require.Equal(t, []string{"delete a", "put b=2"}, summary(events))
	for _, e := range events {
		require.Equal(t, graveler.OpLifecycle, e.Op)
		require.Equal(t, "1", string(e.Previous.Data))
	}
}
