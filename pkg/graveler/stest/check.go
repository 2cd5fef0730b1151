// SPDX-License-Identifier: Apache-2.0

package stest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// check is a write that leaves its key as it is.
func check(key string, stamp graveler.Stamp) graveler.StagedWrite {
	w := iff(graveler.StagedWrite{Key: graveler.Key(key)}, stamp)
	w.Check = true
	return w
}

func stampOf(t *testing.T, s graveler.Staging, key string) graveler.Stamp {
	t.Helper()
	got, err := s.Get(t.Context(), token, graveler.Key(key))
	require.NoError(t, err)
	return got.Stamp
}

func checksHoldForWhatLandsAndLeaveNoTrace(t *testing.T, refs graveler.Refs, s graveler.Staging) {
	ctx, fence := t.Context(), fenced(t, refs)
	require.NoError(t, s.Apply(ctx, fence, token, []graveler.StagedWrite{
		put("value", "1"), {Key: graveler.Key("tombstone")}, {Key: graveler.Key("no data"), Value: value("1", "")},
	}))
	before := staged(t, s, token, nil, nil)
	var checks []graveler.StagedWrite
	for _, key := range []string{"value", "tombstone", "no data", "absent", "zz absent"} {
		checks = append(checks, check(key, stampOf(t, s, key)))
	}
	for _, fence := range []*graveler.Fence{fence, nil} {
		require.NoError(t, s.Apply(ctx, fence, token, checks))
		require.NoError(t, s.Apply(ctx, fence, token, checks[:1]), "one alone")
		require.NoError(t, s.Apply(ctx, fence, token, checks[4:]), "one alone")
		require.Equal(t, before, staged(t, s, token, nil, nil))
		for _, c := range checks {
			require.Equal(t, c.If, stampOf(t, s, string(c.Key)), "%s is as it was", c.Key)
		}
	}

	// With other writes: all or none.
	for _, wrong := range []graveler.StagedWrite{
		check("value", nil), check("value", checks[1].If), check("tombstone", nil), check("absent", checks[0].If), check("absent", checks[1].If),
	} {
		for _, others := range [][]graveler.StagedWrite{nil, {put("more", "1")}, {put("more", "1"), iff(put("most", "1"), nil), check("no data", checks[2].If)}} {
			require.ErrorIs(t, s.Apply(ctx, fence, token, append(others, wrong)), graveler.ErrChanged)
			require.Equal(t, before, staged(t, s, token, nil, nil))
		}
	}
	require.NoError(t, s.Apply(ctx, fence, token, append(checks, put("more", "1"))))
	require.Len(t, staged(t, s, token, nil, nil), len(before)+1)

	moved := fence.Branch.Clone()
	moved.Nonce = "n2"
	_, err := refs.PutBranch(ctx, fence.Repository, moved)
	require.NoError(t, err)
	require.ErrorIs(t, s.Apply(ctx, fence, token, checks), graveler.ErrFenceFailed)
	require.ErrorIs(t, s.Apply(ctx, fence, token, checks[3:4]), graveler.ErrFenceFailed)
	require.Len(t, staged(t, s, token, nil, nil), len(before)+1)
}

// ofWritesThatCheckEachOthersKeysOneLands has two writers each of whom relies on what the other one writes: on that nothing is
// there, on a tombstone, and on a value.
func ofWritesThatCheckEachOthersKeysOneLands(t *testing.T, refs graveler.Refs, s graveler.Staging) {
	ctx, fence := t.Context(), fenced(t, refs)
	keys := [2]string{"a", "b"}
	for round := range 30 {
		var stamps [2]graveler.Stamp
		for i, key := range keys {
			stamps[i] = stampOf(t, s, key)
		}
		var landed atomic.Int64
		var writing sync.WaitGroup
		for i := range keys {
			writing.Go(func() {
				err := s.Apply(ctx, fence, token, []graveler.StagedWrite{iff(put(keys[i], "1"), stamps[i]), check(keys[1-i], stamps[1-i])})
				if err == nil {
					landed.Add(1)
				} else if !errors.Is(err, graveler.ErrChanged) {
					t.Errorf("stage: %v", err)
				}
			})
		}
		writing.Wait()
		require.EqualValues(t, 1, landed.Load(), "round %d", round)
		switch round % 3 {
		case 0:
			keys = [2]string{keys[0] + "+", keys[1] + "+"} // which nobody has staged
		case 1:
			require.NoError(t, s.Apply(ctx, fence, token, []graveler.StagedWrite{{Key: graveler.Key(keys[0])}, {Key: graveler.Key(keys[1])}}))
		default:
			require.NoError(t, s.Apply(ctx, fence, token, []graveler.StagedWrite{put(keys[0], "0"), put(keys[1], "0")}))
		}
	}
}
