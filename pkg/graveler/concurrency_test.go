// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// eachProtocol runs a test on cheap fences and on costly ones, and on locks of rows.
func eachProtocol(t *testing.T, test func(t *testing.T, f *fixture)) {
	for _, url := range []string{"mem:", costlyFences} {
		t.Run(url, func(t *testing.T) { test(t, newFixtureAt(t, url, dropAtOnce)) })
	}
	t.Run("sql", func(t *testing.T) {
		url := sqlstore.Scheme + strings.TrimPrefix(testpg.Start(t).NewDatabase(t), "postgres")
		store, err := sqlstore.Open(t.Context(), url, kv.OpenOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		test(t, newFixtureAt(t, "mem:", dropAtOnce, func(c *graveler.Config) { c.Refs, c.Staging = store, store }))
	})
}

// Writers stage and delete while others commit, compact and clean. In the end each key is as its only writer left it.
func TestAcknowledgedWritesSurviveCommits(t *testing.T) {
	eachProtocol(t, func(t *testing.T, f *fixture) {
		const writers, perWriter = 8, 60
		ctx, stop := context.WithCancel(context.Background())
		other := f.another(t)
		var upkeep errgroup.Group
		for _, g := range []*graveler.Graveler{f.Graveler, other} {
			upkeep.Go(func() error {
				for n := 0; ctx.Err() == nil; n++ {
					_, err := g.Commit(context.Background(), "lake", "main", graveler.CommitParams{Message: fmt.Sprint(n)})
					if err != nil && !errors.Is(err, graveler.ErrNoChanges) {
						return err
					}
					if err := g.Compact(context.Background(), "lake", "main"); err != nil {
						return err
					}
					if _, err := g.Maintain(context.Background()); err != nil {
						return err
					}
				}
				return nil
			})
		}
		var staging errgroup.Group
		for w := range writers {
			g := []*graveler.Graveler{f.Graveler, other}[w%2]
			staging.Go(func() error {
				for i := range perWriter {
					k := key(fmt.Sprintf("w%d/%d", w, i%20))
					if i%3 == 2 {
						if err := g.Delete(ctx, "lake", "main", k); err != nil {
							return err
						}
						if _, err := g.Get(ctx, "lake", "main", k); !errors.Is(err, graveler.ErrEntryNotFound) {
							return fmt.Errorf("deleted entry %s: %v", k, err)
						}
						continue
					}
					if err := g.Set(ctx, "lake", "main", k, value(fmt.Sprint(i))); err != nil {
						return err
					}
					v, err := g.Get(ctx, "lake", "main", k)
					if err != nil || string(v.Data) != fmt.Sprint(i) {
						return fmt.Errorf("own write %s: %v %v", k, v, err)
					}
				}
				return nil
			})
		}
		require.NoError(t, staging.Wait())
		stop()
		require.NoError(t, upkeep.Wait())

		expected := map[string]string{}
		for w := range writers {
			for i := range perWriter {
				k := fmt.Sprintf("w%d/%d", w, i%20)
				if expected[k] = fmt.Sprint(i); i%3 == 2 {
					delete(expected, k)
				}
			}
		}
		require.Equal(t, listOf(expected, "", "", ""), show(t, f.another(t), "main", graveler.ListOptions{}))
	})
}

// A list that overlaps commits and clean-up shows every entry that was there before it began.
func TestListsOverlappingCommitsMissNothing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, f *fixture) {
		const entries = 2500 // more than one page
		all := make([]graveler.Entry, entries)
		for i := range all {
			v := value("x")
			all[i] = graveler.Entry{Key: key(fmt.Sprintf("k%05d", i)), Value: &v}
		}
		ctx := context.Background()
		require.NoError(t, f.SetMany(ctx, "lake", "main", all))

		var done atomic.Bool
		var group errgroup.Group
		group.Go(func() error {
			for n := 0; !done.Load(); n++ {
				if err := f.SetMany(ctx, "lake", "main", all[:1]); err != nil {
					return err
				}
				if _, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{AllowEmpty: true}); err != nil {
					return err
				}
				if _, err := f.Maintain(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		other := f.another(t)
		for range 5 {
			require.Len(t, show(t, other, "main", graveler.ListOptions{}), entries)
		}
		done.Store(true)
		require.NoError(t, group.Wait())
	})
}

func TestOneOfManyConditionalWritesWins(t *testing.T) {
	eachProtocol(t, func(t *testing.T, f *fixture) {
		ctx := context.Background()
		processes := []*graveler.Graveler{f.Graveler, f.another(t)}
		for round := range 20 {
			k := key(fmt.Sprintf("k%d", round))
			var won atomic.Int32
			var group errgroup.Group
			for i := range 8 {
				group.Go(func() error {
					err := processes[i%2].SetIfAbsent(ctx, "lake", "main", k, value(fmt.Sprint(i)))
					if err == nil {
						won.Add(1)
					} else if !errors.Is(err, graveler.ErrPreconditionFailed) {
						return err
					}
					return nil
				})
			}
			group.Go(func() error {
				_, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{AllowEmpty: true})
				return err
			})
			require.NoError(t, group.Wait())
			require.EqualValues(t, 1, won.Load())
		}
	})
}

func TestUpdatesOfOneEntryAreNotLost(t *testing.T) {
	eachProtocol(t, func(t *testing.T, f *fixture) {
		ctx := context.Background()
		processes := []*graveler.Graveler{f.Graveler, f.another(t)}
		const writers, increments = 6, 20
		var group errgroup.Group
		for w := range writers {
			group.Go(func() error {
				for range increments {
					err := processes[w%2].Update(ctx, "lake", "main", key("counter"), func(cur *graveler.Value) (*graveler.Value, error) {
						n := 0
						if cur != nil {
							if _, err := fmt.Sscan(string(cur.Data), &n); err != nil {
								return nil, err
							}
						}
						next := value(fmt.Sprint(n + 1))
						return &next, nil
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		group.Go(func() error {
			for range 20 {
				if _, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{AllowEmpty: true}); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, group.Wait())
		v, err := f.Get(ctx, "lake", "main", key("counter"))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(writers*increments), string(v.Data))
	})
}

// Commits that meet take each other's changes along. Each gets a commit that holds what it sealed, empty ones included, and the log links up.
func TestConcurrentCommits(t *testing.T) {
	eachProtocol(t, func(t *testing.T, f *fixture) {
		ctx := context.Background()
		const committers, rounds = 6, 10
		processes := []*graveler.Graveler{f.Graveler, f.another(t)}
		var mu sync.Mutex
		made := map[graveler.CommitID]bool{}
		var group errgroup.Group
		for c := range committers {
			g := processes[c%2]
			group.Go(func() error {
				for round := range rounds {
					k := fmt.Sprintf("c%d/%d", c, round)
					if err := g.Set(ctx, "lake", "main", key(k), value(k)); err != nil {
						return err
					}
					allowEmpty := round%2 == 0
					res, err := g.Commit(ctx, "lake", "main", graveler.CommitParams{Message: k, AllowEmpty: allowEmpty})
					if errors.Is(err, graveler.ErrNoChanges) && !allowEmpty {
						// Another commit had taken this write along and finished before this one began.
						if _, err := g.Get(ctx, "lake", "main@", key(k)); err != nil {
							return err
						}
						continue
					}
					if err != nil {
						return err
					}
					if allowEmpty && (res.AlreadyCommitted || res.Commit.Message != k) {
						return fmt.Errorf("%s: no commit of its own: %+v", k, res)
					}
					if _, err := g.Get(ctx, "lake", string(res.Commit.ID), key(k)); err != nil {
						return fmt.Errorf("%s is not in its commit: %w", k, err)
					}
					mu.Lock()
					made[res.Commit.ID] = true
					mu.Unlock()
				}
				return nil
			})
		}
		require.NoError(t, group.Wait())

		moves := collect(t, f.BranchLog(ctx, "lake", "main", 0))
		history := collect(t, f.Log(ctx, "lake", "main", graveler.LogOptions{}))
		require.Len(t, moves, len(history))
		for i, m := range moves {
			c := history[len(history)-1-i]
			require.Equal(t, c.ID, m.New)
			delete(made, c.ID)
			if i > 0 {
				require.Equal(t, moves[i-1].New, m.Old)
				require.Greater(t, m.Time, moves[i-1].Time)
			}
		}
		require.Empty(t, made, "commits that no history has")
	})
}

func TestFiftyEmptyCommitsLeaveNothingSealed(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	f.commit(t, "base")
	for range 50 {
		f.set(t, "a", "1") // the record that is committed
		_, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{})
		require.ErrorIs(t, err, graveler.ErrNoChanges)
	}
	b, err := f.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	require.Empty(t, b.Items)
	require.Empty(t, b.Base)
}
