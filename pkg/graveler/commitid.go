// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
)

// CommitVersion is the rule by which this program computes commit IDs.
const CommitVersion = 1

// ComputeID returns the ID that version 1 gives to c: SHA-256, in hexadecimal, of the tag "moraine commit 1" and then every field
// but the ID, in the order below. Strings are preceded by their length and lists by their count, as 8 bytes big-endian; numbers
// and times (nanoseconds since the epoch) are 8 bytes big-endian; metadata is in key order. The nonce makes commits that agree in
// everything else differ.
func (c *Commit) ComputeID() CommitID {
	return CommitID(c.hash("moraine commit 1", c.Nonce))
}

// hash hashes every field but the ID, the version and the nonce, between a tag and what comes in the place of the nonce.
func (c *Commit) hash(tag, last string) string {
	b := make([]byte, 0, 512) // one call for all of it: many for a few bytes each take longer than the hash
	number := func(n int64) { b = binary.BigEndian.AppendUint64(b, uint64(n)) }
	text := func(s string) {
		number(int64(len(s)))
		b = append(b, s...)
	}
	text(tag)
	text(c.Committer)
	text(c.Message)
	text(string(c.Tree))
	number(c.CreatedAt.UnixNano())
	number(int64(len(c.Parents)))
	for _, p := range c.Parents {
		text(string(p))
	}
	number(int64(len(c.Metadata)))
	for _, k := range slices.Sorted(maps.Keys(c.Metadata)) {
		text(k)
		text(c.Metadata[k])
	}
	number(c.Generation)
	number(c.LogTime)
	text(last)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
