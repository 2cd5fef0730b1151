// SPDX-License-Identifier: Apache-2.0

package catalog

import "time"

// Object is one stored object. The zero value of a field means that nothing is known or said. Texts are UTF-8. Copies of an
// Object share its maps.
type Object struct {
	// PhysicalAddress is where the bytes are, as a URL or whatever the object store makes of it; "" for metadata only.
	PhysicalAddress string
	// Size is the number of bytes.
	Size int64
	// Checksum is free text, such as an ETag.
	Checksum string
	// ModifiedAt is when the object was uploaded. Times are kept in nanoseconds, and read back in UTC.
	ModifiedAt   time.Time
	ContentType  string
	Metadata     map[string]string // the user's; nil and empty are the same
	Tags         map[string]string
	StorageClass string
	Lock         Lock
	VersionID    string
	DeleteMarker bool
	// NoncurrentSince is when a newer version, or a delete marker, took the object's place.
	NoncurrentSince time.Time

	// unknown holds fields that a newer program wrote, in their stored form.
	unknown []byte
}

// Lock keeps an object from being deleted or overwritten.
type Lock struct {
	// Mode and RetainUntil belong together: either both are set or neither.
	Mode        LockMode
	RetainUntil time.Time
	LegalHold   bool
}

// LockMode says who may lift a retention.
type LockMode int32

// The numbers are stored; they never change.
const (
	LockNone LockMode = iota
	LockGovernance
	LockCompliance
)

func (m LockMode) String() string {
	switch m {
	case LockNone:
		return ""
	case LockGovernance:
		return "GOVERNANCE"
	case LockCompliance:
		return "COMPLIANCE"
	default:
		return "UNKNOWN"
	}
}
