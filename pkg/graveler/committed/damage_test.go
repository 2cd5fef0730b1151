// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	"github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// tampered shows one file of a storage changed.
type tampered struct {
	block.Storage
	name string
	data []byte // nil: the file is missing
}

func (s *tampered) Get(ctx context.Context, name string) ([]byte, error) {
	if name != s.name {
		return s.Storage.Get(ctx, name)
	}
	if s.data == nil {
		return nil, fmt.Errorf("get %s: %w", name, block.ErrNotFound)
	}
	return bytes.Clone(s.data), nil
}

func (s *tampered) GetRange(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	if name != s.name {
		return s.Storage.GetRange(ctx, name, offset, length)
	}
	data, err := s.Get(ctx, name)
	if err == nil {
		err = block.CheckRange(int64(len(data)), offset, length)
	}
	if err != nil {
		return nil, err
	}
	return data[offset : offset+length], nil
}

func (s *tampered) Stat(ctx context.Context, name string) (block.Info, error) {
	if name != s.name {
		return s.Storage.Stat(ctx, name)
	}
	data, err := s.Get(ctx, name)
	return block.Info{Name: name, Size: int64(len(data))}, err
}

// sampleTree writes a tree with several levels and gives its files.
func sampleTree(t *testing.T) (storage block.Storage, tree, other graveler.MetaRangeID, files []string) {
	storage = mem.New()
	s := storeOn(t, storage, small)
	c := contents{}
	for i := range 60 {
		c[fmt.Sprintf("key%04d", i)] = "v0"
	}
	tree = write(t, s, c)
	require.GreaterOrEqual(t, height(t, s, tree), 2)
	for info, err := range storage.List(t.Context(), "") {
		require.NoError(t, err)
		files = append(files, info.Name)
	}
	for k := range c {
		c[k] = "v1"
	}
	return storage, tree, write(t, s, c), files
}

// operations are all that read the whole of a tree.
func operations(s *Store, tree, other graveler.MetaRangeID) map[string]func() error {
	return map[string]func() error{
		"scan": func() error { _, err := scanAll(s, tree); return err },
		"get": func() error {
			for i := range 60 {
				if _, err := s.Get(context.Background(), ns, tree, fmt.Appendf(nil, "key%04d", i)); err != nil {
					return err
				}
			}
			return nil
		},
		"diff": func() error {
			it := s.Diff(context.Background(), ns, tree, other)
			for it.Next() {
			}
			return it.Close()
		},
		"apply": func() error {
			c := contents{}
			for i := range 60 {
				c[fmt.Sprintf("key%04d", i)] = "v2"
			}
			_, err := s.Apply(context.Background(), ns, tree, c.iterator())
			return err
		},
	}
}

// requireDamageIsNamed runs operations on a storage where one file is changed.
func requireDamageIsNamed(t *testing.T, bad *tampered, tree, other graveler.MetaRangeID, ops ...string) {
	for _, op := range ops {
		s := storeOn(t, bad, small)
		err := operations(s, tree, other)[op]()
		if !errors.Is(err, graveler.ErrCorrupt) {
			t.Fatalf("%s with a changed %s: %v", op, bad.name, err)
		}
		require.ErrorContains(t, err, ns+"/"+bad.name)
		require.NotErrorIs(t, err, graveler.ErrNotFound)
	}
}

func TestAFlippedByteAnywhereIsAnErrorThatNamesTheFile(t *testing.T) {
	storage, tree, other, files := sampleTree(t)
	flips := 0
	for _, name := range files {
		data, err := storage.Get(t.Context(), name)
		require.NoError(t, err)
		for i := range data {
			bad := bytes.Clone(data)
			bad[i] ^= 1 << (i % 8)
			requireDamageIsNamed(t, &tampered{storage, name, bad}, tree, other, "scan", []string{"get", "diff", "apply"}[i%3])
			flips++
		}
	}
	t.Logf("%d bytes of %d files", flips, len(files))
}

func TestARepairedFileIsReadAgain(t *testing.T) {
	storage := mem.New()
	bad := &tampered{Storage: storage}
	s := storeOn(t, bad)
	tree := large(t, s, 5000)
	for info, err := range storage.List(t.Context(), "") {
		require.NoError(t, err)
		bad.name, bad.data = info.Name, nil
		data, err := storage.Get(t.Context(), info.Name)
		require.NoError(t, err)
		data[10]++ // in the first block
		bad.data = data
		if info.Size > 100_000 {
			break
		}
	}
	_, err := scanAll(s, tree)
	require.ErrorIs(t, err, graveler.ErrCorrupt)
	bad.name = ""
	counter := blocktest.Counting(storage)
	bad.Storage = counter
	c, err := scanAll(s, tree)
	require.NoError(t, err)
	require.Len(t, c, 5000)
	require.Positive(t, counter.Counts().Stat.Calls, "the index was read again")
}

func TestMissingTruncatedForeignAndSwappedFilesAreErrors(t *testing.T) {
	storage, tree, other, files := sampleTree(t)
	for i, name := range files {
		data, err := storage.Get(t.Context(), name)
		require.NoError(t, err)
		swapped, err := storage.Get(t.Context(), files[(i+1)%len(files)])
		require.NoError(t, err)
		for _, bad := range [][]byte{nil, {}, data[:len(data)-1], data[1:], append(bytes.Clone(data), 0), []byte("SQLite format 3"), swapped} {
			requireDamageIsNamed(t, &tampered{storage, name, bad}, tree, other, "scan", "get", "diff", "apply")
		}
	}
}

func TestIDsThatAreNoneAreDamage(t *testing.T) {
	s, counter := newStore(t)
	for _, tree := range []graveler.MetaRangeID{"", "x", "../../etc/passwd"} {
		_, err := s.Get(t.Context(), ns, tree, graveler.Key("k"))
		require.ErrorIs(t, err, graveler.ErrCorrupt)
		_, err = scanAll(s, tree)
		require.ErrorIs(t, err, graveler.ErrCorrupt)
		_, err = s.Apply(t.Context(), ns, tree, contents{}.iterator())
		require.ErrorIs(t, err, graveler.ErrCorrupt)
	}
	require.Zero(t, counter.Counts())
}

func TestARangeIsNoTree(t *testing.T) {
	storage, _, _, files := sampleTree(t)
	s := storeOn(t, storage, small)
	for _, name := range files {
		data, err := storage.Get(t.Context(), name)
		require.NoError(t, err)
		f, err := rangefile.Open(t.Context(), name, rangefile.Bytes(data), int64(len(data)))
		require.NoError(t, err)
		if f.Level == 0 {
			_, err = scanAll(s, graveler.MetaRangeID(f.ID.String()))
			require.ErrorIs(t, err, graveler.ErrCorrupt)
		}
	}
}

func TestBadChangesAreRefused(t *testing.T) {
	s, _ := newStore(t, small)
	tree := write(t, s, contents{"a": "1"})
	long := bytes.Repeat([]byte("k"), rangefile.MaxKey+1)
	failed := errors.New("cannot read")
	for name, c := range map[string]struct {
		changes []graveler.Entry
		end     error
		want    error
	}{
		"empty key":     {[]graveler.Entry{{Value: value("v")}}, nil, graveler.ErrInvalidValue},
		"no identity":   {[]graveler.Entry{{Key: graveler.Key("k"), Value: &graveler.Value{}}}, nil, graveler.ErrInvalidValue},
		"twice":         {[]graveler.Entry{{Key: graveler.Key("k")}, {Key: graveler.Key("k")}}, nil, graveler.ErrInvalidValue},
		"descending":    {[]graveler.Entry{{Key: graveler.Key("k")}, {Key: graveler.Key("j")}}, nil, graveler.ErrInvalidValue},
		"long key":      {[]graveler.Entry{{Key: long}}, nil, graveler.ErrTooLarge},
		"large value":   {[]graveler.Entry{{Key: graveler.Key("k"), Value: &graveler.Value{Identity: []byte("i"), Data: make([]byte, rangefile.MaxValue)}}}, nil, graveler.ErrTooLarge},
		"broken source": {[]graveler.Entry{{Key: graveler.Key("k"), Value: value("v")}}, failed, failed},
	} {
		_, err := s.Apply(t.Context(), ns, tree, &sliceIterator{entries: c.changes, at: -1, err: c.end})
		require.ErrorIs(t, err, c.want, name)
	}
}

// faulty fails calls that write from the n-th on.
type faulty struct {
	block.Storage
	left atomic.Int64
	err  error
}

func (s *faulty) fail() error {
	if s.left.Add(-1) < 0 {
		return s.err
	}
	return nil
}

func (s *faulty) Put(ctx context.Context, name string, data []byte) error {
	if err := s.fail(); err != nil {
		return err
	}
	return s.Storage.Put(ctx, name, data)
}

func (s *faulty) Stat(ctx context.Context, name string) (block.Info, error) {
	if err := s.fail(); err != nil {
		return block.Info{}, err
	}
	return s.Storage.Stat(ctx, name)
}

func (s *faulty) Sync(ctx context.Context, names []string) error {
	if err := s.fail(); err != nil {
		return err
	}
	return s.Storage.Sync(ctx, names)
}

// requireNoGoroutines waits until as few goroutines run as before; those that have done their work may still be on their way out.
func requireNoGoroutines(t *testing.T, before int) {
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("goroutines left:\n%s", buf[:runtime.Stack(buf, true)])
		}
	}
}

func TestFailedWritesAreReportedAndLeaveNoGoroutines(t *testing.T) {
	c := contents{}
	for i := range 200 {
		c[fmt.Sprintf("key%04d", i)] = "v0"
	}
	failed := errors.New("disk full")
	before := runtime.NumGoroutine()
	for n := int64(0); ; n++ {
		storage := &faulty{Storage: mem.New(), err: failed}
		storage.left.Store(n)
		s := storeOn(t, storage, small)
		tree, err := s.Apply(t.Context(), ns, s.EmptyTree(), c.iterator())
		requireNoGoroutines(t, before)
		if err == nil {
			require.Equal(t, canonical(t, small, c), tree)
			require.Greater(t, n, int64(50))
			break
		}
		require.ErrorIs(t, err, failed)
		require.Empty(t, tree)
		storage.left.Store(1 << 30)
		require.Equal(t, canonical(t, small, c), write(t, s, c), "another attempt")
	}
}

func TestCancelledCallsEndAndLeaveNoGoroutines(t *testing.T) {
	s, _, _, left, right := deep(t)
	before := runtime.NumGoroutine()
	for _, stop := range []int{0, 1, 500, 5000} {
		ctx, cancel := context.WithCancel(t.Context())
		at := func(i int) {
			if i >= stop {
				cancel()
			}
		}
		at(0)
		_, err := s.Apply(ctx, ns, s.EmptyTree(), &counted{n: 20_000, entry: entry, each: at})
		require.ErrorIs(t, err, context.Canceled)

		ctx, cancel = context.WithCancel(t.Context())
		it := s.Scan(ctx, ns, left)
		for i := 0; it.Next(); i++ {
			at(i)
		}
		require.ErrorIs(t, it.Close(), context.Canceled)
		require.ErrorIs(t, it.Close(), context.Canceled)

		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		d := s.Diff(ctx, ns, left, right)
		require.False(t, d.Next())
		require.ErrorIs(t, d.Close(), context.Canceled)
		requireNoGoroutines(t, before)
	}
	for i := range 200 { // closed early, also while the next range is on its way
		it := s.Scan(t.Context(), ns, left)
		for range i * 10 {
			require.True(t, it.Next())
		}
		require.NoError(t, it.Close())
		require.False(t, it.Next())
	}
	requireNoGoroutines(t, before)
}

func TestNamespacesAreCheckedAndDropped(t *testing.T) {
	storage := mem.New()
	s := storeOn(t, storage, small)
	require.NoError(t, s.CheckNamespace(t.Context(), ns))
	c := contents{}
	for i := range 100 {
		c[fmt.Sprintf("key%04d", i)] = "v0"
	}
	write(t, s, c)
	require.NoError(t, storage.Put(t.Context(), "below/it", []byte("not ours")))
	for range 2 {
		require.NoError(t, s.Drop(t.Context(), ns))
		var left []string
		for info, err := range storage.List(t.Context(), "") {
			require.NoError(t, err)
			left = append(left, info.Name)
		}
		require.Equal(t, []string{"below/it"}, left)
	}
	require.NoError(t, storage.Close())
	require.ErrorIs(t, s.CheckNamespace(t.Context(), ns), block.ErrClosed)
	require.ErrorIs(t, s.Drop(t.Context(), ns), block.ErrClosed)
}
