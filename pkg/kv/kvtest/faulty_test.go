// SPDX-License-Identifier: Apache-2.0

package kvtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

var p, k, v = []byte("p"), []byte("k"), []byte("v")

func every(kvtest.Op) bool { return true }

func has(t *testing.T, s kv.Store, key []byte) bool {
	t.Helper()
	_, err := s.Get(t.Context(), p, key)
	if !errors.Is(err, kv.ErrNotFound) {
		require.NoError(t, err)
	}
	return err == nil
}

func TestConformanceOfAFaultyStoreWithoutFaults(t *testing.T) {
	for name, wrap := range map[string]func(kv.Store) kv.Store{
		"capable": func(s kv.Store) kv.Store { return kvtest.Faulty(s, nil) },
		"plain":   func(s kv.Store) kv.Store { return kvtest.Faulty(plain{s}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			open := func(ctx context.Context, url string, o kv.OpenOptions) (kv.Store, error) {
				s, err := mem.Open(ctx, url, o)
				return wrap(s), err
			}
			kvtest.Run(t, kvtest.Harness{Open: open, NewURL: func(*testing.T) string { return "mem:" }})
		})
	}
}

func TestFailBeforeDoesNotWrite(t *testing.T) {
	s := mem.New()
	f := kvtest.Faulty(s, kvtest.FailBefore(kvtest.Nth("Set", 2)))
	require.NoError(t, f.Set(t.Context(), p, []byte("1"), v))
	err := f.Set(t.Context(), p, []byte("2"), v)
	require.ErrorIs(t, err, kvtest.ErrInjected)
	require.ErrorContains(t, err, "before Set 2")
	require.NoError(t, f.Set(t.Context(), p, []byte("3"), v))
	require.Equal(t, []bool{true, false, true}, []bool{has(t, s, []byte("1")), has(t, s, []byte("2")), has(t, s, []byte("3"))})
}

func TestFailAfterWritesAndHidesTheOutcome(t *testing.T) {
	s := mem.New()
	f := kvtest.Faulty(s, kvtest.FailAfter(every))
	require.ErrorIs(t, f.SetIf(t.Context(), p, k, v, kv.Absent), kvtest.ErrInjected)
	require.True(t, has(t, s, k))
	err := f.SetIf(t.Context(), p, k, v, kv.Absent)
	require.ErrorIs(t, err, kvtest.ErrInjected)
	require.NotErrorIs(t, err, kv.ErrPredicateFailed)
	item, err := f.Get(t.Context(), p, k)
	require.ErrorIs(t, err, kvtest.ErrInjected)
	require.Zero(t, item)
	_, err = f.Scan(t.Context(), p, kv.ScanOptions{})
	require.ErrorIs(t, err, kvtest.ErrInjected)
}

func TestScriptsAreToldWhatIsCalled(t *testing.T) {
	var ops []kvtest.Op
	f := kvtest.Faulty(mem.New(), func(ctx context.Context, op kvtest.Op, call func(context.Context) error) error {
		ops = append(ops, op)
		return call(ctx)
	})
	ctx := t.Context()
	require.NoError(t, f.Set(ctx, p, k, v))
	require.NoError(t, f.Set(ctx, p, k, v))
	require.NoError(t, f.SetIf(ctx, p, k, v, kv.Present))
	require.True(t, has(t, f, k))
	it, err := f.Scan(ctx, p, kv.ScanOptions{})
	require.NoError(t, err)
	require.True(t, it.Next())
	require.False(t, it.Next())
	require.NoError(t, it.Close())
	require.NoError(t, f.Apply(ctx, p, nil, nil))
	require.NoError(t, kv.SetMany(ctx, f, p, nil))
	require.NoError(t, f.DeleteIf(ctx, p, k, kv.Present))
	require.NoError(t, f.Delete(ctx, p, k))
	require.NoError(t, kv.DropPartition(ctx, f, p))
	require.NoError(t, kv.Publish(ctx, f, nil, kv.Record{Partition: p, Key: k, Value: v}, kv.Absent))
	require.NoError(t, f.Close())
	require.Equal(t, []kvtest.Op{
		{Method: "Set", Partition: "p", Key: "k", N: 1, Writes: 1},
		{Method: "Set", Partition: "p", Key: "k", N: 2, Writes: 2},
		{Method: "SetIf", Partition: "p", Key: "k", N: 1, Writes: 3},
		{Method: "Get", Partition: "p", Key: "k", N: 1},
		{Method: "Scan", Partition: "p", N: 1},
		{Method: "Next", Partition: "p", N: 1},
		{Method: "Next", Partition: "p", N: 2},
		{Method: "Apply", Partition: "p", N: 1, Writes: 4},
		{Method: "SetMany", Partition: "p", N: 1, Writes: 5},
		{Method: "DeleteIf", Partition: "p", Key: "k", N: 1, Writes: 6},
		{Method: "Delete", Partition: "p", Key: "k", N: 1, Writes: 7},
		{Method: "DropPartition", Partition: "p", N: 1, Writes: 8},
		{Method: "Publish", Partition: "p", Key: "k", N: 1, Writes: 9},
		{Method: "Close", N: 1},
	}, ops)
}

func TestBulkCallsOfAnIncapableStoreFailOneByOne(t *testing.T) {
	s := mem.New()
	f := kvtest.Faulty(plain{s}, kvtest.FailBefore(kvtest.Nth("Set", 2)))
	writes := []kv.Write{{Key: []byte("1"), Value: v}, {Key: []byte("2"), Value: v}}
	require.ErrorIs(t, kv.SetMany(t.Context(), f, p, writes), kvtest.ErrInjected)
	require.True(t, has(t, s, []byte("1")))
	require.False(t, has(t, s, []byte("2")))
	require.NoError(t, kv.DropPartition(t.Context(), f, p))
	require.False(t, has(t, s, []byte("1")))

	f = kvtest.Faulty(plain{s}, kvtest.FailBefore(kvtest.Nth("SetIf", 1)))
	before, last := []kv.Record{{Partition: p, Key: []byte("before"), Value: v}}, kv.Record{Partition: p, Key: []byte("last"), Value: v}
	require.ErrorIs(t, kv.Publish(t.Context(), f, before, last, kv.Absent), kvtest.ErrInjected)
	require.True(t, has(t, s, []byte("before")))
	require.False(t, has(t, s, []byte("last")))
	require.NoError(t, kv.Publish(t.Context(), f, before, last, kv.Absent))
	require.True(t, has(t, s, []byte("last")))
}

func TestAScanThatFailsInTheMiddleStaysFailed(t *testing.T) {
	s := mem.New()
	for i := range 10 {
		require.NoError(t, s.Set(t.Context(), p, []byte{byte(i)}, v))
	}
	for name, script := range map[string]kvtest.Script{
		"before": kvtest.FailBefore(kvtest.Nth("Next", 4)),
		"after":  kvtest.FailAfter(kvtest.Nth("Next", 4)),
	} {
		it, err := kvtest.Faulty(s, script).Scan(t.Context(), p, kv.ScanOptions{})
		require.NoError(t, err, name)
		for i := range 3 {
			require.True(t, it.Next(), name)
			require.Equal(t, []byte{byte(i)}, it.Key(), name)
		}
		for range 2 {
			require.False(t, it.Next(), name)
			require.Nil(t, it.Key(), name)
			require.Nil(t, it.Value(), name)
			require.ErrorIs(t, it.Err(), kvtest.ErrInjected, name)
			it.SeekGE(nil)
		}
		require.ErrorIs(t, it.Close(), kvtest.ErrInjected, name)
		require.ErrorIs(t, it.Close(), kvtest.ErrInjected, name)
	}
}

func TestAfterACrashNothingReachesTheStore(t *testing.T) {
	for name, c := range map[string]struct {
		crash  func(kvtest.Pick) kvtest.Script
		landed bool
	}{"before": {kvtest.CrashBefore, false}, "after": {kvtest.CrashAfter, true}} {
		s := mem.New()
		f := kvtest.Faulty(s, c.crash(kvtest.NthWrite(2)))
		require.NoError(t, f.Set(t.Context(), p, []byte("1"), v), name)
		require.True(t, has(t, f, []byte("1")), name)
		it, err := f.Scan(t.Context(), p, kv.ScanOptions{})
		require.NoError(t, err, name)
		require.ErrorIs(t, f.Apply(t.Context(), p, []kv.Write{{Key: []byte("2"), Value: v}}, nil), kvtest.ErrInjected, name)
		require.Equal(t, c.landed, has(t, s, []byte("2")), name)

		require.ErrorIs(t, f.Delete(t.Context(), p, []byte("1")), kvtest.ErrInjected, name)
		require.False(t, it.Next(), name)
		require.ErrorIs(t, it.Close(), kvtest.ErrInjected, name)
		_, err = f.Get(t.Context(), p, []byte("1"))
		require.ErrorIs(t, err, kvtest.ErrInjected, name)
		require.ErrorIs(t, f.Close(), kvtest.ErrInjected, name)
		require.True(t, has(t, kvtest.Faulty(s, nil), []byte("1")), "%s: the store can be opened again", name)
	}
}

// A call that is under way at a crash may land, but nobody hears of it.
func TestACrashTakesTheAnswersOfOthersWithIt(t *testing.T) {
	s, gate := mem.New(), kvtest.NewGate()
	f := kvtest.Faulty(s, kvtest.Chain(kvtest.CrashBefore(kvtest.Nth("Delete", 1)), gate.After(kvtest.Nth("Set", 1))))
	var g errgroup.Group
	g.Go(func() error { return f.Set(t.Context(), p, k, v) })
	<-gate.Arrived()
	require.ErrorIs(t, f.Delete(t.Context(), p, k), kvtest.ErrInjected)
	gate.Open()
	require.ErrorIs(t, g.Wait(), kvtest.ErrInjected)
	require.True(t, has(t, s, k))
}

func TestAGateHoldsCalls(t *testing.T) {
	s, gate := mem.New(), kvtest.NewGate()
	f := kvtest.Faulty(s, gate.Before(kvtest.Nth("Set", 1)))
	var g errgroup.Group
	g.Go(func() error { return f.Set(t.Context(), p, k, v) })
	<-gate.Arrived()
	require.False(t, has(t, f, k))
	gate.Open()
	require.NoError(t, g.Wait())
	require.True(t, has(t, f, k))
	gate.Open()
}

func TestAGateLetsGoWhenTheContextEnds(t *testing.T) {
	s, gate := mem.New(), kvtest.NewGate()
	f := kvtest.Faulty(s, kvtest.Chain(gate.Before(kvtest.Nth("Set", 1)), gate.After(kvtest.Nth("Set", 2))))
	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return f.Set(ctx, p, []byte("1"), v) })
	<-gate.Arrived()
	cancel()
	require.ErrorIs(t, g.Wait(), context.Canceled)
	require.False(t, has(t, s, []byte("1")))
	ctx, cancel = context.WithCancel(t.Context())
	script := gate.After(every)
	err := script(ctx, kvtest.Op{}, func(context.Context) error { cancel(); return s.Set(t.Context(), p, []byte("2"), v) })
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, has(t, s, []byte("2")))
}

func TestALostWriteMayLandLater(t *testing.T) {
	s := mem.New()
	var limbo kvtest.Limbo
	f := kvtest.Faulty(s, limbo.Keep(every))
	ctx, cancel := context.WithCancel(t.Context())
	key, value := []byte("k"), []byte("v")
	writes := []kv.Write{{Key: []byte("l"), Value: value}}
	require.ErrorIs(t, f.SetIf(ctx, p, key, value, kv.Absent), kvtest.ErrInjected)
	require.ErrorIs(t, f.Apply(ctx, p, writes, nil), kvtest.ErrInjected)
	require.ErrorIs(t, f.SetIf(ctx, p, key, value, kv.Absent), kvtest.ErrInjected)
	require.False(t, has(t, f, k), "reads pass")
	cancel()
	clear(key)
	clear(value)
	writes[0] = kv.Write{}
	errs := limbo.Release()
	require.Len(t, errs, 3)
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.ErrorIs(t, errs[2], kv.ErrPredicateFailed)
	for _, key := range []string{"k", "l"} {
		item, err := s.Get(t.Context(), p, []byte(key))
		require.NoError(t, err)
		require.Equal(t, "v", string(item.Value))
	}
	require.Empty(t, limbo.Release())
}

func TestRandomFaultsDependOnTheSeedAlone(t *testing.T) {
	run := func(seed uint64) (told, landed string) {
		s := mem.New()
		f := kvtest.Faulty(s, kvtest.Random(seed, 0.5))
		for i := range 100 {
			err := f.Set(t.Context(), p, []byte{byte(i)}, v)
			told += fmt.Sprint(err == nil)
			landed += fmt.Sprint(has(t, s, []byte{byte(i)}))
		}
		require.NoError(t, f.Close())
		return told, landed
	}
	told, landed := run(1)
	require.NotEqual(t, told, landed)
	again, againLanded := run(1)
	require.Equal(t, told, again)
	require.Equal(t, landed, againLanded)
	other, _ := run(2)
	require.NotEqual(t, told, other)
}
