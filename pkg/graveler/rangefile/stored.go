// SPDX-License-Identifier: Apache-2.0

package rangefile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"
)

// trailerSize is what follows the bytes of a stored block: how they are stored, and a checksum.
const trailerSize = 9

// How the bytes of a block are stored.
const (
	storedPlain  = 0
	storedSnappy = 1 // the Snappy block format
)

// appendStored appends a plain block as it is stored: compressed if asked for and if that makes it smaller, then the trailer.
func appendStored(dst, plain []byte, compress bool) []byte {
	start := len(dst)
	how := byte(storedPlain)
	if compress {
		need := start + s2.MaxEncodedLen(len(plain))
		if cap(dst) < need {
			dst = append(make([]byte, 0, max(need, 2*cap(dst))), dst...)
		}
		if c := s2.EncodeSnappy(dst[start:need:need], plain); len(c) < len(plain) {
			dst, how = dst[:start+len(c)], storedSnappy
		}
	}
	if how == storedPlain {
		dst = append(dst, plain...)
	}
	dst = append(dst, how)
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

var (
	errChecksum = errors.New("block does not match its checksum")
	errStored   = errors.New("block does not decompress to its length")
	errLayout   = errors.New("block with a broken layout")
)

// unpack checks a stored block and returns its plain bytes, of which there must be plainLen. They share memory with stored
// where it is not compressed, else with buf, which grows as needed.
func unpack(buf *[]byte, stored []byte, plainLen int) ([]byte, error) {
	if len(stored) < trailerSize {
		return nil, errChecksum
	}
	body := stored[:len(stored)-8]
	if binary.LittleEndian.Uint64(stored[len(body):]) != xxhash.Sum64(body) {
		return nil, errChecksum
	}
	how, body := body[len(body)-1], body[:len(body)-1]
	switch how {
	case storedPlain:
		if len(body) != plainLen {
			return nil, errStored
		}
		return body, nil
	case storedSnappy:
		if n, err := s2.DecodedLen(body); err != nil || n != plainLen {
			return nil, errStored
		}
		if cap(*buf) < plainLen {
			*buf = make([]byte, plainLen)
		}
		plain, err := s2.Decode((*buf)[:plainLen], body)
		if err != nil || len(plain) != plainLen {
			return nil, errStored
		}
		return plain, nil
	}
	return nil, fmt.Errorf("compression %d: %w", how, errStored)
}
