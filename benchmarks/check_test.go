// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
)

// losing acknowledges the writes of its engine to what is staged, and to the partition of plain writes, but loses one of them.
type losing struct {
	kv.Store
	left atomic.Int64 // writes until the one that is lost
}

func (l *losing) loses(partition []byte) bool {
	staged := bytes.ContainsRune(partition, ':') || string(partition) == rawPartition
	return staged && l.left.Add(-1) == 0
}

func (l *losing) Set(ctx context.Context, partition, key, value []byte) error {
	if l.loses(partition) {
		return nil
	}
	return l.Store.Set(ctx, partition, key, value)
}

func (l *losing) Apply(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) error {
	if len(writes) > 0 && l.loses(partition) {
		writes = writes[1:]
	}
	return l.Store.Apply(ctx, partition, writes, fence)
}

func TestARunThatLostAWriteFails(t *testing.T) {
	t.Parallel() // much of it is waiting for the disk
	for _, w := range Workloads(Tiny) {
		if w.Name == "import" {
			continue // it stages nothing that could be lost here; what judges it is what judges commit-size
		}
		c := config(t, "mem")
		c.plant = func(s kv.Store) kv.Store {
			l := &losing{Store: s}
			l.left.Store(2)
			return l
		}
		d, err := Run(t.Context(), c, []Workload{w})
		require.ErrorIs(t, err, ErrWrong, w.Name)
		require.NotEmpty(t, d.Runs[len(d.Runs)-1].Error, w.Name)
		for _, v := range d.Targets {
			require.False(t, v.Measured, "%s counts although it lost a write", w.Name)
		}
	}
}

// garbling changes a value on its way.
type garbling struct {
	kv.Store
	done atomic.Bool
}

func (g *garbling) Apply(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) error {
	if bytes.ContainsRune(partition, ':') && len(writes) > 0 && !g.done.Swap(true) {
		writes = slices.Clone(writes)
		writes[0].Value = slices.Clone(writes[0].Value)
		writes[0].Value[len(writes[0].Value)-1] ^= 1
	}
	return g.Store.Apply(ctx, partition, writes, fence)
}

func TestARunThatChangedAValueFails(t *testing.T) {
	c := config(t, "mem")
	c.plant = func(s kv.Store) kv.Store { return &garbling{Store: s} }
	_, err := Run(t.Context(), c, []Workload{tiny(t, "commit-size", nil)})
	require.ErrorIs(t, err, ErrWrong)
	require.ErrorContains(t, err, "another value")
}

func TestEntriesAreSortedAndRepeatable(t *testing.T) {
	b := &bench{Config: config(t)}
	es := b.entries("data", 5_000)
	var last []byte
	for e := range es.all {
		require.Negative(t, bytes.Compare(last, e.Key), "%s, %s", last, e.Key)
		require.Len(t, append(e.Value.Identity, e.Value.Data...), b.ValueBytes)
		last = e.Key
	}
	require.Equal(t, es.entry(4_321), b.entries("data", 1).entry(4_321))
	require.Equal(t, "data/dt=2000-01-05/hour=12/part-00001", string(es.key(4_321))[:37])
	b.Seed = 2
	require.NotEqual(t, es.entry(4_321), b.entries("data", 1).entry(4_321))

	changed := b.changing("data", 10)
	before := changed.entry(3)
	require.Equal(t, before.Key, changed.change(3)[0].Key)
	require.NotEqual(t, before.Value.Identity, changed.entry(3).Value.Identity)
	require.Equal(t, b.entries("data", 10).entry(4), changed.entry(4))
}
