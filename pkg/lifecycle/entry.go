// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// NewObject returns the object that an entry holds, without what only its siblings tell. A part of an upload is no object, and
// neither is an entry whose value does not fit its place: both are graveler.ErrCorrupt, as data that cannot be decoded is
// graveler.ErrInvalidValue.
func NewObject(place catalog.Place, value graveler.Value, versioning catalog.Versioning) (Object, error) {
	if place.Kind == catalog.KindUpload {
		u, err := catalog.DecodeUpload(place, value)
		if err != nil {
			return Object{}, fmt.Errorf("object %q: %w", place.Key, err)
		}
		return Object{
			Kind: Upload, Key: place.Key, VersionID: place.UploadID, ContentIdentity: []byte(place.UploadID), ModifiedAt: u.Initiated, Versioning: versioning,
		}, nil
	}
	stored, err := catalog.Decode(value)
	if err != nil {
		return Object{}, fmt.Errorf("object %q: %w", place.Key, err)
	}
	return VersionObject(place, stored, versioning)
}

// VersionObject is NewObject for a version that has been decoded.
func VersionObject(place catalog.Place, stored catalog.Object, versioning catalog.Versioning) (Object, error) {
	o := Object{
		Key: place.Key, Size: stored.Size, Tags: stored.Tags, ContentIdentity: stored.ContentIdentity(), VersionID: stored.VersionID, DeleteMarker: stored.DeleteMarker,
		ModifiedAt: stored.ModifiedAt, NoncurrentSince: stored.NoncurrentSince, Lock: stored.Lock, Versioning: versioning,
	}
	switch o.Kind = KindAt(place.Kind); o.Kind {
	case Current, Marker:
	case Noncurrent:
		o.VersionID = place.VersionID
	default:
		return Object{}, fmt.Errorf("object %q: %w: an entry of kind %d is none", place.Key, graveler.ErrCorrupt, place.Kind)
	}
	if (o.Kind == Current || o.Kind == Marker) && o.DeleteMarker != (o.Kind == Marker) {
		return Object{}, fmt.Errorf("object %q: %w: delete marker %t in the place of a %s version", place.Key, graveler.ErrCorrupt, o.DeleteMarker, o.Kind)
	}
	return o, nil
}

// KindAt returns the kind of the objects that entries of a kind hold, as far as their keys tell: a marker that is beside a
// current object is noncurrent. It is 0 for what holds none.
func KindAt(kind catalog.Kind) ObjectKind {
	switch kind {
	case catalog.KindCurrent:
		return Current
	case catalog.KindMarker:
		return Marker
	case catalog.KindNull, catalog.KindNoncurrent:
		return Noncurrent
	case catalog.KindUpload:
		return Upload
	default:
		return 0
	}
}
