// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// occupant is what one of the places of a key holds; object is nil where it holds nothing.
type occupant struct {
	place  graveler.Key
	object *Object
}

func (v occupant) exists() bool { return v.object != nil }

// is reports whether it is the version with an ID.
func (v occupant) is(id string) bool {
	return v.exists() && (v.object.VersionID == id || isNull(v.object.VersionID) && isNull(id))
}

func (v occupant) isNull() bool { return v.exists() && isNull(v.object.VersionID) }

// same reports whether two places hold the same.
func (v occupant) same(w occupant) bool {
	return v.exists() == w.exists() && (!v.exists() || bytes.Equal(v.object.identity(), w.object.identity()))
}

// time returns when the version was made, in nanoseconds since the epoch.
func (v occupant) time() int64 {
	if !v.exists() {
		return 0
	}
	if at, ok := versionTimeOf(v.object.VersionID); ok {
		return at
	}
	return nanosecond(v.object.ModifiedAt)
}

// newer reports whether it is before another one in the order of versions, newest first.
func (v occupant) newer(than occupant) bool {
	return cmp.Or(cmp.Compare(than.time(), v.time()), cmp.Compare(v.object.VersionID, than.object.VersionID)) < 0
}

func nanosecond(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixNano(), 0)
}

// next returns the time after one.
func next(at int64) int64 {
	if at == math.MaxInt64 {
		return at
	}
	return at + 1
}

// load reads places.
func load(ctx context.Context, r getter, places ...graveler.Key) ([]occupant, error) {
	values, err := r.Get(ctx, places...)
	if err != nil {
		return nil, err
	}
	found := make([]occupant, len(places))
	for i, v := range values {
		found[i].place = places[i]
		if v == nil {
			continue
		}
		if found[i].object, err = decodeAt(places[i], *v); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func decodeAt(place graveler.Key, v graveler.Value) (*Object, error) {
	o, err := Decode(v)
	if err != nil {
		return nil, fmt.Errorf("entry %q: %w", place, err)
	}
	return &o, nil
}

// asides yields the versions of a key that are aside: first the null version, then the others, newest first.
func asides(ctx context.Context, r Reader, key string) iter.Seq2[occupant, error] {
	return func(yield func(occupant, error) bool) {
		for l, err := range r.List(ctx, graveler.ListOptions{Prefix: versionsOf(key, ""), After: markerKey(key)}) {
			v := occupant{place: l.Key}
			if err == nil {
				v.object, err = decodeAt(l.Key, *l.Value)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// firstOf returns the version with an ID among those that are found at its places, of which a former one is the version and a
// later one half of a move; but for a marker that gives way.
func firstOf(id string, found []occupant) occupant {
	for i, v := range found {
		if v.is(id) && !(i == 1 && len(found) > 2 && givesWay(found[0], v, found[2])) {
			return v
		}
	}
	return occupant{}
}

// givesWay reports whether a marker is no version: a null marker that is beside a current object, where the null version is an
// object that is aside. A merge can leave that, and no marker is worth an object.
func givesWay(current, marker, null occupant) bool {
	return current.exists() && !current.isNull() && marker.isNull() && null.isNull() && !null.object.DeleteMarker
}

// find returns a version of a key, "" being the current one, which is no delete marker: NoSuchKey, NoSuchVersion, and
// MethodNotAllowed for a marker that was asked for by its ID. With the error comes the marker, where there is one.
func find(ctx context.Context, r Reader, key, id string) (occupant, error) {
	if id == "" {
		for _, place := range []graveler.Key{currentKey(key), markerKey(key)} {
			found, err := load(ctx, r, place)
			switch {
			case err != nil:
				return occupant{}, err
			case found[0].exists() && found[0].object.DeleteMarker:
				return found[0], fmt.Errorf("%w: it was deleted", NoSuchKey)
			case found[0].exists():
				return found[0], nil
			}
		}
		return occupant{}, NoSuchKey
	}
	found, err := load(ctx, r, currentKey(key), markerKey(key), versionKey(key, id))
	if err != nil {
		return occupant{}, err
	}
	switch v := firstOf(id, found); {
	case !v.exists():
		return occupant{}, fmt.Errorf("%w %q", NoSuchVersion, id)
	case v.object.DeleteMarker:
		return v, fmt.Errorf("%w: version %q is a delete marker", MethodNotAllowed, id)
	default:
		return v, nil
	}
}

// writes gathers the entries of a transition.
type writes struct {
	entries []graveler.Entry
	err     error
}

func (w *writes) set(place graveler.Key, o Object) {
	v, err := Encode(o)
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("entry %q: %w", place, err)
	}
	w.entries = append(w.entries, graveler.Entry{Key: place, Value: &v})
}

// clear empties a place, where it holds anything.
func (w *writes) clear(v occupant) {
	if v.exists() {
		w.entries = append(w.entries, graveler.Entry{Key: v.place})
	}
}

// aside writes a version to where those go that are not current.
func (w *writes) aside(key string, v occupant, since time.Time) {
	if !v.exists() {
		return
	}
	o := *v.object
	o.NoncurrentSince = since
	switch {
	case isNull(o.VersionID):
		o.VersionID = NullVersion
	case !isVersionID(o.VersionID) && w.err == nil:
		w.err = fmt.Errorf("entry %q: %w: version ID %q is none that a version can be kept by", v.place, graveler.ErrCorrupt, o.VersionID)
	}
	w.set(versionKey(key, o.VersionID), o)
}
