// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// heap notes the largest live heap that it sees, every so many bytes that are read or written.
type heap struct {
	largest, bytes, next int64
}

func (h *heap) count(n int) {
	const every = 512 << 10
	if h.bytes += int64(n); h.bytes >= h.next {
		h.next += every
		h.largest = max(h.largest, liveHeap())
	}
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

type countingWriter struct {
	io.Writer
	heap *heap
}

func (c countingWriter) Write(p []byte) (int, error) {
	c.heap.count(len(p))
	return c.Writer.Write(p)
}

type countingReader struct {
	io.Reader
	heap *heap
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.heap.count(n)
	return n, err
}

// history loads a repository with a branch of n commits, and as many uncommitted entries.
func history(t *testing.T, s store, n int) {
	ctx := t.Context()
	l, err := s.LoadRepository(ctx, "lake", graveler.LoadParams{DefaultBranch: "main"})
	require.NoError(t, err)
	c, empty := &graveler.Commit{}, memtrees.New().EmptyTree()
	for i := range n {
		next := &graveler.Commit{
			Version: graveler.CommitVersion, Tree: empty, CreatedAt: time.Unix(0, int64(i+1)), Generation: int64(i + 1), LogTime: int64(i + 1),
			Message: fmt.Sprint("commit ", i), Metadata: map[string]string{"k": fmt.Sprintf("%0200d", i)},
		}
		if i > 0 {
			next.Parents = []graveler.CommitID{c.ID}
		}
		next.ID = next.ComputeID()
		require.NoError(t, l.PutCommit(ctx, next))
		m := graveler.Move{Time: int64(i + 1), Previous: int64(i), Op: graveler.OpCommit, Old: c.ID, New: next.ID}
		if c = next; i < n-1 {
			require.NoError(t, l.PutMove(ctx, "uid", m))
			continue
		}
		b, err := l.PutBranch(ctx, graveler.Branch{ID: "main", UID: "uid", Head: c.ID, LastMove: m})
		require.NoError(t, err)
		var entries []graveler.Entry
		for i := range n {
			v := value(fmt.Sprintf("%0200d", i))
			entries = append(entries, graveler.Entry{Key: fmt.Appendf(nil, "%09d", i), Value: &v})
		}
		require.NoError(t, l.Stage(ctx, b, entries))
	}
	_, err = l.Finish(ctx)
	require.NoError(t, err)
}

// A dump takes no more memory for a large repository than for a small one, and while one is loaded no more than is left of it in
// the end, which is what the engine in memory holds.
func TestMemoryOfDumpAndLoadDoesNotGrowWithTheRepository(t *testing.T) {
	n := 3000
	if os.Getenv("MORAINE_NIGHTLY") != "" {
		n = 50_000
	}
	const slack = 2 << 20 // the records would take some 1,500 bytes for each commit with its move and its entry
	ctx, trees := t.Context(), memtrees.New()
	s := newStore(t, mem.New(), trees)
	history(t, s, n)
	path := filepath.Join(t.TempDir(), "lake.dump")

	base := liveHeap()
	dumping := &heap{}
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, dump.Write(ctx, s.Graveler, "lake", "test", countingWriter{f, dumping}))
	require.NoError(t, f.Close())

	loading := &heap{}
	f, err = os.Open(path)
	require.NoError(t, err)
	_, err = dump.Load(ctx, s.Graveler, "copy", countingReader{f, loading}, dump.LoadParams{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	left := liveHeap()
	t.Logf("%d commits: dump %d KiB, load %d KiB, of which %d KiB are left", n, (dumping.largest-base)>>10, (loading.largest-base)>>10, (left-base)>>10)
	require.Less(t, dumping.largest, base+slack)
	require.Less(t, loading.largest, left+slack)
	runtime.KeepAlive(s)
}
