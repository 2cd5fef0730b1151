// SPDX-License-Identifier: Apache-2.0

package rangefile

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Builder collects the records of one file in memory, in ascending order, and makes the file. Adding costs little, Build
// is where hashing and compression happen. A Builder is used by one goroutine at a time and is meant to be used again
// after Reset: it keeps its buffers.
type Builder struct {
	level  int
	stream []byte // the records in canonical form
	count  uint64
	size   int
	sum    Child // without the ID

	data, index blockBuilder
}

// NewBuilder returns a builder of a range (level 0) or of a metarange.
func NewBuilder(level int) *Builder {
	b := &Builder{data: blockBuilder{interval: restartInterval}, index: blockBuilder{interval: 1}}
	b.Reset(level)
	return b
}

// Reset forgets everything that was added.
func (b *Builder) Reset(level int) {
	b.level, b.stream, b.count, b.size = level, b.stream[:0], 0, 0
	b.sum = Child{First: b.sum.First[:0], Last: b.sum.Last[:0]}
}

// Count is the number of records added.
func (b *Builder) Count() int { return int(b.count) }

// Add appends a record, of which it keeps no memory, or returns ErrRecord and appends nothing. In a metarange the record
// must be that of a child.
func (b *Builder) Add(r Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	if b.count > 0 && bytes.Compare(b.sum.Last, r.Key) >= 0 {
		return fmt.Errorf("key %q after %q: %w", r.Key, b.sum.Last, ErrRecord)
	}
	if b.size+r.Size() > MaxSize {
		return fmt.Errorf("file of more than %d bytes: %w", MaxSize, ErrRecord)
	}
	below := Child{First: r.Key, Count: 1, Size: uint64(r.Size())}
	if b.level > 0 {
		var err error
		if below, err = ParseChild(r); err != nil {
			return err
		}
	}
	if b.count == 0 {
		b.sum.First = append(b.sum.First, below.First...)
	}
	b.sum.Last = append(b.sum.Last[:0], r.Key...)
	b.sum.Count += below.Count
	b.sum.Size += below.Size
	b.stream = appendRecord(b.stream, r)
	b.size += r.Size()
	b.count++
	return nil
}

// AddUnnamed adds the record of a child whose ID, here of any value, is not known yet because its file is still being made.
// The slot is for Name.
func (b *Builder) AddUnnamed(r Record) (slot int, err error) {
	if err := b.Add(r); err != nil {
		return 0, err
	}
	return len(b.stream) - len(r.Data) - uvarintLen(len(r.Data)) - len(r.Identity), nil
}

// Name gives a child that was added unnamed its ID. It must be called before Build.
func (b *Builder) Name(slot int, id ID) { copy(b.stream[slot:], id[:]) }

// Child describes the file for the metarange above, without its ID. The keys are valid until the next Add or Reset.
func (b *Builder) Child() Child { return b.sum }

// Build makes the file, which must have at least one record, in the memory of dst, which grows as needed.
func (b *Builder) Build(dst []byte) (ID, []byte) {
	id := contentID(b.level, b.count, b.stream)
	dst = dst[:0]
	b.data.reset()
	b.index.reset()
	for rest := b.stream; len(rest) > 0; {
		var r Record
		r, rest = cutRecord(rest)
		if b.data.count > 0 && !b.data.fits(r) {
			dst = b.flush(dst)
		}
		b.data.add(r)
	}
	dst = b.flush(dst)
	f := footer{
		Info:        Info{ID: id, Level: b.level, Count: b.count, Size: uint64(b.size)},
		indexOffset: uint32(len(dst)), blocks: uint32(b.index.count),
	}
	dst = appendStored(dst, b.index.finish(), false)
	f.indexLength = uint32(len(dst)) - f.indexOffset
	return id, f.append(dst)
}

// flush stores the open block and enters it in the index: last key, stored length, plain length.
func (b *Builder) flush(dst []byte) []byte {
	start := len(dst)
	plain := b.data.finish()
	dst = appendStored(dst, plain, true)
	entry := binary.AppendUvarint(nil, uint64(len(dst)-start))
	entry = binary.AppendUvarint(entry, uint64(len(plain)))
	b.index.add(Record{Key: b.data.last, Data: entry})
	b.data.reset()
	return dst
}

func uvarintLen(n int) int { return len(binary.AppendUvarint(nil, uint64(n))) }
