// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// withHook makes a fixture whose commits first call hook.
func withHook(t *testing.T, hook *func(graveler.PreCommitEvent) error) *fixture {
	return newFixture(t, dropAtOnce, func(c *graveler.Config) {
		c.Hooks.PreCommit = func(_ context.Context, e graveler.PreCommitEvent) error { return (*hook)(e) }
	})
}

func accept(graveler.PreCommitEvent) error { return nil }

// What is sealed while a commit's hook runs is neither in what the hook judged nor in the commit.
func TestACommitHoldsWhatItsHookJudged(t *testing.T) {
	ctx := context.Background()
	hook := accept
	f := withHook(t, &hook)
	f.set(t, "old", "x")
	f.commit(t, "old")
	f.set(t, "mine", "x")
	var judged []string
	hook = func(e graveler.PreCommitEvent) error {
		hook = accept
		judged = showDiffs(t, e.Changes)
		f.set(t, "theirs", "x")
		require.NoError(t, f.DeletePrefix(ctx, "lake", "main", key("old")))
		return nil
	}
	f.commit(t, "mine")
	require.Equal(t, []string{"+mine"}, judged)
	require.Equal(t, []string{"mine=x", "old=x"}, show(t, f.Graveler, "main@", graveler.ListOptions{}))
	require.Equal(t, []string{"mine=x", "theirs=x"}, show(t, f.Graveler, "main", graveler.ListOptions{}))

	// Folded into the base while the hook runs, they are judged as well.
	f.set(t, "more", "x")
	calls := 0
	hook = func(e graveler.PreCommitEvent) error {
		judged = showDiffs(t, e.Changes)
		if calls++; calls == 1 {
			f.set(t, "late", "x")
			require.NoError(t, f.Compact(ctx, "lake", "main"))
		}
		return nil
	}
	f.commit(t, "more")
	require.Equal(t, 2, calls)
	require.Equal(t, []string{"+late", "+more", "-old", "+theirs"}, judged)
}

// A hook whose changes are folded and dropped under its eyes is told, rather than shown a part of them.
func TestAHookIsNotShownPartOfTheChanges(t *testing.T) {
	ctx := context.Background()
	hook := accept
	f := withHook(t, &hook)
	f.set(t, "a", "x")
	hook = func(e graveler.PreCommitEvent) error {
		require.NoError(t, f.Compact(ctx, "lake", "main"))
		_, err := f.Maintain(ctx)
		require.NoError(t, err)
		for _, err := range e.Changes {
			if err != nil {
				return err
			}
		}
		return nil
	}
	_, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "m"})
	require.ErrorIs(t, err, graveler.ErrChanged)
	require.Equal(t, []string{"a=x"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
}

// A branch that changes, or is made again, while an unforced deletion looks at it, is looked at again.
func TestUnforcedDeletionTakesNoChanges(t *testing.T) {
	ctx := context.Background()
	for name, meanwhile := range map[string]func(t *testing.T, g *graveler.Graveler){
		"a write": func(t *testing.T, g *graveler.Graveler) {
			require.NoError(t, g.Set(ctx, "lake", "dev", key("k"), value("x")))
		},
		"another branch of that name": func(t *testing.T, g *graveler.Graveler) {
			require.NoError(t, g.DeleteBranch(ctx, "lake", "dev", true))
			_, err := g.CreateBranch(ctx, "lake", "dev", "main")
			require.NoError(t, err)
			require.NoError(t, g.Set(ctx, "lake", "dev", key("k"), value("x")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			staging := &interruptedStaging{}
			f := newFixture(t, dropAtOnce, func(c *graveler.Config) { staging.Staging = c.Staging; c.Staging = staging })
			_, err := f.CreateBranch(ctx, "lake", "dev", "main")
			require.NoError(t, err)
			other := f.another(t)
			staging.meanwhile = func() { meanwhile(t, other) }
			require.ErrorIs(t, f.DeleteBranch(ctx, "lake", "dev", false), graveler.ErrDirtyBranch)
			require.Equal(t, []string{"k=x"}, show(t, f.Graveler, "dev", graveler.ListOptions{}))
		})
	}
}

// interruptedRefs calls meanwhile once, before the next record of a branch is written.
type interruptedRefs struct {
	graveler.Refs
	meanwhile func()
}

func (i *interruptedRefs) PutBranch(ctx context.Context, r *graveler.Repository, b *graveler.Branch) (graveler.Stamp, error) {
	if do := i.meanwhile; do != nil {
		i.meanwhile = nil
		do()
	}
	return i.Refs.PutBranch(ctx, r, b)
}

func (i *interruptedRefs) PublishBranch(ctx context.Context, r *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (graveler.Stamp, error) {
	if do := i.meanwhile; do != nil {
		i.meanwhile = nil
		do()
	}
	return i.Refs.PublishBranch(ctx, r, b, before)
}

// The record of a deletion is written, but the answer is lost. Before the caller looks, the deletion is finished and the branch
// made again, which must not be deleted too.
func TestADeletionWithAnUnknownOutcomeDeletesOnce(t *testing.T) {
	ctx := context.Background()
	edit, breaks := breakable()
	f := newFixture(t, dropAtOnce, edit)
	other := newGraveler(t, f)
	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	*breaks = func(call string) (before, after bool) {
		if call != "PutBranch" {
			return false, false
		}
		*breaks = func(string) (bool, bool) { return false, false }
		return false, true
	}
	again := graveler.Branch{}
	f.config.Refs.(*brokenRefs).afterwards = func() {
		again, err = other.CreateBranch(ctx, "lake", "dev", "main")
		require.NoError(t, err)
	}
	require.NoError(t, f.DeleteBranch(ctx, "lake", "dev", true))
	now, err := other.GetBranch(ctx, "lake", "dev")
	require.NoError(t, err)
	require.Equal(t, again.UID, now.UID)
}

// newGraveler opens the fixture's store past what breaks it.
func newGraveler(t *testing.T, f *fixture) *graveler.Graveler {
	c := f.config
	if broken, ok := c.Refs.(*brokenRefs); ok {
		c.Refs = broken.Refs
	}
	g, err := graveler.New(c)
	require.NoError(t, err)
	return g
}

// A branch is created so slowly that its repository is deleted before its record is written. Nobody must take that record for a branch.
func TestABranchInADeletedRepositoryIsNone(t *testing.T) {
	ctx := context.Background()
	refs := &interruptedRefs{}
	f := newFixture(t, dropAtOnce, func(c *graveler.Config) { refs.Refs = c.Refs })
	third := f.another(t)
	require.NoError(t, third.Set(ctx, "lake", "main", key("k"), value("x"))) // it knows the repository now
	f.config.Refs = refs
	slow := f.another(t)
	refs.meanwhile = func() {
		require.NoError(t, f.DeleteRepository(ctx, "lake"))
		_, err := f.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
		require.NoError(t, err)
	}
	_, err := slow.CreateBranch(ctx, "lake", "ghost", "main")
	require.ErrorIs(t, err, graveler.ErrNotFound)
	require.ErrorIs(t, third.Set(ctx, "lake", "ghost", key("k"), value("x")), graveler.ErrBranchNotFound)
}

func TestAListingDoesNotMixTwoRepositories(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	fill := func(from, to int) {
		var entries []graveler.Entry
		for i := from; i < to; i++ {
			v := value("x")
			entries = append(entries, graveler.Entry{Key: key(fmt.Sprintf("k%05d", i)), Value: &v})
		}
		require.NoError(t, f.SetMany(ctx, "lake", "main", entries))
	}
	fill(0, 1500)
	n := 0
	var last error
	for _, err := range f.List(ctx, "lake", "main", graveler.ListOptions{}) {
		if last = err; err == nil {
			n++
		}
		if n == 500 {
			require.NoError(t, f.DeleteRepository(ctx, "lake"))
			_, err := f.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
			require.NoError(t, err)
			fill(1000, 2000)
			n++
		}
	}
	require.ErrorIs(t, last, graveler.ErrNotFound)
}

func TestABackwardJumpOfTheClockIsNoticedAtOnce(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	f := newFixture(t, func(c *graveler.Config) { c.Now = func() time.Time { return now } })
	ctx := context.Background()
	now = now.Add(-48 * time.Hour)
	f.set(t, "a", "1")
	_, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{})
	require.ErrorIs(t, err, graveler.ErrClockSkew)
	_, err = f.CreateRepository(ctx, "other", graveler.CreateRepositoryParams{})
	require.ErrorIs(t, err, graveler.ErrClockSkew)
	require.NoError(t, f.DeleteRepository(ctx, "lake"), "deleting asks no clock")
}

// A machine whose clock is a year ahead makes moves. Until the clock is reset, every other machine is refused.
func TestResettingTheClockAfterAMachineWasAhead(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	f := newFixture(t, func(c *graveler.Config) { c.Now = func() time.Time { return now } })
	ctx := context.Background()
	start := now
	now = start.Add(365 * 24 * time.Hour)
	_, err := f.another(t).CreateBranch(ctx, "lake", "ahead", "main")
	require.NoError(t, err)
	now = start.Add(2 * time.Minute)
	g := f.another(t)
	_, err = g.CreateBranch(ctx, "lake", "dev", "main")
	require.ErrorIs(t, err, graveler.ErrClockSkew)
	highest, err := g.ClockWatermark(ctx)
	require.NoError(t, err)
	require.Equal(t, start.Add(365*24*time.Hour).UTC(), highest)

	require.NoError(t, g.ResetClock(ctx))
	_, err = g.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	_, err = g.Commit(ctx, "lake", "main", graveler.CommitParams{AllowEmpty: true})
	require.NoError(t, err)
	_, err = g.Commit(ctx, "lake", "ahead", graveler.CommitParams{AllowEmpty: true})
	require.ErrorIs(t, err, graveler.ErrClockSkew)
	require.NoError(t, g.DeleteBranch(ctx, "lake", "ahead", false))
	_, err = g.CreateBranch(ctx, "lake", "ahead", "main")
	require.NoError(t, err)
}

// panicking breaks once in the middle of a read.
type panicking struct {
	graveler.Refs
	armed bool
}

func (p *panicking) GetBranch(ctx context.Context, r *graveler.Repository, id graveler.BranchID) (*graveler.Branch, error) {
	if p.armed {
		p.armed = false
		panic("engine")
	}
	return p.Refs.GetBranch(ctx, r, id)
}

func TestAPanicOfTheEngineDoesNotBlockTheBranch(t *testing.T) {
	refs := &panicking{}
	f := newFixture(t, func(c *graveler.Config) { refs.Refs = c.Refs; c.Refs = refs })
	refs.armed = true
	require.Panics(t, func() { show(t, f.Graveler, "main", graveler.ListOptions{}) })
	require.Empty(t, show(t, f.Graveler, "main", graveler.ListOptions{}))
}

func TestTheSealedListStaysShortUnderConcurrentDeletions(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	var group sync.WaitGroup
	errs := make(chan error, 200)
	for i := range 200 {
		group.Go(func() {
			errs <- f.DeletePrefix(ctx, "lake", "main", key(fmt.Sprint(i, strings.Repeat("x", 1000))))
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	b, err := f.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	require.LessOrEqual(t, len(b.Items), 65)
}

func TestPagesAreBoundedInBytes(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	for i := range 40 {
		v := graveler.Value{Identity: []byte{1}, Data: make([]byte, 240<<10)}
		require.NoError(t, f.Set(ctx, "lake", "main", key(fmt.Sprintf("%02d", i)), v))
	}
	f.kv.Reset()
	page, more, err := graveler.Page(f.List(ctx, "lake", "main", graveler.ListOptions{}), 3)
	require.NoError(t, err)
	require.True(t, more)
	require.Len(t, page, 3)
	require.Len(t, show(t, f.Graveler, "main", graveler.ListOptions{}), 40)
}

func TestBadCommitParamsAreRefusedBeforeAnythingIsSealed(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	for _, p := range []graveler.CommitParams{
		{Message: "\xff"}, {Committer: "\xff"}, {Metadata: map[string]string{"k": "\xff"}}, {CreatedAt: time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		_, err := f.Commit(ctx, "lake", "main", p)
		require.ErrorIs(t, err, graveler.ErrInvalidValue)
	}
	b, err := f.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	require.Empty(t, b.Items)
}

// Where fences are costly, a process with an old record writes under a token that was dropped. What it leaves there is dropped once more.
func TestALateWriteUnderADroppedTokenIsCleanedUp(t *testing.T) {
	f := newFixtureAt(t, costlyFences, dropAtOnce)
	ctx := context.Background()
	late := f.another(t)
	require.NoError(t, late.Set(ctx, "lake", "main", key("a"), value("x")))
	b, err := f.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	f.commit(t, "m")
	_, err = f.Maintain(ctx)
	require.NoError(t, err)

	require.NoError(t, late.Set(ctx, "lake", "main", key("b"), value("x")))
	staged, err := f.config.Staging.Get(ctx, b.Token, key("b"))
	require.NoError(t, err)
	require.NotNil(t, staged.Stamp, "it came late")
	_, err = f.Maintain(ctx)
	require.NoError(t, err)
	staged, err = f.config.Staging.Get(ctx, b.Token, key("b"))
	require.NoError(t, err)
	require.Nil(t, staged.Stamp)
	require.Equal(t, []string{"a=x", "b=x"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
}
