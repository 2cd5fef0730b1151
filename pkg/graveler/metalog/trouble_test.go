// SPDX-License-Identifier: Apache-2.0

package metalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
)

// once returns a function that calls do when it is called for the first time.
func once(do func()) func() {
	called := false
	return func() {
		if !called {
			called = true
			do()
		}
	}
}

// busyBranch is a fixture whose branch dev has seen a few commits.
func busyBranch(t *testing.T) (f *fixture, dev metalog.Source) {
	t.Helper()
	f = newFixture(t)
	_, err := f.CreateBranch(t.Context(), "lake", "dev", "main")
	require.NoError(t, err)
	for _, text := range []string{"1", "2", "3"} {
		f.commit(t, "dev", "k", text)
	}
	return f, f.source(t, "dev")
}

var busyEvents = []string{"head", "put k=1", "put k=2", "put k=3"}

// gone is busyBranch, and the branch is deleted.
func gone(t *testing.T) (f *fixture, dev metalog.Source) {
	t.Helper()
	f, dev = busyBranch(t)
	require.NoError(t, f.DeleteBranch(t.Context(), "lake", "dev", false))
	return f, dev
}

// read returns the summary of all events after a time, and the time of the last.
func (f *fixture) read(t *testing.T, source metalog.Source, after int64) (lines []string, last int64, err error) {
	t.Helper()
	var events []metalog.Event
	for e, err := range f.feed.Events(t.Context(), []metalog.Source{source}, after, forever) {
		if err != nil {
			return summary(events), last, err
		}
		events, last = append(events, e), e.Timestamp
	}
	return summary(events), last, nil
}

// What was moved, or deleted, after the record was read is not in the window, and the next one has it.
func TestMovesMeanwhileAreInTheNextWindow(t *testing.T) {
	for next, move := range map[string]func(*testing.T, *fixture){
		"put k=4": func(t *testing.T, f *fixture) { f.commit(t, "dev", "k", "4") },
		"head -":  func(t *testing.T, f *fixture) { require.NoError(t, f.DeleteBranch(t.Context(), "lake", "dev", false)) },
	} {
		f, dev := busyBranch(t)
		f.refs.beforeScan = once(func() { move(t, f) })
		lines, last, err := f.read(t, dev, 0)
		require.NoError(t, err)
		require.Equal(t, busyEvents, lines)
		lines, _, err = f.read(t, dev, last)
		require.NoError(t, err)
		require.Equal(t, []string{next}, lines)
	}
}

// A branch that had no record yet, or none any more, when it was looked for.
func TestABranchThatComesOrGoesMeanwhile(t *testing.T) {
	t.Run("comes", func(t *testing.T) {
		f, dev := busyBranch(t)
		reads := 0
		f.refs.noRecord = func() bool { reads++; return reads == 1 }
		lines, _, err := f.read(t, dev, 0)
		require.NoError(t, err)
		require.Equal(t, busyEvents, lines)
	})
	t.Run("comes and goes", func(t *testing.T) {
		f, dev := busyBranch(t)
		reads := 0
		f.refs.noRecord = func() bool {
			if reads++; reads == 2 {
				require.NoError(t, f.DeleteBranch(t.Context(), "lake", "dev", false))
			}
			return reads == 1
		}
		lines, _, err := f.read(t, dev, 0)
		require.NoError(t, err)
		require.Equal(t, append(busyEvents, "head -"), lines)
	})
	t.Run("never came", func(t *testing.T) {
		f, _ := busyBranch(t)
		require.NoError(t, f.refs.PutLogName(t.Context(), f.repository(t), "dev", "cut-off"))
		stray := metalog.Source{Repository: "lake", Branch: "dev", UID: "cut-off"}
		lines, _, err := f.read(t, stray, 0)
		require.NoError(t, err)
		require.Empty(t, lines)
		head, err := f.feed.HeadAt(t.Context(), stray, forever)
		require.NoError(t, err)
		require.Equal(t, graveler.BranchHead{Tree: f.trees.EmptyTree()}, head)
	})
	t.Run("is lost", func(t *testing.T) {
		f, dev := busyBranch(t)
		f.refs.noRecord = func() bool { return true }
		for _, after := range []int64{0, epoch + 1, forever} {
			_, _, err := f.read(t, dev, after)
			require.ErrorIs(t, err, graveler.ErrCorrupt)
			_, err = f.feed.TreeAt(t.Context(), dev, after)
			require.ErrorIs(t, err, graveler.ErrCorrupt)
		}
	})
	t.Run("its deletion is lost", func(t *testing.T) {
		f, dev := gone(t)
		moves := f.kept(t, dev.UID)
		require.NoError(t, f.refs.RemoveMove(t.Context(), f.repository(t), dev.UID, moves[len(moves)-1].Time))
		_, _, err := f.read(t, dev, 0)
		require.ErrorIs(t, err, graveler.ErrCorrupt)
	})
}

// Retention that removes moves while they are read is not damage, and what it leaves is never taken for all.
func TestALogThatIsTruncatedWhileItIsRead(t *testing.T) {
	t.Run("its beginning", func(t *testing.T) {
		f, dev := busyBranch(t)
		start := f.kept(t, dev.UID)[2].Time
		f.refs.beforeScan = once(func() { f.truncate(t, dev.UID, start) })
		_, _, err := f.read(t, dev, 0)
		require.ErrorIs(t, err, graveler.ErrLogTruncated)
		_, err = f.feed.TreeAt(t.Context(), dev, start-2)
		require.ErrorIs(t, err, graveler.ErrLogTruncated)
	})
	t.Run("all of it", func(t *testing.T) {
		f, dev := gone(t)
		f.refs.beforeScan = once(func() { f.truncate(t, dev.UID, forever) })
		_, _, err := f.read(t, dev, 0)
		require.ErrorIs(t, err, graveler.ErrLogTruncated)
	})
	t.Run("and forgotten", func(t *testing.T) {
		f, dev := gone(t)
		f.refs.beforeScan = once(func() {
			f.truncate(t, dev.UID, forever)
			require.NoError(t, f.refs.RemoveLogName(t.Context(), f.repository(t), graveler.LogName{Branch: "dev", UID: dev.UID}))
		})
		_, _, err := f.read(t, dev, 0)
		require.ErrorIs(t, err, graveler.ErrBranchNotFound)
	})
	t.Run("its trees", func(t *testing.T) {
		f, dev := busyBranch(t)
		start := f.kept(t, dev.UID)[2].Time
		var last error
		for _, last = range f.feed.Events(t.Context(), []metalog.Source{dev}, 0, forever) {
			f.truncate(t, dev.UID, start)
			require.NoError(t, f.trees.Drop(t.Context(), f.repository(t).Namespace))
		}
		require.ErrorIs(t, last, graveler.ErrLogTruncated)
	})
}

// A mover that comes late writes the move before its own, though retention has removed it.
func TestAMoveThatIsWrittenAgainAfterTruncationDoesNotShow(t *testing.T) {
	f, dev := busyBranch(t)
	moves := f.kept(t, dev.UID)
	f.truncate(t, dev.UID, moves[2].Time)
	require.NoError(t, f.refs.PutMove(t.Context(), f.repository(t), dev.UID, moves[1]))
	_, _, err := f.read(t, dev, moves[1].Time-1)
	require.ErrorIs(t, err, graveler.ErrLogTruncated)
	lines, _, err := f.read(t, dev, moves[2].Time-1)
	require.NoError(t, err)
	require.Equal(t, []string{"put k=2", "put k=3"}, lines)
}

func TestARepositoryThatIsDeletedWhileItIsRead(t *testing.T) {
	for _, branch := range []func(*testing.T) (*fixture, metalog.Source){busyBranch, gone} {
		f, dev := branch(t)
		f.refs.beforeScan = once(func() { require.NoError(t, f.DeleteRepository(t.Context(), "lake")) })
		_, _, err := f.read(t, dev, 0)
		require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
		require.NotErrorIs(t, err, graveler.ErrCorrupt)
	}
}

func TestAMissingTreeIsDamage(t *testing.T) {
	f, dev := busyBranch(t)
	require.NoError(t, f.trees.Drop(t.Context(), f.repository(t).Namespace))
	lines, _, err := f.read(t, dev, 0)
	require.Equal(t, []string{"head"}, lines)
	require.ErrorIs(t, err, graveler.ErrCorrupt)
	require.ErrorIs(t, failure(f.feed.Net(t.Context(), dev, 0, forever)), graveler.ErrCorrupt)
}
