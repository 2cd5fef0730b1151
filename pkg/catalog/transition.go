// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Reader shows the entries that a transition starts from. *graveler.Transaction is one.
type Reader interface {
	// Get returns the values of keys, in their order, nil where there is none.
	Get(ctx context.Context, keys ...graveler.Key) ([]*graveler.Value, error)
	List(ctx context.Context, o graveler.ListOptions) iter.Seq2[graveler.Listing, error]
}

// getter is a Reader of single entries.
type getter interface {
	Get(ctx context.Context, keys ...graveler.Key) ([]*graveler.Value, error)
}

// Transition computes what the operations on versions change, by the rules of S3. It writes nothing: each method returns the
// entries to set, where a nil value removes the key, and the method's error where S3 refuses the operation.
//
// The entries come in an order in which nothing is lost where only the first few of them take effect: first what is moved aside,
// then what takes its place, then what is removed. A version that is aside and has the ID of the current one is half of such a
// transition. It is no version of its own: nothing shows or restores it, and what removes or replaces it next puts it right.
//
// Where a key has versions, but neither an object nor a marker is current (someone removed the entry of the object and knew
// nothing of versions), the key reads as absent.
type Transition struct {
	Reader     Reader
	Versioning Versioning
	Now        time.Time
}

// Deleted is what a deletion did.
type Deleted struct {
	Key string
	// VersionID is that of the version that was asked for.
	VersionID string
	// DeleteMarker: a delete marker was made, or, where a version was asked for, that version was one. DeleteMarkerVersionID is its ID.
	DeleteMarker          bool
	DeleteMarkerVersionID string
	// Err is why DeleteMany did not delete it.
	Err error
}

// Put makes o the current version of key. It decides about version ID and times, and returns o with them: ModifiedAt is Now where
// it is zero, and always later than the version before where versions are kept.
func (t Transition) Put(ctx context.Context, key string, o Object) (Object, []graveler.Entry, error) {
	o.VersionID, o.DeleteMarker, o.NoncurrentSince = "", false, time.Time{}
	if o.ModifiedAt.IsZero() {
		o.ModifiedAt = t.Now
	}
	if err := o.check(); err != nil {
		return Object{}, nil, err
	}
	h, err := t.history(ctx, key, false)
	if err != nil {
		return Object{}, nil, err
	}
	w, err := t.displace(h, &o)
	if err != nil {
		return Object{}, nil, err
	}
	w.set(currentKey(key), o)
	w.clear(h.null)
	w.clear(h.marker)
	return o, w.entries, w.err
}

// Delete deletes the current version of key: where versions are kept it makes a delete marker the current one.
func (t Transition) Delete(ctx context.Context, key string) (Deleted, []graveler.Entry, error) {
	h, err := t.history(ctx, key, true)
	if err != nil {
		return Deleted{}, nil, err
	}
	m := Object{DeleteMarker: true, ModifiedAt: t.Now}
	w, err := t.displace(h, &m)
	if err != nil {
		return Deleted{}, nil, err
	}
	w.clear(h.current)
	if h.versioning == VersioningOff {
		return Deleted{Key: key}, w.entries, w.err
	}
	w.set(markerKey(key), m)
	w.clear(h.null)
	return Deleted{Key: key, DeleteMarker: true, DeleteMarkerVersionID: m.VersionID}, w.entries, w.err
}

// history is what of a key's versions a new version has to do with.
type history struct {
	key        string
	versioning Versioning // VersioningSuspended where it is off, but the current version has an ID
	current    occupant
	marker     occupant
	null       occupant // aside
	givesWay   bool     // the marker
	newest     int64    // the time of the newest version, 0 where there is none
}

// history reads no more than the operation needs, since every place that is read is written too. Where an object is current there
// is no marker, or one that may stay where it is unless its place is needed.
func (t Transition) history(ctx context.Context, key string, marker bool) (history, error) {
	h := history{key: key, versioning: t.Versioning}
	places := []graveler.Key{currentKey(key)}
	switch {
	case h.versioning == VersioningSuspended:
		places = append(places, markerKey(key), nullKey(key))
	case h.versioning == VersioningEnabled && marker:
		places = append(places, markerKey(key))
	}
	found, err := load(ctx, t.Reader, places...)
	if err != nil {
		return history{}, err
	}
	h.current = found[0]
	if h.versioning == VersioningOff {
		if h.current.exists() && !h.current.isNull() {
			// The data are from another bucket. No version is destroyed for want of a setting.
			t.Versioning = VersioningSuspended
			return t.history(ctx, key, marker)
		}
		return h, nil
	}
	if len(found) > 1 {
		h.marker = found[1]
	}
	if len(found) > 2 {
		h.null = found[2]
	}
	if len(found) == 1 && !h.current.exists() {
		if found, err = load(ctx, t.Reader, markerKey(key)); err != nil {
			return history{}, err
		}
		h.marker = found[0]
	}
	null := h.null
	if h.current.exists() && h.marker.isNull() && len(found) < 3 {
		if found, err = load(ctx, t.Reader, nullKey(key)); err != nil {
			return history{}, err
		}
		null = found[0]
	}
	h.givesWay = givesWay(h.current, h.marker, null)
	h.newest = max(h.current.time(), h.marker.time())
	if !h.current.exists() && !h.marker.exists() {
		for v, err := range asides(ctx, t.Reader, key) {
			if err != nil {
				return history{}, err
			}
			h.newest = max(h.newest, v.time())
			if !v.isNull() {
				break
			}
		}
	}
	return h, nil
}

// displace gives a new version its ID and time, and moves aside what is current, where it is to be kept.
func (t Transition) displace(h history, o *Object) (w writes, err error) {
	if h.versioning == VersioningOff {
		return w, t.permit(h.current, false)
	}
	at := max(nanosecond(o.ModifiedAt), next(h.newest))
	o.ModifiedAt = time.Unix(0, at).UTC()
	o.VersionID = NullVersion
	if h.versioning == VersioningEnabled {
		o.VersionID = newVersionID(at)
	}
	half := h.current.isNull() || h.marker.isNull() && !h.givesWay // of an unfinished move is what is aside as the null version
	if !half {
		err = t.permit(h.null, false)
	}
	for _, v := range []occupant{h.marker, h.current} {
		switch {
		case v.object != nil && v.object == h.marker.object && (h.givesWay || h.current.is(v.object.VersionID)): // half of a move
		case h.versioning == VersioningEnabled || !v.isNull():
			w.aside(h.key, v, o.ModifiedAt)
		case err == nil:
			err = t.permit(v, false)
		}
	}
	return w, err
}

// DeleteVersion removes a version for good. If it is the current one, the newest of the others takes its place. What is not there is deleted already.
func (t Transition) DeleteVersion(ctx context.Context, key, id string, bypassGovernance bool) (Deleted, []graveler.Entry, error) {
	found, err := load(ctx, t.Reader, currentKey(key), markerKey(key), versionKey(key, id))
	if err != nil {
		return Deleted{}, nil, err
	}
	current, marker, aside := found[0], found[1], found[2]
	target := firstOf(id, found)
	if err := t.permit(target, bypassGovernance); err != nil {
		return Deleted{}, nil, err
	}
	d := Deleted{Key: key, VersionID: id}
	if target.exists() && target.object.DeleteMarker {
		d.DeleteMarker, d.DeleteMarkerVersionID = true, id
	}
	var w writes
	switch {
	case current.is(id):
		err = t.promote(ctx, key, id, current, marker, &w)
	case marker.is(id) && !current.exists():
		err = t.promote(ctx, key, id, marker, occupant{}, &w)
	case marker.is(id):
		w.clear(marker)
	}
	w.clear(aside)
	if err == nil {
		err = w.err
	}
	return d, w.entries, err
}

// promote removes the current version, and makes the newest of the others the current one: beside is a marker that is there besides.
func (t Transition) promote(ctx context.Context, key, id string, current, beside occupant, w *writes) error {
	newest, outdated := beside, occupant{}
	for listed, err := range asides(ctx, t.Reader, key) {
		if err != nil {
			return err
		}
		if listed.is(id) {
			continue
		}
		found, err := load(ctx, t.Reader, listed.place) // the list is a hint
		if err != nil {
			return err
		}
		v := found[0]
		if !v.exists() {
			continue
		}
		if givesWay(current, beside, v) {
			newest, outdated, beside = occupant{}, beside, occupant{}
		}
		if !newest.exists() || v.newer(newest) {
			newest = v
		}
		if !v.isNull() {
			break
		}
	}
	if !newest.exists() || bytes.Equal(newest.place, beside.place) {
		w.clear(current)
		return nil
	}
	o, to := *newest.object, currentKey(key)
	o.NoncurrentSince = time.Time{}
	if o.DeleteMarker {
		to = markerKey(key)
		w.aside(key, beside, o.ModifiedAt)
	}
	w.set(to, o)
	for _, v := range []occupant{current, outdated} {
		if !bytes.Equal(v.place, to) {
			w.clear(v)
		}
	}
	w.clear(newest)
	return nil
}

// Edit changes what is said about a version, "" being the current one, by what edit makes of it; what was uploaded, and its place
// among the versions, stay. It returns the version as it is then.
func (t Transition) Edit(ctx context.Context, key, id string, edit func(o *Object) error) (Object, []graveler.Entry, error) {
	v, err := find(ctx, t.Reader, key, id)
	if err != nil {
		return Object{}, nil, err
	}
	o := *v.object
	if err := edit(&o); err != nil {
		return Object{}, nil, err
	}
	var w writes
	w.set(v.place, o)
	return o, w.entries, w.err
}

// permit returns AccessDenied where a lock keeps a version from being removed.
func (t Transition) permit(v occupant, bypassGovernance bool) error {
	if !v.exists() || v.object.DeleteMarker {
		return nil
	}
	switch l := v.object.Lock; {
	case l.LegalHold:
		return fmt.Errorf("%w: version %q is under legal hold", AccessDenied, v.object.VersionID)
	case !l.retains(t.Now) || l.Mode == LockGovernance && bypassGovernance:
		return nil
	default:
		return fmt.Errorf("%w: version %q is retained until %s, in %s mode", AccessDenied, v.object.VersionID, l.RetainUntil.Format(time.RFC3339), l.Mode)
	}
}
