// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/catalog/catalogpb"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// Encode returns the value of an entry that holds o. Objects that are equal in every field have values of one identity. What
// cannot be kept is graveler.ErrInvalidValue, more than the limits allow graveler.ErrTooLarge.
func Encode(o Object) (graveler.Value, error) { return EncodeAs(o, o.identity()) }

// EncodeAs is Encode with an identity that another system gave the object: which objects are equal is for that to say. The value
// keeps the memory of the identity.
func EncodeAs(o Object, identity []byte) (graveler.Value, error) {
	if err := o.check(); err != nil {
		return graveler.Value{}, fmt.Errorf("encode object: %w", err)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(messageOf(&o))
	if err != nil {
		return graveler.Value{}, fmt.Errorf("encode object: %w: %w", graveler.ErrInvalidValue, err)
	}
	v := graveler.Value{Identity: identity, Data: data}
	if err := graveler.ValidateValue(&v); err != nil {
		return graveler.Value{}, fmt.Errorf("encode object: %w", err)
	}
	return v, nil
}

// messageOf returns the stored form of o.
func messageOf(o *Object) *catalogpb.ObjectData {
	m := &catalogpb.ObjectData{
		PhysicalAddress: o.PhysicalAddress,
		Size:            o.Size,
		Checksum:        o.Checksum,
		ModifiedAt:      nanoseconds(o.ModifiedAt),
		ContentType:     o.ContentType,
		Metadata:        o.Metadata,
		Tags:            o.Tags,
		StorageClass:    o.StorageClass,
		LockMode:        catalogpb.LockMode(o.Lock.Mode),
		RetainUntil:     nanoseconds(o.Lock.RetainUntil),
		LegalHold:       o.Lock.LegalHold,
		VersionId:       o.VersionID,
		DeleteMarker:    o.DeleteMarker,
		NoncurrentSince: nanoseconds(o.NoncurrentSince),
	}
	m.ProtoReflect().SetUnknown(o.unknown)
	return m
}

// Decode returns the object that a value holds; data that is no object is graveler.ErrInvalidValue. The result shares no memory with v.
func Decode(v graveler.Value) (Object, error) {
	m := &catalogpb.ObjectData{}
	if err := proto.Unmarshal(v.Data, m); err != nil {
		return Object{}, fmt.Errorf("decode object: %w: %w", graveler.ErrInvalidValue, err)
	}
	return objectOf(m), nil
}

// objectOf returns the object of a stored form.
func objectOf(m *catalogpb.ObjectData) Object {
	return Object{
		PhysicalAddress: m.PhysicalAddress,
		Size:            m.Size,
		Checksum:        m.Checksum,
		ModifiedAt:      timeOf(m.ModifiedAt),
		ContentType:     m.ContentType,
		Metadata:        m.Metadata,
		Tags:            m.Tags,
		StorageClass:    m.StorageClass,
		Lock: Lock{
			Mode:        LockMode(m.LockMode),
			RetainUntil: timeOf(m.RetainUntil),
			LegalHold:   m.LegalHold,
		},
		VersionID:       m.VersionId,
		DeleteMarker:    m.DeleteMarker,
		NoncurrentSince: timeOf(m.NoncurrentSince),
		unknown:         bytes.Clone(m.ProtoReflect().GetUnknown()),
	}
}

func nanoseconds(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return proto.Int64(t.UnixNano())
}

func timeOf(ns *int64) time.Time {
	if ns == nil {
		return time.Time{}
	}
	return time.Unix(0, *ns).UTC()
}
