// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"encoding/binary"
)

// encode returns pebble's key for a key of a partition: the length of the partition in two bytes, the
// partition, the key. The length keeps partitions apart whatever bytes they hold, and makes each one
// contiguous range.
func encode(partition, key []byte) []byte {
	b := make([]byte, 0, 2+len(partition)+len(key))
	b = binary.BigEndian.AppendUint16(b, uint16(len(partition)))
	b = append(b, partition...)
	return append(b, key...)
}

// span is a range of pebble's keys: from low on and less than high.
type span struct{ low, high []byte }

// wholePartition returns the span of all keys of a partition.
func wholePartition(partition []byte) span {
	low := encode(partition, nil)
	high := bytes.Clone(low)
	// Not all bytes are 0xff, since the first one is part of a small length.
	i := len(high) - 1
	for high[i] == 0xff {
		i--
	}
	high[i]++
	return span{low, high[:i+1]}
}

// oneKey returns the span of a single one of pebble's keys.
func oneKey(k []byte) span {
	return span{k, append(bytes.Clone(k), 0)}
}

func (s span) empty() bool { return bytes.Compare(s.low, s.high) >= 0 }

func (s span) overlaps(o span) bool {
	return bytes.Compare(s.low, o.high) < 0 && bytes.Compare(o.low, s.high) < 0
}
