// SPDX-License-Identifier: Apache-2.0

package moraine_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// heapSamples notes the largest live heap that it sees above what there was at the start.
type heapSamples struct {
	mu      sync.Mutex
	base    int64
	largest int64
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (h *heapSamples) take() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.largest = max(h.largest, liveHeap()-h.base)
}

// samplingPuts takes a sample at every few files that are written: in the middle of a commit.
type samplingPuts struct {
	block.Storage
	heap  *heapSamples
	every int

	mu   sync.Mutex
	puts int
}

func (s *samplingPuts) Put(ctx context.Context, name string, data []byte) error {
	s.mu.Lock()
	s.puts++
	due := s.puts%s.every == 0
	s.mu.Unlock()
	if due {
		s.heap.take()
	}
	return s.Storage.Put(ctx, name, data)
}

// largestHeap stages n entries, commits, lists and changes them, and returns the largest live heap of each.
func largestHeap(t *testing.T, n int) (commit, list, change int64) {
	ctx := context.Background()
	dir := t.TempDir()
	files, err := local.OpenDir(dir+"/blocks", block.OpenOptions{})
	require.NoError(t, err)
	heap := &heapSamples{}
	s := open(t, moraine.Options{Store: "bolt:" + dir + "/meta.db", BlockStorage: &samplingPuts{Storage: files, heap: heap, every: 1 + n/25_000}, CacheBytes: 4 << 20})
	_, err = s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	for i := 0; i < n; {
		var batch []graveler.Entry
		for ; i < n && len(batch) < 10_000; i++ {
			v := graveler.Value{Identity: fmt.Appendf(nil, "%032d", i), Data: make([]byte, 150)}
			batch = append(batch, graveler.Entry{Key: fmt.Appendf(nil, "tables/events/part-%09d", i), Value: &v})
		}
		require.NoError(t, s.SetMany(ctx, "lake", "main", batch))
	}
	heap.base = liveHeap()
	_, err = s.Commit(ctx, "lake", "main", graveler.CommitParams{})
	require.NoError(t, err)
	commit, heap.largest = heap.largest, 0
	for _, ref := range []string{"main", "main@"} {
		found := 0
		for _, err := range s.List(ctx, "lake", ref, graveler.ListOptions{}) {
			require.NoError(t, err)
			if found++; found%(n/4) == n/8 {
				heap.take()
			}
		}
		require.Equal(t, n, found)
	}
	list, heap.largest = heap.largest, 0
	changeAll(t, s.Graveler, n)
	require.NoError(t, s.Close())
	require.NoError(t, files.Close())
	return commit, list, heap.largest
}

// changeAll gives each of n entries another identity, having looked it up.
func changeAll(t *testing.T, g *graveler.Graveler, n int) {
	p := graveler.ChangeTreeParams{Op: graveler.OpLifecycle}
	_, err := g.ChangeTree(t.Context(), "lake", "main", p, func(_ context.Context, tree *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
		return func(yield func(graveler.Entry, error) bool) {
			for i := range n {
				k := fmt.Appendf(nil, "tables/events/part-%09d", i)
				v, err := tree.Get(k)
				if err == nil {
					v.Identity = fmt.Appendf(nil, "%032d", n+i)
				}
				if !yield(graveler.Entry{Key: k, Value: v}, err) {
					return
				}
			}
		}, nil
	})
	require.NoError(t, err)
}

func TestMemoryDoesNotGrowWithEntries(t *testing.T) {
	const few, many = 100_000, 1_000_000
	commitFew, listFew, changeFew := largestHeap(t, few)
	commitMany, listMany, changeMany := largestHeap(t, many)
	t.Logf("live heap in KiB of %d and of %d entries: commit %d, %d; list %d, %d; change %d, %d",
		few, many, commitFew>>10, commitMany>>10, listFew>>10, listMany>>10, changeFew>>10, changeMany>>10)
	// How many files are being built when a sample is taken is a matter of chance. The entries themselves would take more.
	require.Less(t, commitMany, commitFew+32<<20)
	require.Less(t, changeMany, changeFew+32<<20)
	require.Less(t, listMany, listFew+8<<20)
}
