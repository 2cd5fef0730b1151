// SPDX-License-Identifier: Apache-2.0

package rangefile

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// Version is the format version that Builder writes. The rules by which IDs are computed and trees are cut belong to it.
const Version = 1

// The last eight bytes of a file of any version are its version and the magic.
const (
	magic      = "MORAIN"
	footerSize = 80
)

const (
	kindRange     = 'r'
	kindMetarange = 'm'
)

// maxLevel bounds the height of a tree. Every level at least halves the number of nodes, so none gets near it.
const maxLevel = 64

func kindOf(level int) byte {
	if level == 0 {
		return kindRange
	}
	return kindMetarange
}

// Info is what the footer of a file says about it.
type Info struct {
	ID    ID
	Level int    // 0 for a range, larger for a metarange
	Count uint64 // records in this file
	Size  uint64 // their logical size in bytes
}

type footer struct {
	Info
	indexOffset, indexLength uint32 // where the index block is, its trailer included
	blocks                   uint32
}

func (f *footer) append(dst []byte) []byte {
	start := len(dst)
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, 0) // the checksum
	dst = append(dst, f.ID[:]...)
	dst = le.AppendUint64(dst, f.Count)
	dst = le.AppendUint64(dst, f.Size)
	dst = le.AppendUint32(dst, f.indexOffset)
	dst = le.AppendUint32(dst, f.indexLength)
	dst = le.AppendUint32(dst, f.blocks)
	dst = append(dst, kindOf(f.Level), byte(f.Level), 0, 0)
	dst = le.AppendUint16(dst, Version)
	dst = append(dst, magic...)
	le.PutUint64(dst[start:], xxhash.Sum64(dst[start+8:]))
	return dst
}

// parseFooter reads the footer of a file of the given size from its last bytes.
func parseFooter(name string, size int64, tail []byte) (*footer, error) {
	if len(tail) < footerSize || string(tail[len(tail)-len(magic):]) != magic {
		return nil, fmt.Errorf("%s: %w", name, ErrForeign)
	}
	b := tail[len(tail)-footerSize:]
	le := binary.LittleEndian
	offset := size - footerSize
	if v := le.Uint16(b[72:]); v != Version {
		return nil, fmt.Errorf("%s at offset %d: version %d: %w", name, offset+72, v, ErrVersion)
	}
	if le.Uint64(b) != xxhash.Sum64(b[8:]) {
		return nil, corrupt(name, offset, "footer does not match its checksum")
	}
	f := &footer{
		Info:        Info{ID: ID(b[8:40]), Count: le.Uint64(b[40:]), Size: le.Uint64(b[48:]), Level: int(b[69])},
		indexOffset: le.Uint32(b[56:]), indexLength: le.Uint32(b[60:]), blocks: le.Uint32(b[64:]),
	}
	switch {
	case b[68] != kindOf(f.Level) || f.Level > maxLevel || b[70] != 0 || b[71] != 0:
		return nil, corrupt(name, offset+68, "kind and level contradict each other")
	case f.Size > MaxSize || f.Count == 0 || f.Count > f.Size:
		return nil, corrupt(name, offset+40, "%d records of %d bytes", f.Count, f.Size)
	case int64(f.indexOffset)+int64(f.indexLength) != offset || f.indexLength < trailerSize:
		return nil, corrupt(name, offset+56, "index at %d+%d", f.indexOffset, f.indexLength)
	}
	return f, nil
}
