// SPDX-License-Identifier: Apache-2.0

package rangefile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sort"
)

// tailSize is what Open reads first: the footer and, but for unusual keys, all of the index.
const tailSize = 8 << 10

// Source gives ranges of one file, exactly or with an error. What it returns is not modified.
type Source interface {
	GetRange(ctx context.Context, offset, length int64) ([]byte, error)
}

// Bytes is a whole file in memory as a Source. It copies nothing.
type Bytes []byte

func (b Bytes) GetRange(_ context.Context, offset, length int64) ([]byte, error) {
	if offset < 0 || length < 0 || offset > int64(len(b))-length {
		return nil, fmt.Errorf("range %d+%d of %d bytes: %w", offset, length, len(b), ErrCorrupt)
	}
	return b[offset : offset+length : offset+length], nil
}

// File is an open file: its footer and its index. It holds no descriptor and needs no closing.
type File struct {
	Info
	name   string
	blocks []blockRef
	memory int
}

type blockRef struct {
	last          []byte // key of the last record
	offset        int64
	stored, plain int // lengths
}

// Open reads the footer and the index of a file of the given size: one ranged read, or two where the index is large.
// The name is for errors only.
func Open(ctx context.Context, name string, src Source, size int64) (*File, error) {
	tail, err := src.GetRange(ctx, max(0, size-tailSize), min(size, tailSize))
	if err != nil {
		return nil, fmt.Errorf("read footer: %w", err)
	}
	ft, err := parseFooter(name, size, tail)
	if err != nil {
		return nil, err
	}
	var stored []byte
	if from := int64(len(tail)) - (size - int64(ft.indexOffset)); from >= 0 {
		stored = bytes.Clone(tail[from : from+int64(ft.indexLength)])
	} else if stored, err = src.GetRange(ctx, int64(ft.indexOffset), int64(ft.indexLength)); err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	return parseIndex(name, ft, stored)
}

// parseIndex checks that the blocks of the index follow one another, by key and by offset, and fill the file.
func parseIndex(name string, ft *footer, stored []byte) (*File, error) {
	bad := func(format string, args ...any) (*File, error) {
		return nil, corrupt(name, int64(ft.indexOffset), "index: "+format, args...)
	}
	var unused []byte // an index is not compressed
	plain, err := unpack(&unused, stored, len(stored)-trailerSize)
	if err != nil {
		return bad("%v", err)
	}
	b := &Block{name: name, offset: int64(ft.indexOffset)}
	if b.records, b.restarts, err = parseBlock(plain); err != nil {
		return bad("%v", err)
	}
	if len(b.restarts) != 4*int(ft.blocks) {
		return bad("%d blocks, not %d", len(b.restarts)/4, ft.blocks)
	}
	f := &File{Info: ft.Info, name: name, blocks: make([]blockRef, 0, ft.blocks), memory: len(stored)}
	var c cursor
	c.init(b)
	offset := int64(0)
	for c.step() {
		key, ok := c.restartKey(len(f.blocks)) // shares memory with the index, unlike the cursor's
		length, n := binary.Uvarint(c.rec.Data)
		plain, m := binary.Uvarint(c.rec.Data[max(0, n):])
		switch {
		case !ok || !bytes.Equal(key, c.rec.Key) || n <= 0 || m <= 0:
			return bad("%v", errLayout)
		case length < trailerSize || length > uint64(ft.indexOffset) || plain > MaxBlock:
			return bad("block of %d and %d bytes", length, plain)
		case len(f.blocks) > 0 && bytes.Compare(f.blocks[len(f.blocks)-1].last, key) >= 0:
			return bad("keys out of order")
		}
		f.blocks = append(f.blocks, blockRef{last: key, offset: offset, stored: int(length), plain: int(plain)})
		offset += int64(length)
		if len(f.blocks) == int(ft.blocks) {
			break
		}
	}
	if c.broken || c.next != len(b.records) || len(f.blocks) != int(ft.blocks) || offset != int64(ft.indexOffset) {
		return bad("does not cover the file")
	}
	f.memory += len(f.blocks) * 64
	return f, nil
}

// Memory is roughly what the File holds, in bytes.
func (f *File) Memory() int { return f.memory }

// Blocks is the number of blocks, at least one.
func (f *File) Blocks() int { return len(f.blocks) }

// Last is the key of the last record.
func (f *File) Last() []byte { return f.blocks[len(f.blocks)-1].last }

// Find gives the block that holds the first record with a key >= key, Blocks() if there is none.
func (f *File) Find(key []byte) int {
	return sort.Search(len(f.blocks), func(i int) bool { return bytes.Compare(f.blocks[i].last, key) >= 0 })
}

// Read reads and checks block i, in one ranged read. It uses the memory of b again, if that is not nil, which must then
// hold no block that is still in use.
func (f *File) Read(ctx context.Context, src Source, i int, b *Block) (*Block, error) {
	ref := f.blocks[i]
	stored, err := src.GetRange(ctx, ref.offset, int64(ref.stored))
	if err != nil {
		return nil, fmt.Errorf("read block at %d: %w", ref.offset, err)
	}
	if b == nil {
		b = &Block{}
	}
	plain, err := unpack(&b.buf, stored, ref.plain)
	if err != nil {
		return nil, corrupt(f.name, ref.offset, "%v", err)
	}
	b.name, b.offset = f.name, ref.offset
	if b.records, b.restarts, err = parseBlock(plain); err != nil {
		return nil, corrupt(f.name, ref.offset, "%v", err)
	}
	return b, nil
}

// Get returns the record with the key, found in one block that fetch reads. It shares memory with the block and with key.
func (f *File) Get(key []byte, fetch func(i int) (*Block, error)) (Record, bool, error) {
	i := f.Find(key)
	if i == len(f.blocks) {
		return Record{}, false, nil
	}
	b, err := fetch(i)
	if err != nil {
		return Record{}, false, err
	}
	return b.get(key)
}
