// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	blockmem "github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

// costs is a fixture on real trees, whose calls are counted.
type costs struct {
	*fixture
	kv    *kvtest.Counter
	files *blocktest.Counter
}

func newCosts(t *testing.T) *costs {
	files, err := blockmem.Open(t.Context(), "mem:", block.OpenOptions{})
	require.NoError(t, err)
	c := &costs{kv: kvtest.Counting(mem.New()), files: blocktest.Counting(files)}
	c.fixture = newFixtureOn(t, c.kv, c.trees(t), catalog.VersioningEnabled)
	return c
}

func (c *costs) trees(t *testing.T) graveler.Trees {
	trees, err := committed.New(committed.Config{Storage: func(_ context.Context, ns string) (block.Storage, error) { return block.Sub(c.files, ns), nil }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, trees.Close()) })
	return trees
}

// fill puts n objects, without going through staging one by one.
func (c *costs) fill(n int) {
	_, err := c.Import(c.Context(), bucket, "main", func(yield func(graveler.Entry, error) bool) {
		for i := range n {
			v, err := catalog.Encode(catalog.Object{PhysicalAddress: fmt.Sprintf("objects/%032d", i), Size: 1, VersionID: "null", ModifiedAt: c.clock})
			if !yield(graveler.Entry{Key: fmt.Appendf(nil, "tables/events/part-%09d", i), Value: &v}, err) {
				return
			}
		}
	}, graveler.ImportParams{CommitParams: graveler.CommitParams{Committer: "user"}})
	require.NoError(c, err)
}

// pass makes a pass in a process that has nothing in memory yet, and returns its calls.
func (c *costs) pass(t *testing.T) (kv, reads int) {
	now := func() time.Time { return c.clock }
	g, err := graveler.New(graveler.Config{Refs: ref.New(c.kv), Staging: staging.New(c.kv), Trees: c.trees(t), Now: now})
	require.NoError(t, err)
	config := c.config
	config.Store, config.Dispatcher = g, nil
	c.clock = c.clock.Add(time.Second)
	c.kv.Reset()
	c.files.Reset()
	_, err = dailyrun.Run(t.Context(), config)
	require.NoError(t, err)
	return c.kv.Total(), c.files.Counts().Get.Calls + c.files.Counts().GetRange.Calls
}

// A pass in which nothing changed and nothing fell due costs the same however many objects there are, and however long they are kept.
func TestAPassWithNothingToDoReadsAFewRecords(t *testing.T) {
	quiet := func(objects, days int) (int, int) {
		c := newCosts(t)
		c.rules(bucket, expire(days))
		c.fill(objects)
		c.days(1)
		c.pass(t)
		c.clock = c.clock.Add(time.Hour)
		return c.pass(t)
	}
	kv, reads := quiet(10, 3)
	for _, one := range []struct{ objects, days int }{{50_000, 3}, {10, 3000}, {50_000, 3000}} {
		manyKV, manyReads := quiet(one.objects, one.days)
		require.Equal(t, kv, manyKV, "%v", one)
		require.Equal(t, reads, manyReads, "%v", one)
	}
	require.LessOrEqual(t, kv, 70, "cursors and positions of 16 shards are among them")
	require.Zero(t, reads)
}

// What falls due costs what it is, not what there is.
func TestAPassCostsWhatFellDue(t *testing.T) {
	due := func(objects, k int) (int, int) {
		c := newCosts(t)
		c.rules(bucket, expire(3))
		c.fill(objects)
		c.pass(t)
		c.days(1)
		var keys []string
		for i := range k {
			keys = append(keys, fmt.Sprintf("tables/late/%06d", i))
		}
		c.put(keys...)
		c.days(2)
		c.pass(t) // takes the others
		c.pass(t) // looks at the markers
		c.days(1)
		kv, reads := c.pass(t)
		require.Empty(t, c.keys(bucket))
		return kv, reads
	}
	kv, reads := due(100, 5)
	manyKV, manyReads := due(20_000, 5)
	require.LessOrEqual(t, manyKV, kv+10)
	require.LessOrEqual(t, manyReads, reads+20)
}

// readings counts how often each change of a key is read.
type readings struct {
	*graveler.Graveler
	puts, removals map[string]int
}

func (r *readings) DiffTrees(ctx context.Context, repo graveler.RepositoryID, left, right graveler.MetaRangeID, o graveler.DiffOptions) iter.Seq2[graveler.Diff, error] {
	return func(yield func(graveler.Diff, error) bool) {
		for d, err := range r.Graveler.DiffTrees(ctx, repo, left, right, o) {
			if d.Right != nil {
				r.puts[string(d.Key)]++
			} else {
				r.removals[string(d.Key)]++
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func TestEachChangeIsReadOnceForEachDelayAndOnceWhenItIsNew(t *testing.T) {
	f := newFixtureOn(t, mem.New(), memtrees.New(), catalog.VersioningOff)
	r := &readings{f.Graveler, map[string]int{}, map[string]int{}}
	f.config.Store = r
	f.rules(bucket, expire(30), expire(7), expire(20))
	f.run()
	dispatched := map[string]int{}
	for day := range 60 {
		if day < 20 {
			f.put(fmt.Sprintf("a-%02d", day), fmt.Sprintf("b-%02d", day))
		}
		f.days(1)
		f.run()
		for _, item := range f.sent {
			dispatched[item.LogicalKey]++
		}
	}
	require.Empty(t, f.keys(bucket))
	require.Len(t, dispatched, 40)
	for key, n := range dispatched {
		require.Equal(t, 1, n, key)
		require.LessOrEqual(t, r.puts[key], 4, key)
		require.LessOrEqual(t, r.removals[key], 4, key)
	}
}
