// SPDX-License-Identifier: Apache-2.0

package metalog_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
)

// Processes whose clocks are minutes apart commit to branches, delete them and make them again, while a reader follows with a
// position for each source. He sees each event once.
func TestFollowingMissesNothingAndRepeatsNothing(t *testing.T) {
	ctx, f := t.Context(), newFixture(t)
	const rounds = 40
	var work sync.WaitGroup
	for i, behind := range []time.Duration{0, 2 * time.Minute, 4 * time.Minute} {
		g := f.process(t, f.refs.Refs, func() int64 { return f.clock.Add(1) - int64(behind) })
		work.Go(func() {
			for n := range rounds {
				if err := disturb(ctx, g, fmt.Sprint(i, "-", n), n%8 == 7); err != nil {
					t.Errorf("process %d, round %d: %v", i, n, err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()

	positions := map[string]int64{}
	var seen []metalog.Event
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true // one more time
		default:
		}
		sources, err := f.feed.Sources(ctx, "lake", "")
		require.NoError(t, err)
		for i := range sources {
			sources[i].After = positions[sources[i].UID]
		}
		for _, e := range collect(t, f.feed.Events(ctx, sources, 0, forever)) {
			positions[e.UID] = e.Timestamp
			seen = append(seen, e)
		}
	}
	sources, err := f.feed.Sources(ctx, "lake", "")
	require.NoError(t, err)
	all := collect(t, f.feed.Events(ctx, sources, 0, forever))
	require.Greater(t, len(all), rounds)
	for _, s := range sources {
		require.Equal(t, of(s, all), of(s, seen), "in the same order")
	}
}

// of returns the events of a source.
func of(s metalog.Source, events []metalog.Event) (some []metalog.Event) {
	for _, e := range events {
		if e.UID == s.UID {
			some = append(some, e)
		}
	}
	return some
}

// disturb commits to branches that others are using, makes one of them where it is not there, and may delete it.
func disturb(ctx context.Context, g *graveler.Graveler, text string, remove bool) error {
	unless := func(err, expected error) error {
		if errors.Is(err, expected) {
			return nil
		}
		return err
	}
	_, err := g.CreateBranch(ctx, "lake", "dev", "main")
	errs := []error{unless(err, graveler.ErrExists)}
	for _, b := range []graveler.BranchID{"main", "dev"} {
		errs = append(errs, unless(g.Set(ctx, "lake", b, graveler.Key(text[:1]), value(text)), graveler.ErrBranchNotFound))
		_, err := g.Commit(ctx, "lake", b, graveler.CommitParams{})
		errs = append(errs, unless(unless(err, graveler.ErrBranchNotFound), graveler.ErrNoChanges))
	}
	if remove {
		errs = append(errs, unless(g.DeleteBranch(ctx, "lake", "dev", true), graveler.ErrBranchNotFound))
	}
	return errors.Join(errs...)
}
