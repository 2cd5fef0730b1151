// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// ContentIdentity is SHA-256 of the tag "moraine object content 1" and then address, size, checksum and modification time, in the form of identity.
// It stays the same when tags, metadata or locks are edited.
func (o *Object) ContentIdentity() []byte {
	var memory [512]byte
	return fields(memory[:0]).text("moraine object content 1").content(o).hash()
}

// identity is SHA-256 of the tag "moraine object 1" and then every field, in the order below. Texts are preceded by their length
// and maps by their count, as 8 bytes big-endian, and maps are in key order; numbers are 8 bytes big-endian, booleans are 0 or 1;
// a time is 0 where it is not known, else 1 and the nanoseconds since the epoch. Fields that this program does not know come
// last, in their stored form, where there are any.
func (o *Object) identity() []byte {
	var memory [1024]byte
	f := fields(memory[:0]).text("moraine object 1").content(o)
	f = f.text(o.ContentType).pairs(o.Metadata).pairs(o.Tags).text(o.StorageClass)
	f = f.number(int64(o.Lock.Mode)).time(o.Lock.RetainUntil).flag(o.Lock.LegalHold)
	f = f.text(o.VersionID).flag(o.DeleteMarker).time(o.NoncurrentSince)
	if len(o.unknown) > 0 {
		f = f.text(string(o.unknown))
	}
	return f.hash()
}

// fields are what is hashed, so that no two different sequences of fields are the same bytes.
type fields []byte

func (f fields) hash() []byte {
	sum := sha256.Sum256(f)
	return sum[:]
}

func (f fields) content(o *Object) fields {
	return f.text(o.PhysicalAddress).number(o.Size).text(o.Checksum).time(o.ModifiedAt)
}

func (f fields) number(n int64) fields { return binary.BigEndian.AppendUint64(f, uint64(n)) }

func (f fields) text(s string) fields { return append(f.number(int64(len(s))), s...) }

func (f fields) flag(b bool) fields {
	if b {
		return f.number(1)
	}
	return f.number(0)
}

func (f fields) time(t time.Time) fields {
	if t.IsZero() {
		return f.flag(false)
	}
	return f.flag(true).number(t.UnixNano())
}

func (f fields) pairs(m map[string]string) fields {
	f = f.number(int64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		f = f.text(k).text(m[k])
	}
	return f
}
