// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// entry is number i of a table of a realistic kind: a path, a hash, and about 150 bytes about an object.
func entry(i int) graveler.Entry {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d", i))
	return graveler.Entry{
		Key: fmt.Appendf(nil, "tables/events/day=%03d/part-%05d-%x.parquet", i/1000, i%1000, sum[:4]),
		Value: &graveler.Value{
			Identity: sum[:],
			Data:     fmt.Appendf(nil, "data/gk3v0hc7ki9s6q2b/%x|%x|%d|application/octet-stream|x-amz-meta-mtime|%d", sum[4:14], sum[16:], i*7919, 1700000000+i),
		},
	}
}

func entries(n int) *counted { return &counted{n: n, entry: entry} }

// large writes n entries with the shapes of format version 1.
func large(t testing.TB, s *Store, n int) graveler.MetaRangeID {
	tree, err := s.Apply(t.Context(), ns, s.EmptyTree(), entries(n))
	require.NoError(t, err)
	return tree
}

// one is a change of entry i.
func one(i int, identity string) graveler.Iterator[graveler.Entry] {
	return contents{string(entry(i).Key): identity}.iterator()
}

// deep makes a tree of several levels under counted storage, and an otherwise equal one with one other entry.
func deep(t *testing.T) (s *Store, counter *blocktest.Counter, c contents, left, right graveler.MetaRangeID) {
	s, counter = newStore(t, shapes{ranges: shape{bits: 10, max: 4 << 10}, metaranges: shape{bits: 11, max: 8 << 10}})
	c = contents{}
	for i := range 20_000 {
		c[fmt.Sprintf("key%06d", i)] = "v000"
	}
	left = write(t, s, c)
	right = apply(t, s, left, contents{"key012345": "v001"})
	require.GreaterOrEqual(t, height(t, s, left), 3)
	return s, counter, c, left, right
}

func TestOneChangeReadsAndWritesOneFilePerLevel(t *testing.T) {
	s, counter, c, left, right := deep(t)
	files := height(t, s, left) + 1
	for _, k := range []string{"key000000", "key012345", "key019999"} {
		s = reopened(t, s)
		counter.Reset()
		apply(t, s, left, contents{k: "v002"})
		n := counter.Counts()
		require.Equal(t, files, n.Get.Calls, "files read for %s", k)
		require.Zero(t, n.GetRange.Calls)
		require.Equal(t, files, n.Put.Calls, "files written")
		require.Equal(t, 1, n.Sync.Calls)
		require.Equal(t, files, n.Sync.Files)
	}
	// An insertion and a deletion move the cuts of the nodes they fall into, which seldom moves the next cut too.
	counter.Reset()
	changes := 0
	for i := 50; i < 20_000; i += 400 {
		apply(t, s, left, contents{fmt.Sprintf("key%06dx", i): "v002"})
		apply(t, s, left, contents{fmt.Sprintf("key%06d", i): ""})
		changes += 2
	}
	per := float64(counter.Counts().Put.Calls) / float64(changes)
	t.Logf("%.2f files written per insertion or deletion in a tree of %d levels", per, files)
	require.Less(t, per, 1.5*float64(files))
	require.NotEqual(t, left, right)
	require.Equal(t, left, apply(t, s, right, contents{"key012345": c["key012345"]}))
}

func TestWhatExistsIsNotWrittenAgain(t *testing.T) {
	s, counter, c, left, _ := deep(t)
	counter.Reset()
	require.Equal(t, left, write(t, s, c))
	n := counter.Counts()
	require.Zero(t, n.Put.Calls)
	require.Zero(t, n.Refresh.Calls)
	require.Equal(t, n.Stat.Files, n.Sync.Files, "but it is made durable")

	counter.Reset()
	now := s.now
	s.now = func() time.Time { return now().Add(refreshAfter + time.Minute) }
	write(t, s, c)
	require.Equal(t, n.Stat.Files, counter.Counts().Refresh.Files, "and made young again when it is old")
	require.Zero(t, counter.Counts().Put.Calls)
}

func TestDiffReadsTheFilesThatDiffer(t *testing.T) {
	s, counter, _, left, right := deep(t)
	s = reopened(t, s)
	counter.Reset()
	it := s.Diff(t.Context(), ns, left, right)
	require.True(t, it.Next())
	require.Equal(t, "key012345", string(it.Item().Key))
	require.False(t, it.Next())
	require.NoError(t, it.Close())
	require.Equal(t, 2*(height(t, s, left)+1), counter.Counts().Get.Calls)
	require.Zero(t, counter.Counts().GetRange.Calls)

	counter.Reset()
	it = reopened(t, s).Diff(t.Context(), ns, left, left)
	require.False(t, it.Next())
	require.NoError(t, it.Close())
	require.Zero(t, counter.Counts())
}

func TestNothingIsReadBeforeNextAndNothingForNoChanges(t *testing.T) {
	s, counter, _, left, _ := deep(t)
	s = reopened(t, s)
	counter.Reset()
	it := s.Scan(t.Context(), ns, left)
	it.SeekGE(graveler.Key("key000100"))
	require.NoError(t, it.Close())
	require.Zero(t, counter.Counts())
	require.Equal(t, left, apply(t, s, left, nil))
	require.Equal(t, s.EmptyTree(), write(t, s, nil))
	require.Equal(t, s.EmptyTree(), write(t, s, contents{"a": ""}))
	require.Zero(t, counter.Counts().Put.Calls)
}

func TestSeekPastAnyPrefixReadsAFewBlocks(t *testing.T) {
	s, counter := newStore(t)
	big := &counted{n: 100_000, entry: func(i int) graveler.Entry {
		e := entry(i)
		if i == 99_999 {
			e.Key = graveler.Key("u/last")
		}
		return e
	}}
	tree, err := s.Apply(t.Context(), ns, s.EmptyTree(), big)
	require.NoError(t, err)
	s = reopened(t, s)
	it := s.Scan(t.Context(), ns, tree)
	require.True(t, it.Next())
	counter.Reset()
	it.SeekGE(graveler.Key("tables0")) // behind everything that begins with "tables/"
	require.True(t, it.Next())
	require.Equal(t, "u/last", string(it.Item().Key))
	n := counter.Counts()
	require.LessOrEqual(t, n.GetRange.Calls, 2, "footer with index, and a block")
	require.Zero(t, n.Get.Calls, "the root is at hand")
	require.Less(t, n.GetRange.Bytes, int64(64<<10))

	it.SeekGE(entry(0).Key)
	require.True(t, it.Next())
	counter.Reset()
	for i := range 20 {
		it.SeekGE(entry(19 - i).Key)
		require.True(t, it.Next())
		require.Equal(t, string(entry(19-i).Key), string(it.Item().Key))
	}
	require.Zero(t, counter.Counts(), "within a block")
	require.NoError(t, it.Close())
}

// Who seeks from block to block, as a listing of directories does, reads each file once, and nothing when he comes again.
func TestSeeksFromBlockToBlockReadAFileOnce(t *testing.T) {
	s, counter := newStore(t)
	const n, step = 20_000, 50
	tree := large(t, s, n)
	s = reopened(t, s)
	hop := func() {
		it := s.Scan(t.Context(), ns, tree)
		for i := 0; i < n; i += step {
			it.SeekGE(entry(i).Key)
			require.True(t, it.Next())
			require.Equal(t, entry(i), it.Item().Clone())
		}
		require.NoError(t, it.Close())
	}
	counter.Reset()
	hop()
	first := counter.Counts()
	require.Greater(t, first.Get.Calls, 1, "a file is read as a whole where a block of it after the other is")
	require.LessOrEqual(t, first.Get.Calls, n/1000)
	for range 2 { // what was read before it was known that all would be
		hop()
	}
	counter.Reset()
	hop()
	require.Zero(t, counter.Counts().Get.Calls)
	require.Zero(t, counter.Counts().GetRange.Calls)
	// A walk in between reads past the cache, and leaves it as it is.
	it := s.Scan(t.Context(), ns, tree)
	for it.Next() {
	}
	require.NoError(t, it.Close())
	counter.Reset()
	hop()
	require.Zero(t, counter.Counts().Get.Calls)
}

func TestGetReadsOneFilePerLevelAndThenNothing(t *testing.T) {
	s, counter, c, left, _ := deep(t)
	s = reopened(t, s)
	counter.Reset()
	for range 2 {
		v, err := s.Get(t.Context(), ns, left, graveler.Key("key001234"))
		require.NoError(t, err)
		require.Equal(t, value(c["key001234"]), v)
		n := counter.Counts()
		require.Equal(t, height(t, s, left), n.Get.Calls)
		require.LessOrEqual(t, n.GetRange.Calls, 2)
	}
}

func TestOneFetchServesAllWhoWait(t *testing.T) {
	s, counter, _, left, _ := deep(t)
	s = reopened(t, s)
	counter.Reset()
	var g errgroup.Group
	for range 50 {
		g.Go(func() error {
			_, err := s.Get(t.Context(), ns, left, graveler.Key("key001234"))
			return err
		})
	}
	require.NoError(t, g.Wait())
	require.Equal(t, height(t, s, left), counter.Counts().Get.Calls)
	require.LessOrEqual(t, counter.Counts().GetRange.Calls, 2)
}

// liveHeap is what is reachable, in bytes.
func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// sampled gives n entries that cost little to make, and notes the largest live heap above base at some points on the way.
func sampled(n int, identity byte, base int64, largest *int64) *counted {
	v := graveler.Value{Identity: bytes.Repeat([]byte{identity}, 32), Data: make([]byte, 150)}
	var key []byte
	return &counted{
		n: n,
		entry: func(i int) graveler.Entry {
			key = strconv.AppendInt(append(key[:0], "tables/events/part-"...), int64(10_000_000+i), 10)
			binary.BigEndian.PutUint64(v.Identity, uint64(i))
			binary.BigEndian.PutUint64(v.Data, uint64(i)*0x9e3779b97f4a7c15)
			return graveler.Entry{Key: key, Value: &v}
		},
		each: func(i int) { sample(i, n, base, largest) },
	}
}

func sample(i, n int, base int64, largest *int64) {
	if i%(n/8) == n/16 {
		*largest = max(*largest, liveHeap()-base)
	}
}

// largestHeaps applies n entries, applies n changes to them, scans the tree and compares the two.
func largestHeaps(t *testing.T, n int) (apply, scan, diff int64) {
	storage, err := local.OpenDir(t.TempDir(), block.OpenOptions{})
	require.NoError(t, err)
	s, err := New(Config{
		Storage:    func(context.Context, string) (block.Storage, error) { return storage, nil },
		CacheBytes: 4 << 20, Writers: 2,
	})
	require.NoError(t, err)
	base := liveHeap()
	tree, err := s.Apply(t.Context(), ns, s.EmptyTree(), sampled(n, 1, base, &apply))
	require.NoError(t, err)
	other, err := s.Apply(t.Context(), ns, tree, sampled(n, 2, base, &apply))
	require.NoError(t, err)
	found := 0
	it := s.Scan(t.Context(), ns, tree)
	for ; it.Next(); found++ {
		sample(found, n, base, &scan)
	}
	require.NoError(t, it.Close())
	require.Equal(t, n, found)
	found = 0
	d := s.Diff(t.Context(), ns, tree, other)
	for ; d.Next(); found++ {
		sample(found, n, base, &diff)
	}
	require.NoError(t, d.Close())
	require.Equal(t, n, found)
	require.NoError(t, s.Close())
	require.NoError(t, storage.Close())
	return apply, scan, diff
}

func TestMemoryDoesNotGrowWithEntries(t *testing.T) {
	const few, many = 100_000, 1_000_000
	applyFew, scanFew, diffFew := largestHeaps(t, few)
	applyMany, scanMany, diffMany := largestHeaps(t, many)
	t.Logf("live heap in KiB of %d and of %d entries: apply %d, %d; scan %d, %d; diff %d, %d", few, many,
		applyFew>>10, applyMany>>10, scanFew>>10, scanMany>>10, diffFew>>10, diffMany>>10)
	const slack = 12 << 20 // of which what is in flight at a sample is a matter of chance
	require.Less(t, applyMany, applyFew+slack)
	require.Less(t, scanMany, scanFew+slack)
	require.Less(t, diffMany, diffFew+slack)
}
