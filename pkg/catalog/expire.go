// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Version is a version of a key, and the key of the entry that holds it.
type Version struct {
	Place  graveler.Key
	Object Object
}

// Versions are those of one key, as a reader shows them.
type Versions struct {
	reader          Reader
	key             string
	current, marker occupant
	givesWay        bool // the marker
}

// HeadPlaces returns the keys of the entries that hold what is current of a key: the object, and the delete marker.
func HeadPlaces(key string) []graveler.Key { return []graveler.Key{currentKey(key), markerKey(key)} }

// ReadVersions reads what is current of a key: HeadPlaces.
func ReadVersions(ctx context.Context, r Reader, key string) (Versions, error) {
	found, err := load(ctx, r, HeadPlaces(key)...)
	if err != nil {
		return Versions{}, err
	}
	v := Versions{reader: r, key: key, current: found[0], marker: found[1]}
	if v.current.exists() && v.marker.isNull() {
		if found, err = load(ctx, r, nullKey(key)); err != nil {
			return Versions{}, err
		}
		v.givesWay = givesWay(v.current, v.marker, found[0])
	}
	return v, nil
}

// Current returns the version that is current, which may be a delete marker.
func (v Versions) Current() (Version, bool) {
	for _, o := range []occupant{v.current, v.marker} {
		if o.exists() {
			return Version{o.place, *o.object}, true
		}
	}
	return Version{}, false
}

// Half reports whether what is at a place, and has that version ID, is half of an unfinished put or delete, and so no version of
// its own. Of two null versions that a merge has left, a marker beside a current object and an object that is aside, it is the
// marker.
func (v Versions) Half(place graveler.Key, id string) bool {
	if v.givesWay && isNull(id) {
		return bytes.Equal(place, v.marker.place)
	}
	return !bytes.Equal(place, v.current.place) && v.current.is(id) ||
		!bytes.Equal(place, v.current.place) && !bytes.Equal(place, v.marker.place) && v.marker.is(id)
}

// Noncurrent yields the versions that are not current, newest first: those that are aside, and a delete marker beside an object
// that is current. It reads no further than it is asked to.
func (v Versions) Noncurrent(ctx context.Context) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		var waiting []occupant // whose places do not tell how old they are: two at most, newest first
		wait := func(o occupant) {
			if len(waiting) > 0 && o.newer(waiting[0]) {
				waiting = []occupant{o, waiting[0]}
			} else {
				waiting = append(waiting, o)
			}
		}
		give := func(o occupant) bool {
			return v.Half(o.place, o.object.VersionID) || yield(Version{o.place, *o.object}, nil)
		}
		if v.current.exists() && v.marker.exists() {
			wait(v.marker)
		}
		for o, err := range asides(ctx, v.reader, v.key) {
			switch {
			case err != nil:
				yield(Version{}, err)
				return
			case bytes.Equal(o.place, nullKey(v.key)):
				wait(o)
				continue
			}
			for len(waiting) > 0 && waiting[0].newer(o) {
				if !give(waiting[0]) {
					return
				}
				waiting = waiting[1:]
			}
			if !give(o) {
				return
			}
		}
		for _, o := range waiting {
			if !give(o) {
				return
			}
		}
	}
}

// AbortUpload ends a multipart upload, and removes its parts. Of one that is not there nothing is removed.
func (t Transition) AbortUpload(ctx context.Context, key, uploadID string) ([]graveler.Entry, error) {
	place := uploadKey(key, uploadID)
	found, err := t.Reader.Get(ctx, place)
	if err != nil || found[0] == nil {
		return nil, err
	}
	entries := []graveler.Entry{{Key: place}}
	for part, err := range t.Reader.List(ctx, graveler.ListOptions{Prefix: graveler.Key(partsPrefix(uploadID))}) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, graveler.Entry{Key: bytes.Clone(part.Key)})
	}
	return entries, nil
}

// UploadOfPart returns the key of the upload that a part is of, and the place of the upload's own entry. Where nothing is at that
// place nobody can use the part any more: it was committed after the upload had been aborted on the branch.
func UploadOfPart(at Place, v graveler.Value) (key string, place graveler.Key, err error) {
	_, key, err = decodePart(at.Part, v)
	return key, uploadKey(key, at.UploadID), err
}
