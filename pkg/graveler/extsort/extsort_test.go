// SPDX-License-Identifier: Apache-2.0

package extsort

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type record struct{ key, value string }

// expected is what sorting comes to, in the plainest form.
func expected(records []record) (sorted []record) {
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b record) int { return cmp.Compare(a.key, b.key) })
	for i, r := range records {
		if i+1 == len(records) || records[i+1].key != r.key {
			sorted = append(sorted, r)
		}
	}
	return sorted
}

type fataler interface {
	require.TestingT
	Helper()
}

func add(t fataler, s *Sorter, records []record) {
	t.Helper()
	for _, r := range records {
		key, value := []byte(r.key), []byte(r.value)
		require.NoError(t, s.Add(key, value))
		clear(key) // the sorter has copies
		clear(value)
	}
}

func collect(t fataler, s *Sorter) (records []record) {
	t.Helper()
	it, err := s.Sort(context.Background())
	require.NoError(t, err)
	for it.Next() {
		records = append(records, record{string(it.Key()), string(it.Value())})
	}
	require.NoError(t, it.Err())
	require.False(t, it.Next())
	return records
}

func TestRecordsComeInOrderAndTheLastOfAKeyCounts(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.StringMatching(`[ab]{0,4}`), rapid.StringN(0, 40, 40))
		records := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) record {
			return record{key.Draw(t, "key"), rapid.StringN(0, 60, 60).Draw(t, "value")}
		}), 0, 400).Draw(t, "records")
		if rapid.Bool().Draw(t, "in order") {
			slices.SortStableFunc(records, func(a, b record) int { return cmp.Compare(a.key, b.key) })
		}
		s := New(Config{Memory: rapid.SampledFrom([]int{1, 200, 2000, 1 << 20}).Draw(t, "memory"), Dir: dir})
		add(t, s, records)
		require.Equal(t, expected(records), collect(t, s))
		require.Equal(t, expected(records), collect(t, s), "once more")
		require.NoError(t, s.Close())
	})
}

// shuffled makes n records with some keys twice and more, some of them large.
func shuffled(n int, seed uint64) (records []record) {
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		value := fmt.Sprint("value ", i)
		if i%500 == 0 {
			value += string(make([]byte, 300_000))
		}
		records = append(records, record{fmt.Sprintf("a/long/prefix/%09d", random.IntN(n)), value})
	}
	return records
}

func TestManyRunsAreMergedInPasses(t *testing.T) {
	records := shuffled(20_000, 1)
	s := New(Config{Memory: 1 << 10, Dir: t.TempDir()})
	add(t, s, records)
	require.NoError(t, s.written())
	require.Greater(t, len(s.spilled.runs), fanIn*fanIn/8)
	require.Equal(t, expected(records), collect(t, s))
	require.LessOrEqual(t, len(s.spilled.runs), fanIn)
	require.NoError(t, s.Close())
}

func TestRecordsInOrderMakeOneRun(t *testing.T) {
	records := expected(shuffled(5_000, 2))
	s := New(Config{Memory: 4 << 10, Dir: t.TempDir()})
	add(t, s, records)
	require.NoError(t, s.written())
	require.Len(t, s.spilled.runs, 1)
	require.Equal(t, records, collect(t, s))
	require.Len(t, s.spilled.runs, 1)
	require.NoError(t, s.Close())
}

func TestFewRecordsNeverLeaveMemory(t *testing.T) {
	s := New(Config{Dir: "/does/not/exist"})
	records := shuffled(5_000, 3)
	add(t, s, records)
	require.Equal(t, expected(records), collect(t, s))
	require.NoError(t, s.Close())
}

func TestTheFileIsForItsOwnerAndGoesAway(t *testing.T) {
	dir := t.TempDir()
	s := New(Config{Memory: 1 << 10, Dir: dir})
	add(t, s, shuffled(1_000, 4))
	info, err := s.spilled.file.(tempFile).Stat()
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	if runtime.GOOS == "linux" {
		require.Empty(t, names(t, dir))
	}
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.Empty(t, names(t, dir))
	require.Error(t, s.Add([]byte("k"), nil))

	// As where it must keep its name.
	f, err := os.CreateTemp(dir, "named")
	require.NoError(t, err)
	require.NoError(t, tempFile{f, true}.Close())
	require.Empty(t, names(t, dir))
}

func names(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// faulty is a file in memory, with faults.
type faulty struct {
	data   []byte
	room   int // bytes that can be written; -1: any number
	closed *int
}

var errFull = errors.New("no space left on device")

func (f *faulty) Write(p []byte) (int, error) {
	if f.room >= 0 && len(f.data)+len(p) > f.room {
		n := f.room - len(f.data)
		f.data = append(f.data, p[:n]...)
		return n, errFull
	}
	f.data = append(f.data, p...)
	return len(p), nil
}

func (f *faulty) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(f.data).ReadAt(p, at)
}

func (f *faulty) Close() error { *f.closed++; return nil }

// sortOn sorts records on a file that damage has treated before it is read.
func sortOn(t *testing.T, f *faulty, records []record, damage func()) (sorted []record, err error) {
	opened, closed := 0, 0
	f.closed = &closed
	s := New(Config{Memory: 64 << 10})
	s.newFile = func() (file, error) { opened++; return f, nil }
	defer func() {
		require.NoError(t, s.Close())
		require.Equal(t, opened, closed)
	}()
	for _, r := range records {
		if err := s.Add([]byte(r.key), []byte(r.value)); err != nil {
			return nil, err
		}
	}
	if s.spilled != nil && len(s.buffer.items) > 0 {
		if err := s.flush(); err != nil {
			return nil, err
		}
	}
	if err := s.written(); err != nil {
		return nil, err
	}
	damage()
	it, err := s.Sort(t.Context())
	if err != nil {
		return nil, err
	}
	for it.Next() {
		sorted = append(sorted, record{string(it.Key()), string(it.Value())})
	}
	return sorted, it.Err()
}

// Whatever bit of the file changes, or how short it becomes: an error, never other records or fewer.
func TestADamagedFileIsAnError(t *testing.T) {
	records := shuffled(1_500, 5)
	whole := &faulty{room: -1}
	sorted, err := sortOn(t, whole, records, func() {})
	require.NoError(t, err)
	require.Equal(t, expected(records), sorted)
	random := rand.New(rand.NewPCG(6, 0))
	for i := range 60 {
		f := &faulty{room: -1}
		_, err := sortOn(t, f, records, func() {
			at := random.IntN(len(f.data))
			if i < 8 { // the first header
				at = i
			}
			if i%2 == 0 {
				f.data[at] ^= 1 << random.IntN(8)
			} else {
				f.data = f.data[:at]
			}
		})
		require.ErrorIs(t, err, ErrDamaged)
	}
}

func TestAFullDiskIsAnError(t *testing.T) {
	records := shuffled(4_000, 7)
	whole := &faulty{room: -1}
	_, err := sortOn(t, whole, records, func() {})
	require.NoError(t, err)
	for _, room := range []int{0, 5, len(whole.data) / 2, len(whole.data) - 1} {
		_, err := sortOn(t, &faulty{room: room}, records, func() {})
		require.ErrorIs(t, err, errFull)
	}

	// No room for a file, and none for the file of a pass.
	s := New(Config{Memory: 1, Dir: "/does/not/exist"})
	add(t, s, records[:1])
	require.ErrorIs(t, s.Add([]byte("k"), nil), os.ErrNotExist)
	require.NoError(t, s.Close())
	for _, second := range []func(closed *int) (file, error){
		func(*int) (file, error) { return nil, errFull },
		func(closed *int) (file, error) { return &faulty{room: 100, closed: closed}, nil },
	} {
		s = New(Config{Memory: 1 << 10})
		opened, closed := 0, 0
		s.newFile = func() (file, error) {
			if opened++; opened == 1 {
				return &faulty{room: -1, closed: &closed}, nil
			}
			return second(&closed)
		}
		add(t, s, records)
		_, err = s.Sort(t.Context())
		require.ErrorIs(t, err, errFull)
		require.NoError(t, s.Close())
		require.GreaterOrEqual(t, closed, opened-1)
	}
}

// What goes wrong while others are added is told at the latest when the sorter is closed, and Close waits for it.
func TestAnErrorBesideTheAddingIsTold(t *testing.T) {
	records := shuffled(400, 9)[1:] // without the first, which is large
	for name, told := range map[string]func(s *Sorter) error{
		"add":   func(s *Sorter) error { return s.Add(bytes.Repeat([]byte("k"), 5<<10), nil) },
		"sort":  func(s *Sorter) error { _, err := s.Sort(t.Context()); return err },
		"close": (*Sorter).Close,
	} {
		t.Run(name, func(t *testing.T) {
			closed := 0
			f := &faulty{room: 100, closed: &closed}
			s := New(Config{Memory: 8 << 10})
			s.newFile = func() (file, error) { return f, nil }
			for i := 0; s.writing == nil; i++ {
				require.NoError(t, s.Add([]byte(records[i].key), []byte(records[i].value)))
			}
			require.ErrorIs(t, told(s), errFull)
			require.Len(t, f.data, 100)
			require.NoError(t, s.Close())
			require.Equal(t, 1, closed)
		})
	}
}

func TestAPassEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	s := New(Config{Memory: 1 << 10, Dir: dir})
	add(t, s, shuffled(20_000, 8))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Sort(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Close())
	require.Empty(t, names(t, dir))
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestMemoryIsBounded(t *testing.T) {
	const memory, n = 2 << 20, 100_000
	base, largest := liveHeap(), int64(0)
	sample := func(i int) {
		if i%20_000 == 0 {
			largest = max(largest, liveHeap()-base)
		}
	}
	s := New(Config{Memory: memory, Dir: t.TempDir()})
	random := rand.New(rand.NewPCG(9, 0))
	var key, value [64]byte
	for i := range n {
		for j := range key {
			key[j] = byte(random.Uint32())
		}
		require.NoError(t, s.Add(key[:], value[:]))
		sample(i)
	}
	it, err := s.Sort(t.Context())
	require.NoError(t, err)
	found := 0
	for it.Next() {
		sample(found)
		found++
	}
	require.NoError(t, it.Err())
	require.Equal(t, n, found)
	require.Less(t, largest, int64(4*memory))
	require.NoError(t, s.Close())
}

func BenchmarkSort(b *testing.B) {
	const n = 500_000
	for name, in := range map[string][]record{"shuffled": nil, "in order": nil} {
		for i := range n {
			identity := sha256.Sum256(fmt.Append(nil, i))
			in = append(in, record{fmt.Sprintf("tables/events/part-%09d", i), fmt.Sprintf("%ss3://bucket/tables/events/part-%09d %x", identity, i, identity[:16])})
		}
		if name == "shuffled" {
			rand.New(rand.NewPCG(1, 0)).Shuffle(n, func(i, j int) { in[i], in[j] = in[j], in[i] })
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s := New(Config{Memory: 8 << 20, Dir: b.TempDir()})
				add(b, s, in)
				it, err := s.Sort(b.Context())
				require.NoError(b, err)
				for it.Next() {
				}
				require.NoError(b, it.Err())
				b.ReportMetric(float64(s.spilled.end)/n, "file-bytes/record")
				require.NoError(b, s.Close())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n/float64(b.N), "ns/record")
		})
	}
}
