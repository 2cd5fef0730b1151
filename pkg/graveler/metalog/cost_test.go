// SPDX-License-Identifier: Apache-2.0

package metalog_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	blockmem "github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// costs is a store on real trees, whose calls are counted.
type costs struct {
	*graveler.Graveler
	kv    *kvtest.Counter
	files *blocktest.Counter
}

// reopened is the store as a process sees it that has nothing in memory yet.
func (c *costs) reopened(t *testing.T) *costs {
	t.Helper()
	trees, err := committed.New(committed.Config{Storage: func(_ context.Context, ns string) (block.Storage, error) { return block.Sub(c.files, ns), nil }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, trees.Close()) })
	g, err := graveler.New(graveler.Config{Refs: ref.New(c.kv), Staging: staging.New(c.kv), Trees: trees})
	require.NoError(t, err)
	c.kv.Reset()
	c.files.Reset()
	return &costs{g, c.kv, c.files}
}

func newCosts(t *testing.T) *costs {
	t.Helper()
	store, err := kv.Open(t.Context(), "mem:", kv.Engines{"mem": mem.Open}, kv.OpenOptions{})
	require.NoError(t, err)
	files, err := blockmem.Open(t.Context(), "mem:", block.OpenOptions{})
	require.NoError(t, err)
	c := (&costs{kv: kvtest.Counting(store), files: blocktest.Counting(files)}).reopened(t)
	_, err = c.CreateRepository(t.Context(), "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	return c
}

func (c *costs) commit(t *testing.T, entries ...graveler.Entry) {
	t.Helper()
	require.NoError(t, c.SetMany(t.Context(), "lake", "main", entries))
	_, err := c.Commit(t.Context(), "lake", "main", graveler.CommitParams{})
	require.NoError(t, err)
}

func entry(i int, text string) graveler.Entry {
	v := graveler.Value{Identity: fmt.Appendf(nil, "%s-%032d", text, i), Data: make([]byte, 150)}
	return graveler.Entry{Key: fmt.Appendf(nil, "tables/events/part-%09d", i), Value: &v}
}

// A move of a hundred thousand entries, which changed one of them, reads the files that lead to that one, and the net effect of
// many moves costs what they come to.
func TestTheFeedCostsWhatChanged(t *testing.T) {
	const size, moves = 100_000, 5
	c := newCosts(t)
	var all []graveler.Entry
	for i := range size {
		all = append(all, entry(i, "first"))
	}
	c.commit(t, all...)
	b, err := c.GetBranch(t.Context(), "lake", "main")
	require.NoError(t, err)
	main, begin := metalog.Source{Repository: "lake", Branch: "main", UID: b.UID}, b.LastMove.Time
	for i := range moves {
		c.commit(t, entry(size/2, fmt.Sprint(i)))
	}
	b, err = c.GetBranch(t.Context(), "lake", "main")
	require.NoError(t, err)
	files := 0
	for info, err := range c.files.List(t.Context(), "") {
		require.NoError(t, err)
		require.NotEmpty(t, info.Name)
		files++
	}
	require.Greater(t, files, 15+2*moves, "the tree has many files")

	last := c.reopened(t)
	require.Len(t, collect(t, metalog.New(last).Events(t.Context(), []metalog.Source{main}, b.LastMove.Previous, forever)), 1)
	const levels = 2 // a range, and the root above it
	require.LessOrEqual(t, last.files.Counts().Get.Calls, 2*levels)
	require.Zero(t, last.files.Counts().GetRange.Calls)
	require.LessOrEqual(t, last.kv.Total(), 10, "%v", last.kv.Counts())

	each := c.reopened(t)
	require.Len(t, collect(t, metalog.New(each).Events(t.Context(), []metalog.Source{main}, begin, forever)), moves)
	require.LessOrEqual(t, each.files.Counts().Get.Calls, 2*levels*moves)
	require.Equal(t, 1, each.kv.Counts()["Scan"])

	net := c.reopened(t)
	require.Len(t, collect(t, metalog.New(net).Net(t.Context(), main, begin, forever)), 1)
	require.LessOrEqual(t, net.files.Counts().Get.Calls, 2*levels)
	require.LessOrEqual(t, net.kv.Total(), 12, "%v", net.kv.Counts())

	nothing := c.reopened(t)
	require.Empty(t, collect(t, metalog.New(nothing).Events(t.Context(), []metalog.Source{main}, 0, 1)))
	require.Zero(t, nothing.files.Counts())

	stopped := c.reopened(t)
	for range metalog.New(stopped).Net(t.Context(), main, 0, forever) {
		break
	}
	require.Less(t, stopped.files.Counts().Get.Calls, files/2, "what comes later has not been read")
}
