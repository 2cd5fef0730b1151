// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
)

// ObjectKind is what an object is among those of its key.
type ObjectKind int

const (
	// Current is the current version, and no delete marker.
	Current ObjectKind = iota + 1
	// Marker is a delete marker that is the current version.
	Marker
	// Noncurrent is any other version, delete marker or not.
	Noncurrent
	// Upload is a multipart upload under way.
	Upload
)

func (k ObjectKind) String() string {
	switch k {
	case Current:
		return "current"
	case Marker:
		return "marker"
	case Noncurrent:
		return "noncurrent"
	case Upload:
		return "upload"
	default:
		return fmt.Sprintf("ObjectKind(%d)", int(k))
	}
}

// Object is what rules look at.
type Object struct {
	Kind ObjectKind
	// Key is the logical key, which all versions and uploads of an object share.
	Key string
	// Size is in bytes; 0 for delete markers and uploads.
	Size int64
	Tags map[string]string
	// ContentIdentity tells one upload of an object from another, and stays the same when tags, metadata or locks are edited. For
	// a multipart upload it is the upload's ID.
	ContentIdentity []byte
	// VersionID is the version's, or the upload's.
	VersionID    string
	DeleteMarker bool
	// ModifiedAt is when the object was stored, or the upload started; zero where that is not known.
	ModifiedAt time.Time
	// NoncurrentSince is when the version was displaced; zero for what is current.
	NoncurrentSince time.Time
	Lock            catalog.Lock
	// Versioning is the state of the bucket.
	Versioning catalog.Versioning

	// The siblings, which an entry alone does not tell. Sole is set where no other version of the key exists; NewerNoncurrent is
	// how many noncurrent versions of the key are newer than this one, which is noncurrent too.
	Sole            bool
	NewerNoncurrent int
}

// Null reports whether o is the null version, which is what a bucket without versions holds as well.
func (o *Object) Null() bool { return o.VersionID == "" || o.VersionID == "null" }

// Locked reports whether a lock bars the permanent removal of o at an instant. until is when its retention ends; zero where a
// legal hold bars it, which ends at no known time. Nothing bars the removal of a delete marker or an upload.
func (o *Object) Locked(at time.Time) (until time.Time, locked bool) {
	switch {
	case o.DeleteMarker || o.Kind == Upload:
		return time.Time{}, false
	case o.Lock.LegalHold:
		return time.Time{}, true
	case o.Lock.Mode != catalog.LockNone && o.Lock.RetainUntil.After(at):
		return o.Lock.RetainUntil, true
	default:
		return time.Time{}, false
	}
}
