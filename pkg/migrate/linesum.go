// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// lineSum is a writer that adds up the hashes of the lines of a dump, whatever their order: a dump of a repository that is in use
// has the commits made meanwhile at the end. The first line, which says which repository it is, and the last one, which has the
// checksum of all, do not count.
type lineSum struct {
	sum     [4]uint64
	lines   int
	held    []byte // the last line, or the part of it that was written
	partial bool
}

// Write takes any part of a dump.
func (s *lineSum) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if !s.partial {
			s.add()
		}
		end := bytes.IndexByte(b, '\n') + 1
		s.partial = end == 0
		if s.partial {
			end = len(b)
		}
		s.held = append(s.held, b[:end]...)
		b = b[end:]
	}
	return n, nil
}

// add counts the line that is held, which is not the last one.
func (s *lineSum) add() {
	if len(s.held) == 0 {
		return
	}
	if s.lines++; s.lines > 1 {
		hash := sha256.Sum256(s.held)
		for i := range s.sum {
			s.sum[i] += binary.BigEndian.Uint64(hash[8*i:])
		}
	}
	s.held = s.held[:0]
}

func (s *lineSum) digest() []byte {
	var b []byte
	for _, n := range s.sum {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return binary.BigEndian.AppendUint64(b, uint64(s.lines))
}
