// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/kv"
)

// few draws bytes that are likely to be alike and at the ends of their range.
func few(most int) *rapid.Generator[[]byte] {
	return rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 0xfe, 0xff}), 1, most)
}

func TestAPartitionIsOneRangeOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := few(4).Draw(t, "p"), few(4).Draw(t, "q")
		a, b := few(4).Draw(t, "a"), few(4).Draw(t, "b")
		require.Equal(t, bytes.Compare(a, b), bytes.Compare(encode(p, a), encode(p, b)))
		all := wholePartition(p)
		require.True(t, all.overlaps(oneKey(encode(p, a))))
		if !bytes.Equal(p, q) {
			require.False(t, all.overlaps(wholePartition(q)))
			require.False(t, all.overlaps(oneKey(encode(q, a))))
			require.NotEqual(t, encode(p, a), encode(q, b))
		}
	})
	long := bytes.Repeat([]byte{0xff}, kv.MaxPartitionBytes)
	require.True(t, wholePartition(long).overlaps(oneKey(encode(long, bytes.Repeat([]byte{0xff}, kv.MaxKeyBytes)))))
}
