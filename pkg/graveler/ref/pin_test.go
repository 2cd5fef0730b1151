// SPDX-License-Identifier: Apache-2.0

package ref_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
)

func TestPinsComeBackByOwner(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, refs, repo := t.Context(), ref.New(store), repository()
		a := graveler.Pin{Owner: "lifecycle/main", Trees: []graveler.MetaRangeID{"t1", "t2"}, Logs: map[string]int64{"u1": 5, "u2": 0}}
		b := graveler.Pin{Owner: "other", Trees: []graveler.MetaRangeID{"t3"}}
		require.NoError(t, refs.PutPin(ctx, repo, b))
		require.NoError(t, refs.PutPin(ctx, repo, a))
		require.Equal(t, []graveler.Pin{a, b}, collect(t, refs.ScanPins(ctx, repo)))
		a.Trees = a.Trees[:1]
		require.NoError(t, refs.PutPin(ctx, repo, a))
		for range 2 {
			require.NoError(t, refs.RemovePin(ctx, repo, "other"))
		}
		require.Equal(t, []graveler.Pin{a}, collect(t, refs.ScanPins(ctx, repo)))
		require.ErrorIs(t, refs.PutPin(ctx, repo, graveler.Pin{}), graveler.ErrInvalidValue)
	})
}

func TestExpirationsComeBackByCommit(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, refs, repo := t.Context(), ref.New(store), repository()
		_, err := refs.GetExpiration(ctx, repo, "c1")
		require.ErrorIs(t, err, graveler.ErrNotFound)
		e := graveler.Expiration{Commit: "c1", At: 7}
		require.NoError(t, refs.PutExpiration(ctx, repo, e))
		require.ErrorIs(t, refs.PutExpiration(ctx, repo, e), graveler.ErrChanged)
		got, err := refs.GetExpiration(ctx, repo, "c1")
		require.NoError(t, err)
		e.Stamp = got.Stamp
		require.Equal(t, e, got)
		require.Equal(t, []graveler.Expiration{e}, collect(t, refs.ScanExpirations(ctx, repo)))

		pending := graveler.Expiration{Commit: "c1", At: 8, Pending: true, Stamp: e.Stamp}
		require.NoError(t, refs.PutExpiration(ctx, repo, pending))
		require.ErrorIs(t, refs.RemoveExpiration(ctx, repo, e), graveler.ErrChanged)
		got, err = refs.GetExpiration(ctx, repo, "c1")
		require.NoError(t, err)
		pending.Stamp = got.Stamp
		require.Equal(t, pending, got)
		require.NoError(t, refs.RemoveExpiration(ctx, repo, pending))
		require.Empty(t, collect(t, refs.ScanExpirations(ctx, repo)))
	})
}

func TestLogBoundsChangeByCompareAndSet(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, refs, repo := t.Context(), ref.New(store), repository()
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
		start, err := refs.LogStart(ctx, repo, "u1")
		require.NoError(t, err)
		require.EqualValues(t, 9, start)
		b, err = refs.LogBounds(ctx, repo, "u1")
		require.NoError(t, err)
		require.EqualValues(t, 9, b.Intent)
	})
}

func TestLogsAndCommitsGoPieceByPiece(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, refs, repo := t.Context(), ref.New(store), repository()
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
		require.Len(t, collect(t, refs.ScanMoves(ctx, repo, "u1", 0, 9)), 2)

		for range 2 {
			require.NoError(t, refs.RemoveLogName(ctx, repo, graveler.LogName{Branch: "main", UID: "u1"}))
		}
		require.Empty(t, collect(t, refs.ScanLogNames(ctx, repo, "")))
		start, err = refs.LogStart(ctx, repo, "u1")
		require.NoError(t, err)
		require.Zero(t, start)
		require.ErrorIs(t, refs.PutLogStart(ctx, repo, "a/b", 1), graveler.ErrInvalidValue)

		require.NoError(t, refs.PutCommit(ctx, repo, &graveler.Commit{ID: "c1"}))
		for range 2 {
			require.NoError(t, refs.RemoveCommit(ctx, repo, "c1"))
		}
		_, err = refs.GetCommit(ctx, repo, "c1")
		require.ErrorIs(t, err, graveler.ErrCommitNotFound)
	})
}
