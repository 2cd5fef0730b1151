// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// slowTrees take a while for each change of a tree.
type slowTrees struct {
	graveler.Trees
	each time.Duration
}

func (s slowTrees) Apply(ctx context.Context, ns string, tree graveler.MetaRangeID, changes graveler.Iterator[graveler.Entry]) (graveler.MetaRangeID, error) {
	return s.Trees.Apply(ctx, ns, tree, &slowChanges{changes, s.each})
}

type slowChanges struct {
	graveler.Iterator[graveler.Entry]
	each time.Duration
}

func (s *slowChanges) Next() bool {
	time.Sleep(s.each) // of the bubble's clock
	return s.Iterator.Next()
}

// In the time of a bubble, in which nothing but the work takes time, a commit with a quarter of the machine takes seven times as
// long: it rests three times for what the stream does, and as much for the files that are made beside it.
func TestACommitTakesItsShareOfTheTime(t *testing.T) {
	took := func(config, commit float64) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, func(c *graveler.Config) { c.Trees = slowTrees{c.Trees, time.Millisecond / 10}; c.CommitShare = config })
			for i := range 2000 {
				f.set(t, fmt.Sprintf("%04d", i), "x")
			}
			began := time.Now()
			_, err := f.Commit(t.Context(), "lake", "main", graveler.CommitParams{Share: commit})
			require.NoError(t, err)
			d = time.Since(began)
			require.Len(t, show(t, f.Graveler, "main@", graveler.ListOptions{}), 2000)
		})
		return d
	}
	whole := took(0, 0)
	require.InDelta(t, 200, whole.Milliseconds(), 5)
	require.InDelta(t, 7, took(0.25, 0).Seconds()/whole.Seconds(), 0.2)
	require.InDelta(t, 3, took(0.25, 0.5).Seconds()/whole.Seconds(), 0.2)
	require.Equal(t, whole, took(0.25, 1))
}

// stalledTrees stand still for a while after every hundredth change, as where others take all processors.
type stalledTrees struct{ graveler.Trees }

func (s stalledTrees) Apply(ctx context.Context, ns string, tree graveler.MetaRangeID, changes graveler.Iterator[graveler.Entry]) (graveler.MetaRangeID, error) {
	return s.Trees.Apply(ctx, ns, tree, &stalledChanges{Iterator: changes})
}

type stalledChanges struct {
	graveler.Iterator[graveler.Entry]
	n int
}

func (s *stalledChanges) Next() bool {
	if s.n++; s.n%100 == 0 {
		time.Sleep(100 * time.Millisecond) // of the bubble's clock
	}
	return s.Iterator.Next()
}

// Twenty times a commit waits for a tenth of a second. Waiting is no work to rest from: it rests as after a slice of work.
func TestACommitDoesNotRestFromWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *graveler.Config) { c.Trees = stalledTrees{c.Trees} })
		for i := range 2000 {
			f.set(t, fmt.Sprintf("%04d", i), "x")
		}
		began := time.Now()
		_, err := f.Commit(t.Context(), "lake", "main", graveler.CommitParams{Share: 0.1})
		require.NoError(t, err)
		require.InDelta(t, 20*(100+36), time.Since(began).Milliseconds(), 20, "waits, and rests of two times nine times two milliseconds")
	})
}

// A large value is work enough to look at the clock.
func TestACommitOfLargeValuesTakesItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *graveler.Config) { c.Trees = slowTrees{c.Trees, 2 * time.Millisecond} })
		for i := range 50 {
			f.set(t, fmt.Sprintf("%04d", i), strings.Repeat("x", 100<<10))
		}
		began := time.Now()
		_, err := f.Commit(t.Context(), "lake", "main", graveler.CommitParams{Share: 0.25})
		require.NoError(t, err)
		require.InDelta(t, 7*100, time.Since(began).Milliseconds(), 20)
	})
}

func TestARestingCommitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *graveler.Config) { c.Trees = slowTrees{c.Trees, time.Millisecond / 10} })
		for i := range 1000 {
			f.set(t, fmt.Sprintf("%04d", i), "x")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		_, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{Share: 0.001})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, show(t, f.Graveler, "main@", graveler.ListOptions{}))
		f.commit(t, "the next one takes all")
		require.Len(t, show(t, f.Graveler, "main@", graveler.ListOptions{}), 1000)
	})
}

func TestWhatIsNoShareIsRefused(t *testing.T) {
	f := newFixture(t)
	for _, share := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		_, err := f.Commit(t.Context(), "lake", "main", graveler.CommitParams{Share: share})
		require.ErrorIs(t, err, graveler.ErrInvalidValue)
		config := f.config
		config.CommitShare = share
		_, err = graveler.New(config)
		require.ErrorIs(t, err, graveler.ErrInvalidValue)
	}
}
