// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// heldTrees holds the next trees that are made until the test lets go.
type heldTrees struct {
	graveler.Trees
	mu   sync.Mutex
	gate chan struct{}
}

func (h *heldTrees) hold() (letGo func()) {
	gate := make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gate = gate
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.gate = nil
		close(gate)
	}
}

func (h *heldTrees) Apply(ctx context.Context, ns string, tree graveler.MetaRangeID, changes graveler.Iterator[graveler.Entry]) (graveler.MetaRangeID, error) {
	h.mu.Lock()
	gate := h.gate
	h.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return h.Trees.Apply(ctx, ns, tree, changes)
}

func newHeldFixture(t *testing.T, edits ...func(*graveler.Config)) (*fixture, *heldTrees) {
	held := &heldTrees{}
	f := newFixture(t, append(edits, func(c *graveler.Config) { held.Trees = c.Trees; c.Trees = held })...)
	f.set(t, "base", "0")
	f.commit(t, "base")
	return f, held
}

type commitOutcome struct {
	res graveler.CommitResult
	err error
}

// Commits that come while another is being made wait for it. The first of them then takes along what all of them have found
// staged, and costs what one commit costs.
func TestCommitsThatWaitAreMadeAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		f, held := newHeldFixture(t)
		const waiting = 16
		outcomes := make([]commitOutcome, waiting+1)
		commit := func(i int) {
			outcomes[i].res, outcomes[i].err = f.Commit(ctx, "lake", "main", graveler.CommitParams{Message: fmt.Sprint(i)})
		}
		letGo := held.hold()
		f.set(t, "k00", "0")
		go commit(0)
		synctest.Wait()
		for i := 1; i <= waiting; i++ {
			f.set(t, fmt.Sprintf("k%02d", i), fmt.Sprint(i))
			go commit(i)
			synctest.Wait()
		}
		f.kv.Reset()
		letGo()
		synctest.Wait()

		counts := f.kv.Counts()
		require.Equal(t, 2, counts["Publish"], "the one that was under way, and one for all that waited")
		require.Equal(t, 1, counts["SetIf"], "their seal")
		require.Zero(t, counts["Set"]+counts["Apply"]+counts["Delete"]+counts["DeleteIf"])
		first, second := outcomes[0], outcomes[1]
		require.NoError(t, first.err)
		require.NoError(t, second.err)
		require.Equal(t, []graveler.CommitID{first.res.Commit.ID}, second.res.Commit.Parents)
		for i, o := range outcomes[2:] {
			require.NoError(t, o.err, i)
			require.True(t, o.res.AlreadyCommitted)
			require.Equal(t, second.res.Commit.ID, o.res.Commit.ID)
		}
		require.Len(t, show(t, f.Graveler, "main@", graveler.ListOptions{}), 1+1+waiting)
		_, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{})
		require.ErrorIs(t, err, graveler.ErrNoChanges)
	})
}

// A commit that waits has not sealed anything yet. What another process does to the branch meanwhile decides what it comes to.
func TestWhatACommitFindsWhenItsTurnComes(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		meanwhile     func(other *graveler.Graveler) error
		first, second error
		head          []string
	}{
		"what it found": {func(*graveler.Graveler) error { return nil }, nil, nil, []string{"a=1", "b=2", "base=0"}},
		"more than that": {func(other *graveler.Graveler) error {
			return other.Set(ctx, "lake", "dev", key("c"), value("3"))
		}, nil, nil, []string{"a=1", "b=2", "base=0", "c=3"}},
		"its token sealed": {func(other *graveler.Graveler) error {
			return other.DeletePrefix(ctx, "lake", "dev", key("base"))
		}, nil, nil, []string{"a=1", "b=2", "base=0"}},
		"its changes folded into the base": {func(other *graveler.Graveler) error {
			return other.Compact(ctx, "lake", "dev")
		}, nil, graveler.ErrNoChanges, []string{"a=1", "b=2", "base=0"}}, // the first commit goes on from the base
		"its changes committed": {func(other *graveler.Graveler) error {
			_, err := other.Commit(ctx, "lake", "dev", graveler.CommitParams{})
			return err
		}, nil, nil, []string{"a=1", "b=2", "base=0"}},
		"its change reset": {func(other *graveler.Graveler) error {
			return other.ResetStagedKey(ctx, "lake", "dev", key("b"))
		}, nil, graveler.ErrNoChanges, []string{"a=1", "base=0"}},
		"everything reset": {func(other *graveler.Graveler) error {
			return other.ResetStaged(ctx, "lake", "dev", nil)
		}, graveler.ErrNoChanges, graveler.ErrNoChanges, []string{"base=0"}},
		"another branch of the name": {func(other *graveler.Graveler) error {
			if err := other.DeleteBranch(ctx, "lake", "dev", true); err != nil {
				return err
			}
			_, err := other.CreateBranch(ctx, "lake", "dev", "main")
			return errors.Join(err, other.Set(ctx, "lake", "dev", key("new"), value("9")))
		}, graveler.ErrBranchNotFound, graveler.ErrBranchNotFound, []string{"base=0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, held := newHeldFixture(t)
				_, err := f.CreateBranch(ctx, "lake", "dev", "main")
				require.NoError(t, err)
				config := f.config
				config.Trees = f.trees // not held
				other, err := graveler.New(config)
				require.NoError(t, err)
				letGo := held.hold()
				outcomes := make([]commitOutcome, 2)
				for i, k := range []string{"a", "b"} {
					require.NoError(t, f.Set(ctx, "lake", "dev", key(k), value(fmt.Sprint(i+1))))
					go func() { outcomes[i].res, outcomes[i].err = f.Commit(ctx, "lake", "dev", graveler.CommitParams{}) }()
					synctest.Wait()
				}
				require.NoError(t, c.meanwhile(other))
				letGo()
				synctest.Wait()
				require.ErrorIs(t, outcomes[0].err, c.first)
				require.ErrorIs(t, outcomes[1].err, c.second)
				require.Equal(t, c.head, show(t, f.Graveler, "dev@", graveler.ListOptions{}))
			})
		})
	}
}
