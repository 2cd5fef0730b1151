// SPDX-License-Identifier: Apache-2.0

package stest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// moveTimes draws times with few bits set, so that times of every length and neighbours come up.
func moveTimes(t *rapid.T) int64 {
	return max(1, int64(1)<<rapid.IntRange(0, 62).Draw(t, "bit")+rapid.Int64Range(-2, 2).Draw(t, "offset"))
}

func movesScannedAreMovesPut(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	logs := map[string]map[int64]graveler.Move{}
	for n, branchUID := range []string{"u", "u0", "v"} {
		logs[branchUID] = map[int64]graveler.Move{}
		times := rapid.SliceOfN(rapid.Custom(moveTimes), 20, 30).Example(n)
		for i, at := range times {
			m := rapid.Custom(Full[graveler.Move]).Example(i)
			m.Previous, m.Time = at/2, at
			if _, there := logs[branchUID][at]; there {
				continue
			}
			logs[branchUID][at] = *m
			for range 2 {
				require.NoError(t, refs.PutMove(ctx, repo, branchUID, *m))
			}
		}
		bounds := append(slices.Clone(times[:3]), math.MinInt64, -1, 0, math.MaxInt64)
		for _, from := range bounds {
			for _, through := range bounds {
				var want []graveler.Move
				for _, at := range slices.Sorted(maps.Keys(logs[branchUID])) {
					if from <= at && at <= through {
						want = append(want, logs[branchUID][at])
					}
				}
				require.Equal(t, want, Collect(t, refs.ScanMoves(ctx, repo, branchUID, from, through)))
			}
		}
	}
}

func logNamesAreThoseOfTheName(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
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
		require.Equal(t, want, Collect(t, refs.ScanLogNames(ctx, repo, name)))
	}
	require.Len(t, Collect(t, refs.ScanLogNames(ctx, repo, "")), 4)
}

func scansBeginWhereAsked(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	// In the order of bytes, which is that of no language.
	ids := []string{"A", "Z", "a", "a/b", "b", "\u00e0", "\u00ff"}
	for _, id := range ids {
		b := branch()
		b.ID = graveler.BranchID(id)
		_, err := refs.PutBranch(ctx, repo, b)
		require.NoError(t, err)
		require.NoError(t, refs.CreateTag(ctx, repo, &graveler.Tag{ID: graveler.TagID(id), Commit: "c1"}))
		require.NoError(t, refs.PutCommit(ctx, repo, &graveler.Commit{ID: graveler.CommitID(id)}))
		other := repository()
		other.ID = graveler.RepositoryID(id)
		_, err = refs.PutRepository(ctx, other)
		require.NoError(t, err)
		require.NoError(t, refs.PutPin(ctx, repo, graveler.Pin{Owner: id}))
		require.NoError(t, refs.PutCleanup(ctx, graveler.Cleanup{Partition: id}))
	}
	for from, left := range map[string]int{"": 0, "A": 0, "Y": 1, "a/": 3, "a0": 4, "z": 5, "\u00ff0": 7} {
		var branches, tags, commits, repositories []string
		for _, b := range Collect(t, refs.ScanBranches(ctx, repo, graveler.BranchID(from))) {
			branches = append(branches, string(b.ID))
		}
		for _, tag := range Collect(t, refs.ScanTags(ctx, repo, graveler.TagID(from))) {
			tags = append(tags, string(tag.ID))
		}
		for _, c := range Collect(t, refs.ScanCommits(ctx, repo, graveler.CommitID(from))) {
			commits = append(commits, string(c.ID))
		}
		for _, r := range Collect(t, refs.ScanRepositories(ctx, graveler.RepositoryID(from))) {
			if r.ID != repo.ID {
				repositories = append(repositories, string(r.ID))
			}
		}
		for _, got := range [][]string{branches, tags, commits, repositories} {
			require.Equal(t, ids[left:], append([]string{}, got...), from)
		}
	}
	var owners, partitions []string
	for _, p := range Collect(t, refs.ScanPins(ctx, repo)) {
		owners = append(owners, p.Owner)
	}
	for _, c := range Collect(t, refs.ScanCleanups(ctx)) {
		partitions = append(partitions, c.Partition)
	}
	require.Equal(t, ids, owners)
	require.Equal(t, ids, partitions)
	for b, err := range refs.ScanBranches(ctx, repo, "") {
		require.NoError(t, err)
		require.Equal(t, graveler.BranchID("A"), b.ID)
		break // leaves the scan early
	}
}

// longScan is more than stores read at a time.
const longScan = 700

func longScansAreWhole(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	ids := make(chan int)
	var writing sync.WaitGroup
	for range 8 {
		writing.Go(func() {
			for n := range ids {
				if err := refs.PutCommit(ctx, repo, &graveler.Commit{ID: graveler.CommitID(fmt.Sprintf("%04d", n)), Generation: int64(n + 1)}); err != nil {
					t.Errorf("put commit %d: %v", n, err)
				}
				if err := refs.PutMove(ctx, repo, uid, graveler.Move{Time: int64(n + 1), Op: graveler.OpCommit}); err != nil {
					t.Errorf("put move %d: %v", n, err)
				}
			}
		})
	}
	for n := range longScan {
		ids <- n
	}
	close(ids)
	writing.Wait()
	commits := Collect(t, refs.ScanCommits(ctx, repo, ""))
	require.Len(t, commits, longScan)
	for n, c := range commits {
		require.EqualValues(t, n+1, c.Generation)
	}
	require.Len(t, Collect(t, refs.ScanMoves(ctx, repo, uid, 1, math.MaxInt64)), longScan)
}

func theWatermarkOnlyRises(t *testing.T, refs graveler.Refs) {
	ctx := t.Context()
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
	require.NoError(t, refs.ResetWatermark(ctx, 6))
	at, err = refs.Watermark(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 6, at)
}

func cleanupsAreReplacedRemovedAndDropped(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	token := graveler.Cleanup{Partition: "lake-main:t1", Registered: 1, RepositoryID: "lake", RepositoryUID: uid, Branch: "main"}
	whole := graveler.Cleanup{Partition: repo.Partition(), Registered: 2, RepositoryID: "lake", RepositoryUID: uid}
	require.NoError(t, refs.PutCleanup(ctx, token))
	require.NoError(t, refs.PutCleanup(ctx, whole))
	token.Registered = 3
	require.NoError(t, refs.PutCleanup(ctx, token))
	require.Equal(t, []graveler.Cleanup{whole, token}, Collect(t, refs.ScanCleanups(ctx)))

	_, err := refs.PutBranch(ctx, repo, branch())
	require.NoError(t, err)
	require.NoError(t, refs.CreateTag(ctx, repo, &graveler.Tag{ID: "v1", Commit: "c1"}))
	require.NoError(t, refs.PutCommit(ctx, repo, &graveler.Commit{ID: "c1"}))
	require.NoError(t, refs.PutMove(ctx, repo, "u1", graveler.Move{Time: 3, Op: graveler.OpCommit}))
	require.NoError(t, refs.PutLogName(ctx, repo, "main", "u1"))
	require.NoError(t, refs.PutLogStart(ctx, repo, "u1", 2))
	require.NoError(t, refs.PutPin(ctx, repo, graveler.Pin{Owner: "o"}))
	require.NoError(t, refs.PutExpiration(ctx, repo, graveler.Expiration{Commit: "c1", At: 7}))
	_, err = refs.PutSetting(ctx, repo, "retention", []byte("d"), nil)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, refs.DropPartition(ctx, repo.Partition()))
	}
	require.Empty(t, Collect(t, refs.ScanBranches(ctx, repo, "")))
	require.Empty(t, Collect(t, refs.ScanTags(ctx, repo, "")))
	require.Empty(t, Collect(t, refs.ScanCommits(ctx, repo, "")))
	require.Empty(t, Collect(t, refs.ScanMoves(ctx, repo, "u1", 0, 9)))
	require.Empty(t, Collect(t, refs.ScanLogNames(ctx, repo, "")))
	require.Empty(t, Collect(t, refs.ScanPins(ctx, repo)))
	require.Empty(t, Collect(t, refs.ScanExpirations(ctx, repo)))
	require.Empty(t, Collect(t, refs.ScanSettings(ctx, repo)))
	start, err := refs.LogStart(ctx, repo, "u1")
	require.NoError(t, err)
	require.Zero(t, start)
	_, err = refs.GetRepository(ctx, repo.ID)
	require.NoError(t, err, "its record is not in its partition")

	require.NoError(t, refs.RemoveCleanup(ctx, token.Partition))
	require.NoError(t, refs.RemoveCleanup(ctx, token.Partition))
	require.Equal(t, []graveler.Cleanup{whole}, Collect(t, refs.ScanCleanups(ctx)))
}

func pinsComeBackByOwner(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	a := graveler.Pin{Owner: "lifecycle/main", Trees: []graveler.MetaRangeID{"t1", "t2"}, Logs: map[string]int64{"u1": 5, "u2": 0}}
	b := graveler.Pin{Owner: "other", Trees: []graveler.MetaRangeID{"t3"}}
	require.NoError(t, refs.PutPin(ctx, repo, b))
	require.NoError(t, refs.PutPin(ctx, repo, a))
	require.Equal(t, []graveler.Pin{a, b}, Collect(t, refs.ScanPins(ctx, repo)))
	a.Trees = a.Trees[:1]
	require.NoError(t, refs.PutPin(ctx, repo, a))
	for range 2 {
		require.NoError(t, refs.RemovePin(ctx, repo, "other"))
	}
	require.Equal(t, []graveler.Pin{a}, Collect(t, refs.ScanPins(ctx, repo)))
}

func expirationsComeBackByCommit(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	_, err := refs.GetExpiration(ctx, repo, "c1")
	require.ErrorIs(t, err, graveler.ErrNotFound)
	e := graveler.Expiration{Commit: "c1", At: 7}
	require.NoError(t, refs.PutExpiration(ctx, repo, e))
	require.ErrorIs(t, refs.PutExpiration(ctx, repo, e), graveler.ErrChanged)
	got, err := refs.GetExpiration(ctx, repo, "c1")
	require.NoError(t, err)
	e.Stamp = got.Stamp
	require.Equal(t, e, got)
	require.Equal(t, []graveler.Expiration{e}, Collect(t, refs.ScanExpirations(ctx, repo)))

	pending := graveler.Expiration{Commit: "c1", At: 8, Pending: true, Stamp: e.Stamp}
	require.NoError(t, refs.PutExpiration(ctx, repo, pending))
	require.ErrorIs(t, refs.RemoveExpiration(ctx, repo, e), graveler.ErrChanged)
	got, err = refs.GetExpiration(ctx, repo, "c1")
	require.NoError(t, err)
	pending.Stamp = got.Stamp
	require.Equal(t, pending, got)
	require.NoError(t, refs.RemoveExpiration(ctx, repo, pending))
	require.Empty(t, Collect(t, refs.ScanExpirations(ctx, repo)))
}

func logBoundsChangeByCompareAndSet(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	b, err := refs.LogBounds(ctx, repo, "u1")
	require.NoError(t, err)
	require.Equal(t, graveler.LogBounds{}, b)
	require.ErrorIs(t, refs.PutLogBounds(ctx, repo, "u1", graveler.LogBounds{Start: 5, Intent: 4}), graveler.ErrInvalidValue)
	require.NoError(t, refs.PutLogBounds(ctx, repo, "u1", graveler.LogBounds{Start: 5, Intent: 9}))
	require.ErrorIs(t, refs.PutLogBounds(ctx, repo, "u1", graveler.LogBounds{Start: 6, Intent: 6}), graveler.ErrChanged)
	b, err = refs.LogBounds(ctx, repo, "u1")
	require.NoError(t, err)
	require.Equal(t, graveler.LogBounds{Start: 5, Intent: 9, Stamp: b.Stamp}, b)
	b.Start = 9
	require.NoError(t, refs.PutLogBounds(ctx, repo, "u1", b))
	require.ErrorIs(t, refs.PutLogBounds(ctx, repo, "u1", b), graveler.ErrChanged)
	start, err := refs.LogStart(ctx, repo, "u1")
	require.NoError(t, err)
	require.EqualValues(t, 9, start)
	b, err = refs.LogBounds(ctx, repo, "u1")
	require.NoError(t, err)
	require.EqualValues(t, 9, b.Intent)
}

func logsGoPieceByPiece(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	require.NoError(t, refs.PutLogName(ctx, repo, "main", "u1"))
	for _, at := range []int64{3, 5, 8} {
		require.NoError(t, refs.PutMove(ctx, repo, "u1", graveler.Move{Time: at, Op: graveler.OpCommit}))
	}
	start, err := refs.LogStart(ctx, repo, "u1")
	require.NoError(t, err)
	require.Zero(t, start)
	require.NoError(t, refs.PutLogStart(ctx, repo, "u1", 5))
	require.NoError(t, refs.RemoveMove(ctx, repo, "u1", 3))
	require.NoError(t, refs.RemoveMove(ctx, repo, "u1", 3))
	start, err = refs.LogStart(ctx, repo, "u1")
	require.NoError(t, err)
	require.EqualValues(t, 5, start)
	require.Len(t, Collect(t, refs.ScanMoves(ctx, repo, "u1", 0, 9)), 2)

	for range 2 {
		require.NoError(t, refs.RemoveLogName(ctx, repo, graveler.LogName{Branch: "main", UID: "u1"}))
	}
	require.Empty(t, Collect(t, refs.ScanLogNames(ctx, repo, "")))
	start, err = refs.LogStart(ctx, repo, "u1")
	require.NoError(t, err)
	require.Zero(t, start)
	require.ErrorIs(t, refs.PutLogStart(ctx, repo, "a/b", 1), graveler.ErrInvalidValue)
}
