// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// afterReserved is greater than the keys at which versions and uploads are kept, and less than those of objects.
const afterReserved = "\x00\xff"

// isReserved reports whether a key is none of an object. Such keys begin with a zero byte.
func isReserved(key graveler.Key) bool { return len(key) > 0 && key[0] == 0 }

// describeKey is what people see of the key of an entry: of an object that is current it is the object's, of a version that is
// not, or an upload, what it is of what.
func describeKey(key graveler.Key) string {
	at, err := catalog.ParseKey(key)
	if err != nil {
		return escape(key)
	}
	switch of := escape(at.Key); at.Kind {
	case catalog.KindMarker:
		return of + " (delete marker)"
	case catalog.KindNull, catalog.KindNoncurrent:
		return fmt.Sprintf("%s (version %s)", of, at.VersionID)
	case catalog.KindUpload:
		return fmt.Sprintf("%s (upload %s)", of, at.UploadID)
	case catalog.KindPart:
		return fmt.Sprintf("(part %d of upload %s)", at.Part, at.UploadID)
	default:
		return of
	}
}

// reservedView says in JSON what the entry of a reserved key is.
type reservedView struct {
	Kind string `json:"kind"`
	*keyView
	VersionID string `json:"version_id,omitempty"`
	UploadID  string `json:"upload_id,omitempty"`
	Part      int    `json:"part,omitempty"`
}

// viewReserved returns nil for the key of an object.
func viewReserved(key graveler.Key) *reservedView {
	if !isReserved(key) {
		return nil
	}
	at, err := catalog.ParseKey(key)
	if err != nil {
		return nil
	}
	view := &reservedView{VersionID: at.VersionID, UploadID: at.UploadID, Part: at.Part}
	if at.Key != "" {
		of := viewKey(graveler.Key(at.Key))
		view.keyView = &of
	}
	switch at.Kind {
	case catalog.KindMarker:
		view.Kind = "delete_marker"
	case catalog.KindNull, catalog.KindNoncurrent:
		view.Kind = "version"
	case catalog.KindUpload:
		view.Kind = "upload"
	case catalog.KindPart:
		view.Kind = "part"
	}
	return view
}

// decodeEntry returns the object that the entry of a key is about: what it is, or is to become where it is an upload, or holds
// where it is a part of one.
func decodeEntry(key graveler.Key, v graveler.Value) (catalog.Object, error) {
	at, err := catalog.ParseKey(key)
	if err != nil {
		return catalog.Decode(v) // of a layer of somebody else
	}
	switch at.Kind {
	case catalog.KindUpload:
		u, err := catalog.DecodeUpload(at, v)
		u.Object.ModifiedAt = u.Initiated
		return u.Object, err
	case catalog.KindPart:
		p, err := catalog.DecodePart(at, v)
		return catalog.Object{PhysicalAddress: p.PhysicalAddress, Size: p.Size, Checksum: p.Checksum, ModifiedAt: p.ModifiedAt}, err
	default:
		return catalog.Decode(v)
	}
}
