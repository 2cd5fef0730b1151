// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
)

// A file on disk is a sequence of chunks, each followed by its checksum, so that a range is verified
// without reading all of the file. An empty file has one empty chunk. A checksum also covers the name
// and size of the file and the number of the chunk: a file that was cut, even between chunks, or that
// stands under another's name has no chunk that is right.
const (
	chunkBytes = 64 << 10
	sumBytes   = crc32.Size
)

var errDamaged = errors.New("not what was written")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func chunks(size int64) int64 { return max(1, (size+chunkBytes-1)/chunkBytes) }

// diskSize is what a file takes on disk.
func diskSize(size int64) int64 { return size + chunks(size)*sumBytes }

// dataSize is the inverse of diskSize. It makes something up for sizes that diskSize never has.
func dataSize(onDisk int64) int64 {
	const full = chunkBytes + sumBytes
	return onDisk - (onDisk+full-1)/full*sumBytes
}

func checksum(name string, size, number int64, chunk []byte) uint32 {
	head := fmt.Appendf(nil, "%s %d %d ", name, size, number)
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, chunk)
}

func encode(name string, data []byte) []byte {
	size := int64(len(data))
	out := make([]byte, 0, diskSize(size))
	for i := range chunks(size) {
		chunk := data[i*chunkBytes : min((i+1)*chunkBytes, size)]
		out = append(out, chunk...)
		out = binary.LittleEndian.AppendUint32(out, checksum(name, size, i, chunk))
	}
	return out
}

// readFile returns the wanted part of a file on disk. At least one chunk is verified, so that what
// it says about the range can be relied on: any error but those of [block.CheckRange] means that the
// file is of no use.
func readFile(path, name string, want span) (_ []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := dataSize(info.Size())
	if size < 0 || diskSize(size) != info.Size() {
		return nil, errDamaged
	}
	from, to, rangeErr := want.in(size)
	if rangeErr != nil {
		from, to = 0, 0
	}
	first := min(from/chunkBytes, chunks(size)-1)
	last := max(first, (to-1)/chunkBytes)
	data, err := readChunks(f, name, size, first, last)
	if err != nil {
		return nil, err
	}
	if rangeErr != nil {
		return nil, rangeErr
	}
	from, to = from-first*chunkBytes, to-first*chunkBytes
	return data[from:to:to], nil
}

// readChunks returns the bytes of the chunks from first to last.
func readChunks(f *os.File, name string, size, first, last int64) ([]byte, error) {
	end := min((last+1)*chunkBytes, size)
	data := make([]byte, end-first*chunkBytes+(last-first+1)*sumBytes)
	if _, err := f.ReadAt(data, first*(chunkBytes+sumBytes)); err != nil {
		return nil, err
	}
	joined, rest := data[:0], data
	for i := first; i <= last; i++ {
		n := min((i+1)*chunkBytes, size) - i*chunkBytes
		chunk, sum := rest[:n], binary.LittleEndian.Uint32(rest[n:])
		if checksum(name, size, i, chunk) != sum {
			return nil, fmt.Errorf("%w: checksum of chunk %d", errDamaged, i)
		}
		joined, rest = append(joined, chunk...), rest[n+sumBytes:]
	}
	return joined, nil
}
