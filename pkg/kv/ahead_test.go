// SPDX-License-Identifier: Apache-2.0

package kv_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
)

// slowPages are pages of which one is read at a time, and counts those under way.
type slowPages struct {
	pages
	underWay, most atomic.Int32
	begun          chan string // gets where a page begins, when it does
}

func (p *slowPages) read(ctx context.Context, r kv.PageRequest) ([]kv.Entry, bool, error) {
	p.most.Store(max(p.most.Load(), p.underWay.Add(1)))
	defer p.underWay.Add(-1)
	if p.begun != nil {
		p.begun <- string(r.From)
	}
	return p.pages.read(ctx, r)
}

func ahead(t *testing.T, p *slowPages) kv.Iterator {
	return kv.NewIteratorAhead(t.Context(), part, kv.ScanOptions{BatchSize: 4096}, p.read)
}

func TestALongScanReadsAhead(t *testing.T) {
	p := &slowPages{pages: pages{n: 20_000}}
	it := ahead(t, p)
	require.Empty(t, p.requests, "nothing is read before it is asked for")
	for n := range 20_000 {
		require.True(t, it.Next())
		require.Equal(t, fmt.Sprintf("%06d", n), string(it.Key()))
		for i := range it.Key() {
			it.Key()[i] = 0xff // the memory is the caller's
		}
	}
	require.False(t, it.Next())
	require.NoError(t, it.Close())
	require.Equal(t, []int{4096, 4096, 4096, 4096, 4096}, p.limits(), "each page once")
	require.Equal(t, int32(1), p.most.Load())

	p = &slowPages{pages: pages{n: 20_000}, begun: make(chan string, 10)}
	it = ahead(t, p)
	require.True(t, it.Next())
	require.Empty(t, <-p.begun)
	require.Equal(t, "004095\x00", <-p.begun, "the second page, at the first entry of the first")
	require.NoError(t, it.Close())
	require.Zero(t, p.underWay.Load(), "Close has waited")
	require.Len(t, p.requests, 2)
}

func TestAShortScanReadsNothingAhead(t *testing.T) {
	p := &slowPages{pages: pages{n: 20_000}}
	it := kv.NewIteratorAhead(t.Context(), part, kv.ScanOptions{}, p.read)
	for range 64 + 256 + 1024 {
		require.True(t, it.Next())
	}
	require.NoError(t, it.Close())
	require.Equal(t, []int{64, 256, 1024}, p.limits())
}

func TestWhatWasReadAheadInVainIsNotHandedOut(t *testing.T) {
	p := &slowPages{pages: pages{n: 20_000}}
	it := ahead(t, p)
	for _, key := range []string{"000000", "015000", "000007", "004096", "019999"} {
		it.SeekGE([]byte(key))
		require.True(t, it.Next())
		require.Equal(t, key, string(it.Key()))
	}
	require.False(t, it.Next())
	it.SeekGE([]byte("019998"))
	require.Equal(t, 2, count(it))
	require.NoError(t, it.Close())
	require.Equal(t, int32(1), p.most.Load())
}

func TestAnErrorAheadComesInItsPlace(t *testing.T) {
	p := &slowPages{pages: pages{n: 20_000, failAt: 3, err: errors.New("connection lost")}}
	it := ahead(t, p)
	require.Equal(t, 2*4096, count(it))
	require.ErrorIs(t, it.Err(), p.err)
	require.EqualError(t, it.Close(), "scan p: connection lost")

	p = &slowPages{pages: pages{n: 20_000, failAt: 2, err: errors.New("connection lost")}}
	it = ahead(t, p)
	require.True(t, it.Next())
	require.NoError(t, it.Close(), "of a page that nobody asked for")
}
