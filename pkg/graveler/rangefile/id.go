// SPDX-License-Identifier: Apache-2.0

package rangefile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// ID names a file by its records: the SHA-256 of a prefix (kind, version, level, count) and the records in order, each
// as the length-prefixed key, identity and data.
type ID [sha256.Size]byte

// String gives 64 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID is the inverse of String; upper case is refused, so that an ID has one form.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) == hex.EncodedLen(len(id)) && !strings.ContainsAny(s, "ABCDEF") {
		if _, err := hex.Decode(id[:], []byte(s)); err == nil {
			return id, nil
		}
	}
	return ID{}, fmt.Errorf("%q is not the ID of a range or metarange", s)
}

// EmptyID is the ID of a metarange without children, which stands for the empty tree and is never written.
func EmptyID() ID { return emptyID }

var emptyID = contentID(1, 0, nil)

// contentID hashes the records of a file in the form of appendRecord.
func contentID(level int, count uint64, records []byte) ID {
	var prefix [12]byte
	prefix[0] = kindOf(level)
	binary.LittleEndian.PutUint16(prefix[1:], Version)
	prefix[3] = byte(level)
	binary.LittleEndian.PutUint64(prefix[4:], count)
	h := sha256.New()
	h.Write(prefix[:])
	h.Write(records)
	var id ID
	h.Sum(id[:0])
	return id
}

// appendRecord appends the canonical form of a record, the one that IDs are computed from.
func appendRecord(dst []byte, r Record) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(r.Key)))
	dst = append(dst, r.Key...)
	dst = binary.AppendUvarint(dst, uint64(len(r.Identity)))
	dst = append(dst, r.Identity...)
	dst = binary.AppendUvarint(dst, uint64(len(r.Data)))
	return append(dst, r.Data...)
}

// cutRecord takes the first record off a canonical stream that appendRecord made.
func cutRecord(stream []byte) (r Record, rest []byte) {
	r.Key, stream = cutBytes(stream)
	r.Identity, stream = cutBytes(stream)
	r.Data, stream = cutBytes(stream)
	return r, stream
}

func cutBytes(stream []byte) (b, rest []byte) {
	n, k := binary.Uvarint(stream)
	return stream[k : k+int(n)], stream[k+int(n):]
}
