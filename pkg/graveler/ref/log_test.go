// SPDX-License-Identifier: Apache-2.0

package ref_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

func isNotFound(err error) bool { return errors.Is(err, graveler.ErrNotFound) }

func TestMovesScannedAreMovesPut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx, store, repo := context.Background(), mem.New(), repository()
		defer func() { require.NoError(t, store.Close()) }()
		refs := ref.New(store)
		// Few bits set, so that times of every length and neighbours come up.
		times := rapid.Custom(func(t *rapid.T) int64 {
			return max(1, int64(1)<<rapid.IntRange(0, 62).Draw(t, "bit")+rapid.Int64Range(-2, 2).Draw(t, "offset"))
		})
		logs := map[string]map[int64]graveler.Move{}
		for _, branchUID := range []string{"u", "u0", "v"} {
			logs[branchUID] = map[int64]graveler.Move{}
			for _, at := range rapid.SliceOf(times).Draw(t, "times") {
				m := full[graveler.Move](t)
				m.Previous, m.Time = rapid.Int64Range(0, at-1).Draw(t, "previous"), at
				if _, there := logs[branchUID][at]; there {
					continue
				}
				logs[branchUID][at] = *m
				require.NoError(t, refs.PutMove(ctx, repo, branchUID, *m))
				require.NoError(t, refs.PutMove(ctx, repo, branchUID, *m))
			}
		}
		for branchUID, log := range logs {
			bound := rapid.OneOf(times, rapid.SampledFrom([]int64{math.MinInt64, -1, 0, math.MaxInt64}))
			from, through := bound.Draw(t, "from"), bound.Draw(t, "through")
			var want []graveler.Move
			for _, at := range slices.Sorted(maps.Keys(log)) {
				if from <= at && at <= through {
					want = append(want, log[at])
				}
			}
			require.Equal(t, want, collect(t, refs.ScanMoves(ctx, repo, branchUID, from, through)))
		}
	})
}

func TestAMoveIsStoredWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, repo := mem.New(), repository()
		defer func() { require.NoError(t, store.Close()) }()
		m := full[graveler.Move](t)
		require.NoError(t, ref.New(store).PutMove(context.Background(), repo, uid, *m))
		requireEveryFieldStored(t, store, repo.Partition(), keys(t, store, repo.Partition())[0])
	})
}

func TestLogNamesAreThoseOfTheName(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, refs, repo := t.Context(), ref.New(store), repository()
		names := map[graveler.BranchID][]string{"a": {"u1", "u4"}, "a/b": {"u2"}, "ab": {"u3"}}
		for name, uids := range names {
			for _, u := range slices.Backward(uids) {
				require.NoError(t, refs.PutLogName(ctx, repo, name, u))
				require.NoError(t, refs.PutLogName(ctx, repo, name, u))
			}
		}
		for name, uids := range names {
			var want []graveler.LogName
			for _, u := range uids {
				want = append(want, graveler.LogName{Branch: name, UID: u})
			}
			require.Equal(t, want, collect(t, refs.ScanLogNames(ctx, repo, name)))
		}
		require.Len(t, collect(t, refs.ScanLogNames(ctx, repo, "")), 4)
	})
}

func TestScansBeginWhereAsked(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, refs, repo := t.Context(), ref.New(store), repository()
		for _, id := range []graveler.BranchID{"a", "a/b", "b", "\u00ff"} {
			b := branch()
			b.ID = id
			_, err := refs.PutBranch(ctx, repo, b)
			require.NoError(t, err)
		}
		require.NoError(t, refs.PutCommit(ctx, repo, &graveler.Commit{ID: "c1"}))
		var seen []graveler.BranchID
		for b, err := range refs.ScanBranches(ctx, repo, "a/") {
			require.NoError(t, err)
			seen = append(seen, b.ID)
		}
		require.Equal(t, []graveler.BranchID{"a/b", "b", "\u00ff"}, seen)
		for b, err := range refs.ScanBranches(ctx, repo, "") {
			require.NoError(t, err)
			require.Equal(t, graveler.BranchID("a"), b.ID)
			break // leaves the scan early
		}
	})
}

func TestWatermarkOnlyRises(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, refs := t.Context(), ref.New(store)
		at, err := refs.Watermark(ctx)
		require.NoError(t, err)
		require.Zero(t, at)
		var advancing sync.WaitGroup
		for n := range 8 {
			advancing.Go(func() {
				for i := range 10 {
					if err := refs.AdvanceWatermark(ctx, int64(10*i+n)); err != nil {
						t.Errorf("advance: %v", err)
					}
				}
			})
		}
		advancing.Wait()
		require.NoError(t, refs.AdvanceWatermark(ctx, 5))
		at, err = refs.Watermark(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 97, at)
	})
}

func TestCleanupsAreReplacedRemovedAndDropped(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, refs, repo := t.Context(), ref.New(store), repository()
		token := graveler.Cleanup{Partition: "lake-main:t1", Registered: 1, RepositoryID: "lake", RepositoryUID: uid, Branch: "main"}
		whole := graveler.Cleanup{Partition: repo.Partition(), Registered: 2, RepositoryID: "lake", RepositoryUID: uid}
		require.NoError(t, refs.PutCleanup(ctx, token))
		require.NoError(t, refs.PutCleanup(ctx, whole))
		token.Registered = 3
		require.NoError(t, refs.PutCleanup(ctx, token))
		require.Equal(t, []graveler.Cleanup{whole, token}, collect(t, refs.ScanCleanups(ctx)))

		require.NoError(t, refs.CreateTag(ctx, repo, &graveler.Tag{ID: "v1", Commit: "c1"}))
		require.NoError(t, refs.DropPartition(ctx, repo.Partition()))
		require.NoError(t, refs.DropPartition(ctx, repo.Partition()))
		require.Empty(t, keys(t, store, repo.Partition()))

		require.NoError(t, refs.RemoveCleanup(ctx, token.Partition))
		require.NoError(t, refs.RemoveCleanup(ctx, token.Partition))
		require.Equal(t, []graveler.Cleanup{whole}, collect(t, refs.ScanCleanups(ctx)))
	})
}
