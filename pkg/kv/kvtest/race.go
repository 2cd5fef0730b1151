// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/kv"
)

func races(t *testing.T, h Harness) {
	for _, writers := range []int{2, 8, 64} {
		h.check(t, fmt.Sprintf("of %d writers one wins", writers), func(t *testing.T, h Harness) { oneWins(t, h, writers) })
	}
	h.check(t, "no increment is lost", noLostIncrement)
	h.check(t, "a delete does not remove what it has not seen", deleteRaces)
	h.check(t, "an apply is seen whole", applySeenWhole)
	h.check(t, "of applies that rely on each other's keys one lands", applyRelying)
	h.check(t, "nothing is written behind a fence that has moved", fenceRaces)
}

// oneWins lets writers race for a key, by creating it and by replacing it.
func oneWins(t *testing.T, h Harness, writers int) {
	s := h.open(t)
	p := kv.Absent
	for round := range 10 {
		var winner atomic.Int64
		var g errgroup.Group
		for w := range writers {
			g.Go(func() error {
				err := s.SetIf(t.Context(), part, []byte("k"), fmt.Appendf(nil, "%d/%d", round, w), p)
				if errors.Is(err, kv.ErrPredicateFailed) {
					return nil
				}
				if err == nil && !winner.CompareAndSwap(0, int64(w+1)) {
					return fmt.Errorf("writers %d and %d have both won", w, winner.Load()-1)
				}
				return err
			})
		}
		require.NoError(t, g.Wait())
		require.NotZero(t, winner.Load(), "nobody has won")
		item, err := s.Get(t.Context(), part, []byte("k"))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%d/%d", round, winner.Load()-1), string(item.Value))
		p = item.Predicate
	}
}

func noLostIncrement(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	const writers, each = 8, 10
	key := []byte("counter")
	require.NoError(t, s.Set(ctx, part, key, []byte("0")))
	increment := func() error {
		for {
			item, err := s.Get(ctx, part, key)
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(string(item.Value))
			if err != nil {
				return err
			}
			err = s.SetIf(ctx, part, key, strconv.AppendInt(nil, int64(n+1), 10), item.Predicate)
			if !errors.Is(err, kv.ErrPredicateFailed) {
				return err
			}
		}
	}
	var g errgroup.Group
	for range writers {
		g.Go(func() error {
			for range each {
				if err := increment(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	requireValue(t, s, part, key, strconv.Itoa(writers*each))
}

// deleteRaces lets one actor replace a key while another deletes the value that it has read.
func deleteRaces(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	key := []byte("k")
	for range 20 {
		require.NoError(t, s.Set(ctx, part, key, []byte("old")))
		var replaced, deleted error
		var g errgroup.Group
		g.Go(func() error { replaced = s.SetIf(ctx, part, key, []byte("new"), kv.Equals([]byte("old"))); return nil })
		g.Go(func() error { deleted = s.DeleteIf(ctx, part, key, kv.Equals([]byte("old"))); return nil })
		require.NoError(t, g.Wait())
		if replaced == nil {
			require.ErrorIs(t, deleted, kv.ErrPredicateFailed)
			requireValue(t, s, part, key, "new")
		} else {
			require.ErrorIs(t, replaced, kv.ErrPredicateFailed)
			require.NoError(t, deleted)
			requireMissing(t, s, part, key)
		}
	}
}

// applySeenWhole lets writers race to store two equal values.
func applySeenWhole(t *testing.T, h Harness) {
	s := h.open(t)
	const writers, rounds = 8, 20
	for range rounds {
		var g errgroup.Group
		for w := range writers {
			g.Go(func() error {
				v := []byte{byte(w)}
				return s.Apply(t.Context(), part, []kv.Write{{Key: []byte("a"), Value: v}, {Key: []byte("b"), Value: v}}, nil)
			})
		}
		require.NoError(t, g.Wait())
		_, values := scanAll(t, s, part, kv.ScanOptions{})
		require.Len(t, values, 2)
		require.Equal(t, values["a"], values["b"])
	}
}

// applyRelying has two writers each of whom creates a key while the other's is not there. Who relies on that writes nothing for
// it: to delete what is absent changes nothing.
func applyRelying(t *testing.T, h Harness) {
	s, absent := h.open(t), kv.Absent
	for round := range 30 {
		keys := [][]byte{fmt.Appendf(nil, "a%d", round), fmt.Appendf(nil, "b%d", round)}
		var landed atomic.Int64
		var g errgroup.Group
		for i := range keys {
			g.Go(func() error {
				err := s.Apply(t.Context(), part, []kv.Write{{Key: keys[i], Value: []byte("v"), If: &absent}, {Key: keys[1-i], If: &absent}}, nil)
				if errors.Is(err, kv.ErrPredicateFailed) {
					return nil
				}
				landed.Add(1)
				return err
			})
		}
		require.NoError(t, g.Wait())
		require.EqualValues(t, 1, landed.Load())
		found, _ := scanAll(t, s, part, kv.ScanOptions{})
		require.Len(t, found, round+1)
	}
}

// fenceRaces is how staging uses fences. A record names the generation that writers write into. Once
// SetIf has moved it to the next one, the old one must not change any more, and it holds exactly the
// writes that were acknowledged.
func fenceRaces(t *testing.T, h Harness) {
	s := h.open(t)
	key := []byte("record")
	generation := func(n int) []byte { return fmt.Appendf(nil, "generation-%d", n) }
	require.NoError(t, s.SetIf(t.Context(), part, key, generation(0), kv.Absent))
	for gen := range 20 {
		f := &fencedWriters{
			store:        s,
			partition:    generation(gen),
			fence:        kv.Fence{Partition: part, Key: key, Predicate: kv.Equals(generation(gen))},
			acknowledged: make(chan string, 1000),
		}
		var g errgroup.Group
		for w := range 8 {
			g.Go(func() error { return f.write(t.Context(), w) })
		}
		ended := make(chan error, 1)
		go func() {
			ended <- g.Wait()
			close(f.acknowledged)
		}()
		want := make(map[string]string)
		for range 10 { // let them get going
			if k, ok := <-f.acknowledged; ok {
				want[k] = "v"
			}
		}
		require.NoError(t, s.SetIf(t.Context(), part, key, generation(gen+1), kv.Equals(generation(gen))))
		_, frozen := scanAll(t, s, f.partition, kv.ScanOptions{})
		require.NoError(t, <-ended)
		for k := range f.acknowledged {
			want[k] = "v"
		}
		_, after := scanAll(t, s, f.partition, kv.ScanOptions{})
		require.Equal(t, want, after)
		require.Equal(t, frozen, after, "something was written after the fence had moved")
	}
}

type fencedWriters struct {
	store        kv.Store
	partition    []byte
	fence        kv.Fence
	acknowledged chan string
}

// write writes until the fence has moved, but no more than fits into the channel.
func (f *fencedWriters) write(ctx context.Context, writer int) error {
	for n := range 100 {
		key := fmt.Sprintf("%d-%d", writer, n)
		err := f.store.Apply(ctx, f.partition, []kv.Write{{Key: []byte(key), Value: []byte("v")}}, &f.fence)
		if errors.Is(err, kv.ErrFenceFailed) {
			return nil
		}
		if err != nil {
			return err
		}
		f.acknowledged <- key
	}
	return nil
}
