// SPDX-License-Identifier: Apache-2.0

package kv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
)

// pages serves n numbered keys and records what was asked for.
type pages struct {
	n        int
	failAt   int // fail the request with this number; 0 is none
	err      error
	requests []kv.PageRequest
}

func (p *pages) read(_ context.Context, r kv.PageRequest) (page []kv.Entry, more bool, err error) {
	p.requests = append(p.requests, r)
	if len(p.requests) == p.failAt {
		return nil, false, p.err
	}
	for i := range p.n {
		key := fmt.Appendf(nil, "%06d", i)
		if bytes.Compare(key, r.From) < 0 || r.End != nil && bytes.Compare(key, r.End) >= 0 {
			continue
		}
		if len(page) == r.Limit {
			return page, true, nil
		}
		page = append(page, kv.Entry{Key: key, Value: []byte("v")})
	}
	return page, false, nil
}

func (p *pages) limits() (limits []int) {
	for _, r := range p.requests {
		limits = append(limits, r.Limit)
	}
	return limits
}

func count(it kv.Iterator) (n int) {
	for it.Next() {
		n++
	}
	return n
}

func TestPagesGrow(t *testing.T) {
	p := &pages{n: 20_000}
	it := kv.NewIterator(t.Context(), part, kv.ScanOptions{BatchSize: 10}, p.read)
	require.Empty(t, p.requests, "nothing is read before it is asked for")
	require.Equal(t, 20_000, count(it))
	require.NoError(t, it.Close())
	require.Equal(t, []int{10, 40, 160, 640, 2560, 4096, 4096, 4096, 4096, 4096}, p.limits())

	p = &pages{n: 100}
	it = kv.NewIterator(t.Context(), part, kv.ScanOptions{BatchSize: 1 << 40}, p.read)
	require.Equal(t, 100, count(it))
	require.Equal(t, []int{4096}, p.limits())
}

func TestAnErrorInMidScanSurfaces(t *testing.T) {
	for failAt := 1; failAt <= 4; failAt++ {
		p := &pages{n: 1000, failAt: failAt, err: errors.New("connection lost")}
		it := kv.NewIterator(t.Context(), part, kv.ScanOptions{BatchSize: 2}, p.read)
		n := count(it)
		require.Less(t, n, 1000)
		require.False(t, it.Next())
		it.SeekGE([]byte("000001"))
		require.False(t, it.Next(), "a seek does not heal")
		require.ErrorIs(t, it.Err(), p.err)
		require.ErrorIs(t, it.Close(), p.err)
		require.ErrorIs(t, it.Err(), p.err)
		require.EqualError(t, it.Close(), "scan p: connection lost")
		require.Len(t, p.requests, failAt)
	}
}

func TestASeekWithinThePageReadsNothing(t *testing.T) {
	p := &pages{n: 1000}
	it := kv.NewIterator(t.Context(), part, kv.ScanOptions{BatchSize: 100}, p.read)
	require.True(t, it.Next())
	it.SeekGE([]byte("000050"))
	require.True(t, it.Next())
	require.Equal(t, "000050", string(it.Key()))
	require.Len(t, p.requests, 1)
	it.SeekGE([]byte("000500"))
	require.True(t, it.Next())
	require.Equal(t, "000500", string(it.Key()))
	require.Equal(t, []int{100, 4}, p.limits(), "after a far seek a page is twice what was taken before it")
	it.SeekGE([]byte("000400"))
	require.True(t, it.Next())
	require.Equal(t, "000400", string(it.Key()))
}

func TestTheCallerMayChangeWhatItGot(t *testing.T) {
	p := &pages{n: 100}
	it := kv.NewIterator(t.Context(), part, kv.ScanOptions{BatchSize: 3}, p.read)
	n := 0
	for it.Next() {
		require.Equal(t, fmt.Sprintf("%06d", n), string(it.Key()))
		for i := range it.Key() {
			it.Key()[i] = 0xff
		}
		n++
	}
	require.Equal(t, 100, n)
	require.NoError(t, it.Close())
}

func TestAPrefixBoundsThePages(t *testing.T) {
	for prefix, want := range map[string][]byte{"": nil, "a": []byte("b"), "a\xff": []byte("b"), "\xff\xff": nil, "a\xfe\xff": []byte("a\xff")} {
		p := &pages{}
		it := kv.NewIterator(t.Context(), part, kv.ScanOptions{Prefix: []byte(prefix)}, p.read)
		require.False(t, it.Next())
		require.Equal(t, want, p.requests[0].End, "prefix %q", prefix)
		require.Equal(t, prefix, string(p.requests[0].From))
		require.Equal(t, part, p.requests[0].Partition)
	}
}

// A listing of common prefixes takes one entry after each seek, and should not read many for it.
func TestAScanThatJumpsReadsLittleAfterEachJump(t *testing.T) {
	read := 0
	it := kv.NewIterator(t.Context(), []byte("p"), kv.ScanOptions{}, func(_ context.Context, r kv.PageRequest) ([]kv.Entry, bool, error) {
		page := kv.NewPage(r)
		n := 0
		if len(r.From) > 0 {
			_, err := fmt.Sscanf(string(r.From), "%06d", &n)
			require.NoError(t, err)
		}
		if len(r.From) > 6 { // the successor of a key
			n++
		}
		for ; n < 100_000 && !page.Full(); n++ {
			page.Add(fmt.Appendf(nil, "%06d", n), []byte("v"))
			read++
		}
		return page.Entries(), n < 100_000, nil
	})
	require.True(t, it.Next())
	require.LessOrEqual(t, read, 64)
	for jump := 1; jump < 100; jump++ {
		it.SeekGE(fmt.Appendf(nil, "%06d", 1000*jump))
		require.True(t, it.Next())
		require.Equal(t, fmt.Sprintf("%06d", 1000*jump), string(it.Key()))
	}
	require.LessOrEqual(t, read, 64+2*99)
	for range 10_000 { // what follows is read in pages that grow
		it.Next()
	}
	require.NoError(t, it.Close())
	require.LessOrEqual(t, read, 64+2*99+2*10_000)
}

// A layer with few entries is asked once, however often what lies above it jumps on.
func TestASeekBehindTheEndReadsNothing(t *testing.T) {
	p := &pages{n: 10}
	it := kv.NewIterator(t.Context(), part, kv.ScanOptions{}, p.read)
	for range 10 {
		require.True(t, it.Next())
	}
	require.False(t, it.Next())
	asked := len(p.requests)
	for _, key := range []string{"000010", "9", "000009\x00"} {
		it.SeekGE([]byte(key))
		require.False(t, it.Next())
	}
	require.Len(t, p.requests, asked)
	it.SeekGE([]byte("000009"))
	require.True(t, it.Next())
	require.Equal(t, "000009", string(it.Key()))
	require.NoError(t, it.Close())
}
