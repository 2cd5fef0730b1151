// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

func text(s string) *string { return &s }

func predicate(p kv.Predicate) *kv.Predicate { return &p }

func get(key string) call { return call{method: "Get", writes: []kv.Write{{Key: []byte(key)}}} }

func apply(writes ...kv.Write) call { return call{method: "Apply", writes: writes} }

func write(key, value string) kv.Write { return kv.Write{Key: []byte(key), Value: []byte(value)} }

func TestHistoriesAreJudged(t *testing.T) {
	ab := apply(write("a", "1"), write("b", "1"))
	fenced := ab
	fenced.fence = predicate(kv.Present)
	setFence := apply(write(fenceKey, "f"))
	ifAbsent := apply(kv.Write{Key: []byte("a"), Value: []byte("2"), If: predicate(kv.Absent)})
	for name, c := range map[string]struct {
		ok bool
		h  history
	}{
		"nothing":                         {true, nil},
		"a read of what was written":      {true, history{{call: ab, begin: 1, end: 2}, {call: get("a"), begin: 3, end: 4, value: text("1")}}},
		"a stale read":                    {false, history{{call: ab, begin: 1, end: 2}, {call: get("a"), begin: 3, end: 4, err: kv.ErrNotFound}}},
		"a read beside the write":         {true, history{{call: ab, begin: 1, end: 4}, {call: get("a"), begin: 2, end: 3, err: kv.ErrNotFound}}},
		"a read of what nobody wrote":     {false, history{{call: get("a"), begin: 1, end: 2, value: text("1")}}},
		"an apply seen in part":           {false, history{{call: ab, begin: 1, end: 6}, {call: get("a"), begin: 2, end: 3, value: text("1")}, {call: get("b"), begin: 4, end: 5, err: kv.ErrNotFound}}},
		"an apply seen whole":             {true, history{{call: ab, begin: 1, end: 6}, {call: get("b"), begin: 2, end: 3, err: kv.ErrNotFound}, {call: get("a"), begin: 4, end: 5, value: text("1")}}},
		"a write behind no fence":         {false, history{{call: fenced, begin: 1, end: 2}}},
		"a write behind a fence":          {true, history{{call: setFence, begin: 1, end: 2}, {call: fenced, begin: 3, end: 4}}},
		"a fence that failed":             {true, history{{call: fenced, begin: 1, end: 2, err: kv.ErrFenceFailed}}},
		"a fence that should have held":   {false, history{{call: setFence, begin: 1, end: 2}, {call: fenced, begin: 3, end: 4, err: kv.ErrFenceFailed}}},
		"a predicate that did not hold":   {false, history{{call: ab, begin: 1, end: 2}, {call: ifAbsent, begin: 3, end: 4}}},
		"a predicate that failed":         {true, history{{call: ab, begin: 1, end: 2}, {call: ifAbsent, begin: 3, end: 4, err: kv.ErrPredicateFailed}}},
		"a predicate that failed falsely": {false, history{{call: ifAbsent, begin: 3, end: 4, err: kv.ErrPredicateFailed}}},
		"unknown and never happened":      {true, history{{call: ab, begin: 1, end: math.MaxInt64, err: ErrInjected}, {call: get("a"), begin: 3, end: 4, err: kv.ErrNotFound}}},
		"unknown and happened later":      {true, history{{call: ab, begin: 1, end: math.MaxInt64, err: ErrInjected}, {call: get("a"), begin: 3, end: 4, err: kv.ErrNotFound}, {call: get("a"), begin: 5, end: 6, value: text("1")}}},
		"unknown and undone":              {false, history{{call: ab, begin: 1, end: math.MaxInt64, err: ErrInjected}, {call: get("a"), begin: 3, end: 4, value: text("1")}, {call: get("a"), begin: 5, end: 6, err: kv.ErrNotFound}}},
	} {
		err := c.h.check()
		if c.ok {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, "no order", name)
		require.ErrorContains(t, err, c.h[0].call.String(), name)
	}
}

// Unknown outcomes of every kind are no offence, whether a call was not made, was made, or is made
// when its caller has long gone on.
func TestHistoriesWithFaultsAreLinearizable(t *testing.T) {
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		var limbo Limbo
		releaseAtReads := func(ctx context.Context, op Op, call func(context.Context) error) error {
			if op.Method == "Get" {
				limbo.Release()
			}
			return call(ctx)
		}
		faults := Random(rapid.Uint64().Draw(rt, "seed"), 0.2)
		keep := limbo.Keep(func(op Op) bool { return op.Writes%5 == 0 })
		plan := plans.Draw(rt, "plan")
		n++
		history, err := record(t.Context(), Faulty(mem.New(), Chain(releaseAtReads, faults, keep)), n, plan)
		require.NoError(rt, err)
		require.NoError(rt, history.check())
	})
}

// The stores below break one promise each.

// torn applies the writes of a batch one by one.
type torn struct{ *mem.Store }

func (s torn) Apply(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) error {
	for _, w := range writes {
		if err := s.Store.Apply(ctx, partition, []kv.Write{w}, fence); err != nil {
			return err
		}
		runtime.Gosched()
	}
	return nil
}

// racy looks first and writes then.
type racy struct{ *mem.Store }

func (s racy) SetIf(ctx context.Context, partition, key, value []byte, p kv.Predicate) error {
	item, err := s.Get(ctx, partition, key)
	if !p.Holds(item.Value, err == nil) {
		return kv.ErrPredicateFailed
	}
	runtime.Gosched()
	return s.Set(ctx, partition, key, value)
}

// unfenced checks a fence but does not hold it.
type unfenced struct{ *mem.Store }

func (s unfenced) Apply(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) error {
	if err := s.Store.Apply(ctx, partition, nil, fence); err != nil {
		return err
	}
	runtime.Gosched()
	return s.Store.Apply(ctx, partition, writes, nil)
}

// stale answers with what it read before.
type stale struct {
	*mem.Store
	mu   sync.Mutex
	read map[string]kv.Item
}

func (s *stale) Get(ctx context.Context, partition, key []byte) (kv.Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := string(partition) + "/" + string(key)
	if item, ok := s.read[at]; ok {
		return item, nil
	}
	item, err := s.Store.Get(ctx, partition, key)
	if err == nil {
		s.read[at] = item
	}
	return item, err
}

// forgetful acknowledges deletes that it does not make.
type forgetful struct{ *mem.Store }

func (forgetful) DeleteIf(context.Context, []byte, []byte, kv.Predicate) error { return nil }

func TestBrokenStoresAreFound(t *testing.T) {
	for name, s := range map[string]kv.Store{
		"torn":      torn{mem.New()},
		"racy":      racy{mem.New()},
		"unfenced":  unfenced{mem.New()},
		"stale":     &stale{Store: mem.New(), read: make(map[string]kv.Item)},
		"forgetful": forgetful{mem.New()},
	} {
		t.Run(name, func(t *testing.T) {
			for n := range 20_000 {
				history, err := record(t.Context(), s, n, plans.Example(n))
				require.NoError(t, err)
				if err := history.check(); err != nil {
					t.Logf("after %d histories: %v", n+1, err)
					return
				}
			}
			t.Fatal("not found")
		})
	}
}
