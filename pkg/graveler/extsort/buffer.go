// SPDX-License-Identifier: Apache-2.0

package extsort

import (
	"bytes"
	"cmp"
	"io"
	"slices"
)

const (
	chunkBytes = 1 << 20
	// itemBytes is what a record takes besides its bytes.
	itemBytes = 32
)

// item is a record in memory.
type item struct {
	record []byte // the key, and then the value
	key    uint32 // the key's length
	number uint32 // in the order of adding
}

func (i item) keyBytes() []byte { return i.record[:i.key] }

func recordSize(key, value []byte) int { return len(key) + len(value) + itemBytes }

// buffer holds records in memory, in chunks that are used again after a reset.
type buffer struct {
	items    []item
	size     int
	chunks   [][]byte
	used     int  // chunks that hold records; records are added to the last of them
	unsorted bool // a key was added after a greater one
}

func (b *buffer) add(key, value []byte) {
	i := item{record: b.hold(key, value), key: uint32(len(key)), number: uint32(len(b.items))}
	b.unsorted = b.unsorted || len(b.items) > 0 && bytes.Compare(b.items[len(b.items)-1].keyBytes(), key) > 0
	b.items = append(b.items, i)
	b.size += recordSize(key, value)
}

// hold copies a record into a chunk, a large one into memory of its own.
func (b *buffer) hold(key, value []byte) []byte {
	n := len(key) + len(value)
	if n > chunkBytes/4 {
		return append(append(make([]byte, 0, n), key...), value...)
	}
	if b.used == 0 || n > chunkBytes-len(b.chunks[b.used-1]) {
		if b.used == len(b.chunks) {
			b.chunks = append(b.chunks, make([]byte, 0, chunkBytes))
		}
		b.chunks[b.used] = b.chunks[b.used][:0]
		b.used++
	}
	c := &b.chunks[b.used-1]
	start := len(*c)
	*c = append(append(*c, key...), value...)
	return (*c)[start:]
}

// sort returns the records in order.
func (b *buffer) sort() *buffered {
	if b.unsorted {
		slices.SortFunc(b.items, func(x, y item) int {
			return cmp.Or(bytes.Compare(x.keyBytes(), y.keyBytes()), cmp.Compare(x.number, y.number))
		})
	}
	return &buffered{b.items}
}

func (b *buffer) reset() {
	clear(b.items) // large records go
	b.items, b.size, b.used, b.unsorted = b.items[:0], 0, 0, false
}

// buffered are the records of a buffer as a source.
type buffered struct{ items []item }

func (b *buffered) first() []byte { return b.items[0].keyBytes() }

func (b *buffered) next() (key, value []byte, err error) {
	for len(b.items) > 0 {
		i := b.items[0]
		b.items = b.items[1:]
		if len(b.items) == 0 || !bytes.Equal(i.keyBytes(), b.first()) {
			return i.keyBytes(), i.record[i.key:], nil
		}
	}
	return nil, nil, io.EOF
}
