// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/catalog/catalogpb"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// DecodePart returns the part of an entry of KindPart. What is none is graveler.ErrInvalidValue.
func DecodePart(at Place, v graveler.Value) (Part, error) {
	p, _, err := decodePart(at.Part, v)
	return p, err
}

// Address returns where the bytes are that the value of an entry names, "" where it names none or is nothing that a bucket keeps.
// It needs no key: the identity of a value tells a part of an upload, and an upload, from an object. So that part and the object
// that was made of it are known to name the same bytes.
func Address(v graveler.Value) string {
	if p, ok := partOf(v); ok {
		return p.PhysicalAddress
	}
	if u, err := DecodeUpload(Place{}, v); err == nil {
		if same, err := u.value(); err == nil && bytes.Equal(same.Identity, v.Identity) {
			return ""
		}
	}
	o, err := Decode(v)
	if err != nil {
		return ""
	}
	return o.PhysicalAddress
}

// partOf returns the part that a value is, if it is one.
func partOf(v graveler.Value) (Part, bool) {
	m := &catalogpb.PartData{}
	if err := proto.Unmarshal(v.Data, m); err != nil || len(m.Key) == 0 || len(m.ProtoReflect().GetUnknown()) > 0 { // such as most objects, whose fields have other types
		return Part{}, false
	}
	p, key, err := decodePart(0, v)
	if err != nil {
		return Part{}, false
	}
	same, err := p.value(key)
	return p, err == nil && bytes.Equal(same.Identity, v.Identity)
}
