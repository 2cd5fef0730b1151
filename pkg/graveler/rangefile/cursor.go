// SPDX-License-Identifier: Apache-2.0

package rangefile

import (
	"bytes"
	"encoding/binary"
)

// Block is a decoded block.
type Block struct {
	records  []byte
	restarts []byte // little-endian offsets into records
	buf      []byte // memory to decompress into
	name     string // of the file, and the offset in it, for errors
	offset   int64
}

// Len is the memory that the block holds, in bytes.
func (b *Block) Len() int { return len(b.records) + len(b.restarts) }

// get returns the record with the key. It shares memory with the block and with key.
func (b *Block) get(key []byte) (Record, bool, error) {
	var memory [128]byte // most keys fit
	c := cursor{key: memory[:0]}
	c.init(b)
	c.seek(key)
	if !c.held || !bytes.Equal(c.rec.Key, key) {
		return Record{}, false, c.failed()
	}
	return Record{Key: key, Identity: c.rec.Identity, Data: c.rec.Data}, true, nil
}

// parseBlock divides plain bytes into records and restart points.
func parseBlock(plain []byte) (records, restarts []byte, err error) {
	if len(plain) < 8 {
		return nil, nil, errLayout
	}
	end := len(plain) - 4
	n := int64(binary.LittleEndian.Uint32(plain[end:]))
	if n == 0 || n*4 > int64(end) {
		return nil, nil, errLayout
	}
	records, restarts = plain[:end-int(n)*4], plain[end-int(n)*4:end]
	last := -1
	for i := 0; i < len(restarts); i += 4 {
		at := int(binary.LittleEndian.Uint32(restarts[i:]))
		if at <= last || at >= len(records) || i == 0 && at != 0 {
			return nil, nil, errLayout
		}
		last = at
	}
	return records, restarts, nil
}

// cursor walks the records of a block. The zero value stands before nothing; init it.
type cursor struct {
	block  *Block
	next   int // offset of the record after the current one
	rec    Record
	key    []byte // backs rec.Key
	held   bool   // rec is where the next call of step goes
	broken bool
}

func (c *cursor) init(b *Block) { c.block, c.next, c.held, c.broken = b, 0, false, false }

// step goes to the next record. False at the end and on a broken layout; failed tells them apart.
func (c *cursor) step() bool {
	if c.held {
		c.held = false
		return true
	}
	b := c.block.records
	if c.next >= len(b) {
		return false
	}
	shared, at, ok1 := uvarint(b, c.next)
	suffix, at, ok2 := uvarint(b, at)
	idLen, at, ok3 := uvarint(b, at)
	dataLen, at, ok4 := uvarint(b, at)
	if !(ok1 && ok2 && ok3 && ok4) || shared > len(c.key) && c.next > 0 || shared > 0 && c.next == 0 ||
		shared+suffix > MaxKey || suffix+idLen+dataLen > len(b)-at {
		c.broken = true
		return false
	}
	c.key = append(c.key[:shared], b[at:at+suffix]...)
	at += suffix
	c.rec = Record{Key: c.key, Identity: b[at : at+idLen : at+idLen], Data: b[at+idLen : at+idLen+dataLen : at+idLen+dataLen]}
	c.next = at + idLen + dataLen
	return true
}

// seek makes the next step go to the first record with a key >= key: binary search over the restart points, then a
// walk of at most restartInterval records.
func (c *cursor) seek(key []byte) {
	c.held = false
	lo, hi := 0, len(c.block.restarts)/4 // the last restart point whose key is < key is in [lo, hi), if there is any
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		k, ok := c.restartKey(mid)
		if !ok {
			c.broken = true
			return
		}
		if bytes.Compare(k, key) < 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	c.next = int(binary.LittleEndian.Uint32(c.block.restarts[lo*4:]))
	c.key = c.key[:0]
	for c.step() {
		if bytes.Compare(c.rec.Key, key) >= 0 {
			c.held = true
			return
		}
	}
}

// restartKey is the key of the record at a restart point, which is stored whole.
func (c *cursor) restartKey(i int) ([]byte, bool) {
	b := c.block.records
	shared, at, ok1 := uvarint(b, int(binary.LittleEndian.Uint32(c.block.restarts[i*4:])))
	suffix, at, ok2 := uvarint(b, at)
	_, at, ok3 := uvarint(b, at)
	_, at, ok4 := uvarint(b, at)
	if !(ok1 && ok2 && ok3 && ok4) || shared != 0 || suffix > len(b)-at {
		return nil, false
	}
	return b[at : at+suffix], true
}

func (c *cursor) failed() error {
	if !c.broken {
		return nil
	}
	return corrupt(c.block.name, c.block.offset, "%v", errLayout)
}

// uvarint reads a length at an offset. No length of the format is larger than a block.
func uvarint(b []byte, at int) (v, next int, ok bool) {
	if at < len(b) && b[at] < 0x80 {
		return int(b[at]), at + 1, true
	}
	if at > len(b) {
		return 0, at, false
	}
	u, n := binary.Uvarint(b[at:])
	if n <= 0 || u > MaxBlock {
		return 0, at, false
	}
	return int(u), at + n, true
}
