// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"
	"time"
)

// ContentIdentity is SHA-256 of the tag "moraine object content 1" and then address, size, checksum and modification time, in the form of identity.
// It stays the same when tags, metadata or locks are edited.
func (o *Object) ContentIdentity() []byte {
	h := newHash("moraine object content 1")
	o.hashContent(h)
	return h.Sum(nil)
}

// identity is SHA-256 of the tag "moraine object 1" and then every field, in the order below. Texts are preceded by their length and maps by their count,
// as 8 bytes big-endian, and maps are in key order; numbers are 8 bytes big-endian, booleans are 0 or 1; a time is 0 where it is not known, else 1 and the nanoseconds since the
// epoch. Fields that this program does not know come last, in their stored form, where there are any.
func (o *Object) identity() []byte {
	h := newHash("moraine object 1")
	o.hashContent(h)
	h.text(o.ContentType)
	h.pairs(o.Metadata)
	h.pairs(o.Tags)
	h.text(o.StorageClass)
	h.number(int64(o.Lock.Mode))
	h.time(o.Lock.RetainUntil)
	h.flag(o.Lock.LegalHold)
	h.text(o.VersionID)
	h.flag(o.DeleteMarker)
	h.time(o.NoncurrentSince)
	if len(o.unknown) > 0 {
		h.text(string(o.unknown))
	}
	return h.Sum(nil)
}

func (o *Object) hashContent(h fieldHash) {
	h.text(o.PhysicalAddress)
	h.number(o.Size)
	h.text(o.Checksum)
	h.time(o.ModifiedAt)
}

// fieldHash hashes fields so that no two different sequences of them are the same bytes.
type fieldHash struct{ hash.Hash }

func newHash(tag string) fieldHash {
	h := fieldHash{sha256.New()}
	h.text(tag)
	return h
}

func (h fieldHash) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}

func (h fieldHash) text(s string) {
	h.number(int64(len(s)))
	h.Write([]byte(s))
}

func (h fieldHash) flag(b bool) {
	if b {
		h.number(1)
	} else {
		h.number(0)
	}
}

func (h fieldHash) time(t time.Time) {
	h.flag(!t.IsZero())
	if !t.IsZero() {
		h.number(t.UnixNano())
	}
}

func (h fieldHash) pairs(m map[string]string) {
	h.number(int64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		h.text(k)
		h.text(m[k])
	}
}
