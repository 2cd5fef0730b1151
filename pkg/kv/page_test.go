// SPDX-License-Identifier: Apache-2.0

package kv_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
)

func TestAPageIsFullByEntriesOrByBytes(t *testing.T) {
	b := kv.NewPage(kv.PageRequest{Limit: 3})
	for i := range 3 {
		require.False(t, b.Full(), i)
		b.Add([]byte{byte(i)}, nil)
	}
	require.True(t, b.Full())
	require.Equal(t, []kv.Entry{{Key: []byte{0}, Value: []byte{}}, {Key: []byte{1}, Value: []byte{}}, {Key: []byte{2}, Value: []byte{}}}, b.Entries())

	b = kv.NewPage(kv.PageRequest{Limit: 4096})
	for range 4 {
		require.False(t, b.Full())
		b.Add([]byte("key"), make([]byte, kv.PageBytes/4))
	}
	require.True(t, b.Full())
}

func TestEntriesOfAPageDoNotShareMemory(t *testing.T) {
	for _, limit := range []int{64, 4096} {
		b := kv.NewPage(kv.PageRequest{Limit: limit})
		key, value := []byte("key 00"), make([]byte, 300)
		for i := range 60 {
			copy(key, fmt.Sprintf("key %02d", i))
			value[0] = byte(i)
			b.Add(key, value[:i*5+1])
		}
		for i, e := range b.Entries() { // what a caller does to one is not seen in the others
			require.Equal(t, fmt.Sprintf("key %02d", i), string(e.Key))
			require.Len(t, e.Value, i*5+1)
			require.Equal(t, byte(i), e.Value[0])
			clear(e.Value)
			_, _ = append(e.Key, "and more"...), append(e.Value, "and more"...)
		}
	}
}

func TestALargePageTakesFewAllocations(t *testing.T) {
	key, value := []byte("data/dt=2000-01-01/part-00001.parquet"), make([]byte, 200)
	fill := func(limit int) float64 {
		return testing.AllocsPerRun(10, func() {
			for b := kv.NewPage(kv.PageRequest{Limit: limit}); !b.Full(); {
				b.Add(key, value)
			}
		})
	}
	require.Less(t, fill(4096), 80.0, "4,096 entries")
	require.Greater(t, fill(64), 64.0, "one that is kept of a short scan keeps nothing else")
}
