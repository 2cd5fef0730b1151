// SPDX-License-Identifier: Apache-2.0

package fileimport

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// largestHeap imports n files and returns the largest live heap at a batch, above what there was at the start.
func largestHeap(t *testing.T, n int) int64 {
	dir := t.TempDir()
	for i := range n {
		sub := filepath.Join(dir, fmt.Sprintf("%03d", i/200))
		if i%200 == 0 {
			require.NoError(t, os.Mkdir(sub, 0o700))
		}
		require.NoError(t, os.WriteFile(filepath.Join(sub, fmt.Sprintf("file-%06d", i)), nil, 0o600))
	}
	base, largest := heap(), int64(0)
	im := Import{
		Dir:     dir,
		Stage:   func(context.Context, []graveler.Entry) error { largest = max(largest, heap()-base); return nil },
		Failed:  func(path string, problem error) { t.Errorf("%s: %v", path, problem) },
		Counted: func(int, int64) {}, Skipped: func(string, string) {}, Progress: func(int) {},
	}
	report, err := im.Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, n, report.Files)
	return largest
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestMemoryDoesNotGrowWithFiles(t *testing.T) {
	few, many := 1_000, 10_000
	if os.Getenv("MORAINE_NIGHTLY") != "" {
		few, many = 100_000, 1_000_000
	}
	heapFew, heapMany := largestHeap(t, few), largestHeap(t, many)
	t.Logf("live heap in KiB of %d and of %d files: %d, %d", few, many, heapFew>>10, heapMany>>10)
	require.Less(t, heapMany, heapFew+6<<20)
}
