// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
)

func predicates(t *testing.T, h Harness) {
	h.check(t, "every predicate on every state", everyPredicate)
	h.check(t, "the predicate that Get returned", fromGet)
	h.check(t, "a value that came back passes", abaPasses)
	h.check(t, "an empty value is told from a missing key", emptyPredicate)
	h.check(t, "a failed write changes nothing", failedWrite)
}

func everyPredicate(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	key := []byte("k")
	states := map[string][]byte{"missing": nil, "empty": {}, "v": []byte("v"), "w": []byte("w")}
	predicates := map[string]kv.Predicate{
		"absent": kv.Absent, "present": kv.Present,
		"equals empty": kv.Equals([]byte{}), "equals v": kv.Equals([]byte("v")),
	}
	reset := func(state []byte) {
		require.NoError(t, kv.SetMany(ctx, s, part, []kv.Write{{Key: key, Value: state}}))
	}
	for stateName, state := range states {
		for predicateName, p := range predicates {
			want := error(nil)
			if !p.Holds(state, state != nil) {
				want = kv.ErrPredicateFailed
			}
			reset(state)
			require.ErrorIs(t, s.SetIf(ctx, part, key, []byte("new"), p), want, "set %s if %s", stateName, predicateName)
			requireOutcome(t, s, key, state, []byte("new"), want)
			reset(state)
			require.ErrorIs(t, s.DeleteIf(ctx, part, key, p), want, "delete %s if %s", stateName, predicateName)
			requireOutcome(t, s, key, state, nil, want)
		}
	}
}

// requireOutcome checks that key is as before if there was an error, else as after; nil is missing.
func requireOutcome(t *testing.T, s kv.Store, key, before, after []byte, err error) {
	t.Helper()
	want := after
	if err != nil {
		want = before
	}
	if want == nil {
		requireMissing(t, s, part, key)
	} else {
		requireValue(t, s, part, key, string(want))
	}
}

func fromGet(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	key := []byte("k")
	require.NoError(t, s.SetIf(ctx, part, key, []byte("1"), kv.Absent))
	first, err := s.Get(ctx, part, key)
	require.NoError(t, err)
	require.NoError(t, s.SetIf(ctx, part, key, []byte("2"), first.Predicate))
	require.ErrorIs(t, s.SetIf(ctx, part, key, []byte("3"), first.Predicate), kv.ErrPredicateFailed)
	require.ErrorIs(t, s.DeleteIf(ctx, part, key, first.Predicate), kv.ErrPredicateFailed)
	second, err := s.Get(ctx, part, key)
	require.NoError(t, err)
	require.NoError(t, s.DeleteIf(ctx, part, key, second.Predicate))
	requireMissing(t, s, part, key)
	require.ErrorIs(t, s.SetIf(ctx, part, key, []byte("4"), second.Predicate), kv.ErrPredicateFailed)
	requireMissing(t, s, part, key)
}

func abaPasses(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	key := []byte("k")
	require.NoError(t, s.Set(ctx, part, key, []byte("a")))
	item, err := s.Get(ctx, part, key)
	require.NoError(t, err)
	require.NoError(t, s.Set(ctx, part, key, []byte("b")))
	require.NoError(t, s.Set(ctx, part, key, []byte("a")))
	require.NoError(t, s.SetIf(ctx, part, key, []byte("c"), item.Predicate))
}

func emptyPredicate(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	key := []byte("k")
	empty := kv.Equals([]byte{})
	require.ErrorIs(t, s.SetIf(ctx, part, key, []byte("v"), empty), kv.ErrPredicateFailed)
	require.NoError(t, s.Set(ctx, part, key, []byte{}))
	require.ErrorIs(t, s.SetIf(ctx, part, key, []byte("v"), kv.Absent), kv.ErrPredicateFailed)
	item, err := s.Get(ctx, part, key)
	require.NoError(t, err)
	require.NoError(t, s.SetIf(ctx, part, key, []byte("v"), item.Predicate))
	require.ErrorIs(t, s.DeleteIf(ctx, part, key, empty), kv.ErrPredicateFailed)
}

func failedWrite(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	require.ErrorIs(t, s.SetIf(ctx, part, []byte("k"), []byte("v"), kv.Present), kv.ErrPredicateFailed)
	require.ErrorIs(t, s.DeleteIf(ctx, part, []byte("k"), kv.Present), kv.ErrPredicateFailed)
	require.NoError(t, s.DeleteIf(ctx, part, []byte("k"), kv.Absent))
	keys, _ := scanAll(t, s, part, kv.ScanOptions{})
	require.Empty(t, keys)
}
