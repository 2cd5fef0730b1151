// SPDX-License-Identifier: Apache-2.0

package moraine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// generated yields n entries below a prefix, in an order that is none, and calls at with each number.
func generated(prefix string, n int, at func(i int)) iter.Seq2[graveler.Entry, error] {
	const step = 1_000_003 // a prime, so that every entry comes once
	return func(yield func(graveler.Entry, error) bool) {
		for i := range n {
			at(i)
			k := i * step % n
			v := graveler.Value{Identity: fmt.Appendf(nil, "%032d", k), Data: make([]byte, 150)}
			if !yield(graveler.Entry{Key: fmt.Appendf(nil, "%spart-%09d", prefix, k), Value: &v}, nil) {
				return
			}
		}
	}
}

// largestHeapOfImport imports n entries into a branch that has as many others, and returns the largest live heap.
func largestHeapOfImport(t *testing.T, n, sortMemory int) int64 {
	ctx := context.Background()
	dir := t.TempDir()
	files, err := local.OpenDir(dir+"/blocks", block.OpenOptions{})
	require.NoError(t, err)
	heap := &heapSamples{}
	s := open(t, moraine.Options{Store: "bolt:" + dir + "/meta.db", BlockStorage: &samplingPuts{Storage: files, heap: heap, every: 1 + n/25_000}, CacheBytes: 4 << 20})
	_, err = s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	p := graveler.ImportParams{SortMemory: sortMemory, TempDir: dir}
	_, err = s.Import(ctx, "lake", "main", generated("m/", n, func(int) {}), p)
	require.NoError(t, err)

	heap.base, heap.largest = liveHeap(), 0
	p.Prefixes = []graveler.Key{graveler.Key("a/"), graveler.Key("z/")}
	half := func(prefix string) iter.Seq2[graveler.Entry, error] {
		return generated(prefix, n/2, func(i int) {
			if i%(n/10) == n/20 {
				heap.take()
			}
		})
	}
	_, err = s.Import(ctx, "lake", "main", func(yield func(graveler.Entry, error) bool) {
		for _, prefix := range []string{"z/", "a/"} {
			for e, err := range half(prefix) {
				if !yield(e, err) {
					return
				}
			}
		}
	}, p)
	require.NoError(t, err)
	found := 0
	for _, err := range s.List(ctx, "lake", "main@", graveler.ListOptions{}) {
		require.NoError(t, err)
		found++
	}
	require.Equal(t, 2*n, found)
	require.NoError(t, s.Close())
	require.NoError(t, files.Close())
	return heap.largest
}

func TestMemoryOfAnImportDoesNotGrowWithEntries(t *testing.T) {
	if os.Getenv("MORAINE_NIGHTLY") != "" {
		largest := largestHeapOfImport(t, 5_000_000, 0)
		t.Logf("live heap in KiB of 5,000,000 entries: %d", largest>>10)
		require.Less(t, largest, int64(256<<20))
	}
	const few, many = 10_000, 100_000
	heapFew, heapMany := largestHeapOfImport(t, few, 1<<20), largestHeapOfImport(t, many, 1<<20)
	t.Logf("live heap in KiB of %d and of %d entries: %d, %d", few, many, heapFew>>10, heapMany>>10)
	require.Less(t, heapMany, heapFew+12<<20) // the entries themselves take more
}

// reads counts what is read of files.
type reads struct {
	block.Storage
	n atomic.Int64
}

func (r *reads) Get(ctx context.Context, name string) ([]byte, error) {
	r.n.Add(1)
	return r.Storage.Get(ctx, name)
}

func (r *reads) GetRange(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	r.n.Add(1)
	return r.Storage.GetRange(ctx, name, offset, length)
}

// A small import into a large branch reads where it falls, with prefixes and without.
func TestAnImportReadsWhereItDiffers(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	files, err := local.OpenDir(dir+"/blocks", block.OpenOptions{})
	require.NoError(t, err)
	counter := &reads{Storage: files}
	s := open(t, moraine.Options{Store: "bolt:" + dir + "/meta.db", BlockStorage: counter})
	_, err = s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	const n = 50_000 // about fifteen ranges
	_, err = s.Import(ctx, "lake", "main", generated("m/", n, func(int) {}), graveler.ImportParams{})
	require.NoError(t, err)
	for _, prefixes := range [][]graveler.Key{nil, {graveler.Key("m/part-0000255")}} {
		counter.n.Store(0)
		v := entryValue("new")
		_, err = s.Import(ctx, "lake", "main", func(yield func(graveler.Entry, error) bool) {
			yield(graveler.Entry{Key: graveler.Key("m/part-000025500"), Value: &v}, nil)
		}, graveler.ImportParams{Prefixes: prefixes, CommitParams: graveler.CommitParams{AllowEmpty: true}})
		require.NoError(t, err)
		require.Less(t, counter.n.Load(), int64(10))
	}
	found := 0
	for _, err := range s.List(ctx, "lake", "main@", graveler.ListOptions{}) {
		require.NoError(t, err)
		found++
	}
	require.Equal(t, n-99, found)
	require.NoError(t, s.Close())
	require.NoError(t, files.Close())
}

// importerDir is the variable that tells this program, run again by the test below, to import into the store in the directory that it names.
const importerDir = "MORAINE_TEST_IMPORTER"

const importerEntries = 2_000

// importer replaces the same entries by newer ones for ever, and prints the text of all that was acknowledged.
func importer(dir string) error {
	ctx := context.Background()
	s, err := moraine.Open(ctx, onDisk(dir))
	if err != nil {
		return err
	}
	for run := time.Now().UnixNano(); ; run++ {
		v := entryValue(fmt.Sprint(run))
		_, err := s.Import(ctx, "lake", "main", func(yield func(graveler.Entry, error) bool) {
			for i := range importerEntries {
				if !yield(graveler.Entry{Key: fmt.Appendf(nil, "p/%d/%d", i, run%2), Value: &v}, nil) {
					return
				}
			}
		}, graveler.ImportParams{Prefixes: []graveler.Key{graveler.Key("p/")}, SortMemory: 64 << 10, TempDir: dir})
		if err != nil {
			return err
		}
		fmt.Println(run)
	}
}

// A process that imports is killed at any point. The branch has all of one import and nothing of another, and no older one than
// was acknowledged; no bytes stay behind in the directory for temporary files.
func TestKilledImportsAreAllOrNothing(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := open(t, onDisk(dir))
	_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	require.NoError(t, s.Close())

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 6 {
		acknowledged := killImporter(t, dir, 1+random.IntN(4), time.Duration(random.IntN(20))*time.Millisecond)
		s := open(t, onDisk(dir))
		found := map[string]int{}
		for l, err := range s.List(ctx, "lake", "main", graveler.ListOptions{}) {
			require.NoError(t, err)
			found[string(l.Value.Data)]++
		}
		require.Len(t, found, 1)
		for text, n := range found {
			require.Equal(t, importerEntries, n)
			require.GreaterOrEqual(t, text, acknowledged)
		}
		require.NoError(t, s.Close())
		left, err := filepath.Glob(filepath.Join(dir, "moraine-sort-*"))
		require.NoError(t, err)
		for _, path := range left { // killed between making the file and taking its name away
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Zero(t, info.Size())
		}
	}
}

// killImporter runs an importer until it has printed a number of lines, kills it after a while, and returns the last line.
func killImporter(t *testing.T, dir string, lines int, after time.Duration) (last string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), importerDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		last = line[:len(line)-1]
		if lines--; lines == 0 {
			kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) // it is dead already where this fails
			defer kill.Stop()
		}
	}
	exit := (*exec.ExitError)(nil)
	require.True(t, errors.As(cmd.Wait(), &exit), "killed")
	require.LessOrEqual(t, lines, 0, "the importer ended by itself")
	return last
}
