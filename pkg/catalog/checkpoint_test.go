// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// runner is a Run whose timers a test holds, on a store whose commits a test can make fail.
type runner struct {
	*fixture
	t      *testing.T
	c      *Catalog
	timers chan timer // each that is set
	failed chan error
	ended  chan error
	stop   context.CancelFunc
	broken error // set while no Run is at work, or before what makes it commit
	made   chan graveler.CommitParams

	first sync.Once
	began chan struct{} // closed when the Run has tried to commit what was there before it
}

type timer struct {
	d    time.Duration
	fire chan time.Time
}

// brokenCommits is a store whose commits fail while the runner is broken.
type brokenCommits struct {
	Store
	r *runner
}

func (b brokenCommits) Commit(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, p graveler.CommitParams) (graveler.CommitResult, error) {
	defer b.r.first.Do(func() { close(b.r.began) })
	if b.r.broken != nil {
		return graveler.CommitResult{}, b.r.broken
	}
	res, err := b.Store.Commit(ctx, repo, branch, p)
	if err == nil {
		b.r.made <- p
	}
	return res, err
}

func newRunner(t *testing.T, p CheckpointPolicy) *runner {
	r := &runner{fixture: newFixture(t), t: t, timers: make(chan timer, 100), failed: make(chan error, 100), ended: make(chan error, 1), made: make(chan graveler.CommitParams, 100), began: make(chan struct{})}
	c, err := New(Config{Store: brokenCommits{r.Graveler, r}, Checkpoint: p, Now: r.now})
	require.NoError(t, err)
	r.c = c
	return r
}

// start begins a Run, and returns when it is done with what was there before.
func (r *runner) start() {
	ctx, stop := context.WithCancel(r.t.Context())
	r.stop = stop
	run := &checkpoints{c: r.c, failed: func(_ Bucket, err error) { r.failed <- err }, after: func(d time.Duration) <-chan time.Time {
		fire := make(chan time.Time, 1)
		r.timers <- timer{d, fire}
		return fire
	}}
	go func() { r.ended <- run.run(ctx) }()
	<-r.began
	r.t.Cleanup(stop)
}

// end stops the Run and waits for it.
func (r *runner) end() error {
	r.stop()
	return <-r.ended
}

func (r *runner) put(key string) {
	r.t.Helper()
	_, err := r.c.Put(r.t.Context(), r.bucket(), key, Object{}, Conditions{})
	require.NoError(r.t, err)
}

func (r *runner) uncommitted() int {
	n := 0
	for _, err := range r.DiffUncommitted(r.t.Context(), r.name, "main", graveler.DiffOptions{}) {
		require.NoError(r.t, err)
		n++
	}
	return n
}

func TestCheckpointsByCount(t *testing.T) {
	r := newRunner(t, CheckpointPolicy{Changes: 3, Committer: "the store"})
	r.start()
	for i := range 9 {
		r.put(fmt.Sprint(i))
		if i%3 == 2 {
			p := <-r.made
			require.Equal(t, "the store", p.Committer)
			require.Zero(t, r.uncommitted())
		} else {
			require.Empty(t, r.made)
		}
	}
	r.put("last")
	require.NoError(t, r.end())
	require.Zero(t, r.uncommitted(), "the end commits the rest")
	require.Empty(t, r.timers)
}

func TestCheckpointsByTime(t *testing.T) {
	r := newRunner(t, CheckpointPolicy{Interval: time.Minute})
	r.start()
	for i := range 3 {
		tick := <-r.timers
		require.Equal(t, time.Minute, tick.d)
		r.put(fmt.Sprint(i))
		require.Equal(t, 1, r.uncommitted())
		tick.fire <- time.Time{}
		<-r.made
		require.Zero(t, r.uncommitted())
	}
	(<-r.timers).fire <- time.Time{}
	<-r.timers
	require.Empty(t, r.made, "nothing was changed")
	require.NoError(t, r.end())
}

func TestCheckpointsByWhicheverIsFirst(t *testing.T) {
	r := newRunner(t, CheckpointPolicy{Changes: 2, Interval: time.Minute})
	r.start()
	tick := <-r.timers
	r.put("a")
	tick.fire <- time.Time{}
	<-r.made
	tick = <-r.timers
	r.put("b")
	r.put("c")
	<-r.made
	r.put("d")
	tick.fire <- time.Time{}
	<-r.made
	require.NoError(t, r.end())
	require.Zero(t, r.uncommitted())
}

func TestWhatAnEarlierProcessLeftIsCommitted(t *testing.T) {
	r := newRunner(t, CheckpointPolicy{Changes: 1000})
	r.fixture.put(t, "a", "by another process")
	require.NoError(t, r.CreateBucket(t.Context(), "clean", CreateBucketParams{}))
	r.start()
	<-r.made
	require.Zero(t, r.uncommitted())
	require.NoError(t, r.end())
	require.Empty(t, r.made)
}

func TestCommitsThatFailAreReportedAndTriedAgain(t *testing.T) {
	r := newRunner(t, CheckpointPolicy{Changes: 2})
	r.broken = errors.New("disk full")
	r.fixture.put(t, "a", "by another process")
	r.start()
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		require.ErrorIs(t, <-r.failed, r.broken)
		again := <-r.timers
		require.Equal(t, pause*time.Second, again.d)
		again.fire <- time.Time{}
	}
	require.ErrorIs(t, <-r.failed, r.broken)
	again := <-r.timers
	for i := range 10 { // they wait for the pause to end
		r.put(fmt.Sprint(i))
	}
	require.Empty(t, r.failed)
	r.broken = nil
	again.fire <- time.Time{}
	<-r.made
	require.Zero(t, r.uncommitted())
	r.put("x")
	r.put("y")
	<-r.made
	r.put("z")
	require.NoError(t, r.end())
	require.Zero(t, r.uncommitted())
	for i := range 10 {
		r.fixture.get(t, fmt.Sprint(i), "")
	}
}

func TestRunReturnsWhatIsNotCommittedAtTheEnd(t *testing.T) {
	r := newRunner(t, CheckpointPolicy{Changes: 1000})
	r.start()
	r.put("a")
	require.NoError(t, r.end())
	<-r.made
	r.put("b")
	r.broken = errors.New("disk full")
	r.start()
	require.ErrorIs(t, <-r.failed, r.broken)
	err := r.end()
	require.ErrorIs(t, err, r.broken)
	require.ErrorContains(t, err, string(r.name))
	require.Equal(t, 1, r.uncommitted())
	r.broken = nil
	require.NoError(t, r.c.Checkpoint(t.Context(), r.bucket()))
	require.Zero(t, r.uncommitted())
	require.NoError(t, r.c.Checkpoint(t.Context(), r.bucket()), "nothing to commit is no error")
}

func TestCheckpointsForgetBucketsThatAreGone(t *testing.T) {
	r := newRunner(t, CheckpointPolicy{Changes: 1000})
	r.start()
	r.put("a")
	require.NoError(t, r.DeleteRepository(t.Context(), r.name))
	require.NoError(t, r.end())
	require.Empty(t, r.failed)
}

// Writers beside the checkpoints lose nothing.
func TestCheckpointsBesideWriters(t *testing.T) {
	f := newFixture(t)
	c, err := New(Config{Store: f.Graveler, Checkpoint: CheckpointPolicy{Changes: 5}})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx, func(_ Bucket, err error) { t.Error(err) }) }()
	for i := range 200 {
		_, err := c.Put(t.Context(), f.bucket(), fmt.Sprint(i), Object{}, Conditions{})
		require.NoError(t, err)
	}
	stop()
	require.NoError(t, <-ended)
	n := 0
	for _, err := range c.Objects(t.Context(), Bucket{f.name, "main@"}, "", "") {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 200, n)
}
