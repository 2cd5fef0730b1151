// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// valueView is the value of an entry in JSON. Data that is no object, since another program than this one may keep other things
// in entries, is there as it is.
type valueView struct {
	Identity string `json:"identity"`
	*objectView
	Data []byte `json:"data_base64,omitempty"`
}

type objectView struct {
	ContentIdentity string            `json:"content_identity"`
	PhysicalAddress string            `json:"physical_address,omitempty"`
	Size            int64             `json:"size"`
	Checksum        string            `json:"checksum,omitempty"`
	ModifiedAt      time.Time         `json:"modified_at,omitzero"`
	ContentType     string            `json:"content_type,omitempty"`
	Metadata        map[string]string `json:"metadata,omitempty"`
	Tags            map[string]string `json:"tags,omitempty"`
	StorageClass    string            `json:"storage_class,omitempty"`
	LockMode        string            `json:"lock_mode,omitempty"`
	RetainUntil     time.Time         `json:"retain_until,omitzero"`
	LegalHold       bool              `json:"legal_hold,omitempty"`
	VersionID       string            `json:"version_id,omitempty"`
	DeleteMarker    bool              `json:"delete_marker,omitempty"`
	NoncurrentSince time.Time         `json:"noncurrent_since,omitzero"`
}

// viewValue shows the value of an object.
func viewValue(v graveler.Value) valueView { return viewEntry(nil, v) }

// viewEntry shows the value of the entry of any key.
func viewEntry(key graveler.Key, v graveler.Value) valueView {
	view := valueView{Identity: hex.EncodeToString(v.Identity)}
	o, err := decodeEntry(key, v)
	if err != nil {
		view.Data = v.Data
		return view
	}
	view.objectView = viewObject(o)
	return view
}

func viewObject(o catalog.Object) *objectView {
	return &objectView{
		ContentIdentity: hex.EncodeToString(o.ContentIdentity()),
		PhysicalAddress: o.PhysicalAddress, Size: o.Size, Checksum: o.Checksum, ModifiedAt: o.ModifiedAt, ContentType: o.ContentType,
		Metadata: o.Metadata, Tags: o.Tags, StorageClass: o.StorageClass,
		LockMode: o.Lock.Mode.String(), RetainUntil: o.Lock.RetainUntil, LegalHold: o.Lock.LegalHold,
		VersionID: o.VersionID, DeleteMarker: o.DeleteMarker, NoncurrentSince: o.NoncurrentSince,
	}
}

// sizeAndTime are the columns of a listing; a dash stands for what is not known.
func sizeAndTime(v graveler.Value) (size, modified string) {
	o, err := catalog.Decode(v)
	if err != nil {
		return "-", "-"
	}
	return formatSize(o.Size), formatTime(o.ModifiedAt)
}

// objectFields are the lines of text about an object, without those that say nothing.
func objectFields(v graveler.Value) []string {
	view := viewValue(v)
	fields := []string{"Identity", view.Identity}
	add := func(name, text string) {
		if text != "" && text != "-" {
			fields = append(fields, name, escape(text))
		}
	}
	o := view.objectView
	if o == nil {
		add("Data", string(v.Data))
		return fields
	}
	add("Size", formatSize(o.Size))
	add("Modified", formatTime(o.ModifiedAt))
	add("Address", o.PhysicalAddress)
	add("Checksum", o.Checksum)
	add("Content type", o.ContentType)
	add("Metadata", formatPairs(o.Metadata))
	add("Tags", formatPairs(o.Tags))
	add("Storage class", o.StorageClass)
	add("Lock", o.LockMode)
	add("Retain until", formatTime(o.RetainUntil))
	if o.LegalHold {
		add("Legal hold", "on")
	}
	add("Version", o.VersionID)
	if o.DeleteMarker {
		add("Delete marker", "yes")
	}
	add("Noncurrent since", formatTime(o.NoncurrentSince))
	return fields
}

func formatPairs(pairs map[string]string) string {
	var texts []string
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		texts = append(texts, k+"="+pairs[k])
	}
	return strings.Join(texts, " ")
}
