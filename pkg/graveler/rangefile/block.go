// SPDX-License-Identifier: Apache-2.0

package rangefile

import (
	"encoding/binary"
)

const (
	blockTarget     = 16 << 10 // a block with several records is not larger than this
	restartInterval = 16

	// MaxBlock is the largest size of a decoded block: one record of the largest size.
	MaxBlock = 4*binary.MaxVarintLen32 + MaxKey + MaxValue + 2*4
)

// blockBuilder encodes records as a block: each key without what it shares with the key before, except at restart
// points, whose offsets stand at the end of the block. The layout follows LevelDB's table format.
type blockBuilder struct {
	buf      []byte
	restarts []uint32
	last     []byte // key of the last record
	count    int
	interval int // records per restart point
}

// fits says whether the block, with the record added, is within the target.
func (b *blockBuilder) fits(r Record) bool {
	return len(b.buf)+4*binary.MaxVarintLen32+r.Size()+4*(len(b.restarts)+2) <= blockTarget
}

func (b *blockBuilder) add(r Record) {
	shared := 0
	if b.count%b.interval == 0 {
		b.restarts = append(b.restarts, uint32(len(b.buf)))
	} else {
		shared = sharedPrefix(b.last, r.Key)
	}
	b.buf = binary.AppendUvarint(b.buf, uint64(shared))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(r.Key)-shared))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(r.Identity)))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(r.Data)))
	b.buf = append(b.buf, r.Key[shared:]...)
	b.buf = append(b.buf, r.Identity...)
	b.buf = append(b.buf, r.Data...)
	b.last = append(b.last[:0], r.Key...)
	b.count++
}

// finish gives the plain bytes of the block, valid until reset.
func (b *blockBuilder) finish() []byte {
	for _, r := range b.restarts {
		b.buf = binary.LittleEndian.AppendUint32(b.buf, r)
	}
	b.buf = binary.LittleEndian.AppendUint32(b.buf, uint32(len(b.restarts)))
	return b.buf
}

func (b *blockBuilder) reset() {
	b.buf, b.restarts, b.last, b.count = b.buf[:0], b.restarts[:0], b.last[:0], 0
}

func sharedPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if binary.LittleEndian.Uint64(a[i:]) != binary.LittleEndian.Uint64(b[i:]) {
			break
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
