// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// MendReport says what Mend has done.
type MendReport struct {
	Keys  int    // whose versions were put in form
	Parts []Part // that were removed, because their upload is no more: nobody needs their bytes
}

// Mend puts right what transactions cannot leave, but a reset or a merge of some keys can, or an interruption: versions that are
// in two places, delete markers beside a current object, keys that have versions but none that is current (which read as deleted,
// and get a delete marker), and parts of uploads that are no more. Nothing else is changed, and no version is lost. It looks at
// each key that has versions, at the cost of one read and a part of a listing (of four reads, where a key has more than a few
// versions), and at each upload that has parts; what it has done is in the report also with an error.
func (c *Catalog) Mend(ctx context.Context, b Bucket) (MendReport, error) {
	var done MendReport
	ref, err := c.ref(ctx, b)
	if err == nil {
		r := reader{c.store, b.Repository, ref}
		err = c.mendVersions(ctx, b, r, &done)
		if err == nil {
			err = c.mendParts(ctx, b, r, &done)
		}
	}
	if err != nil {
		return done, fmt.Errorf("mend %s: %w", b, err)
	}
	return done, nil
}

func (c *Catalog) mendVersions(ctx context.Context, b Bucket, r reader, done *MendReport) error {
	at, err := newCursor(ctx, r, versionsArea, "", nil, MaxListed)
	defer at.close()
	for err == nil && at.valid {
		key, inForm := at.place.Key, false
		if inForm, err = lookAtForm(ctx, r, at); err == nil && !inForm {
			err = c.mendKey(ctx, b, r, key, done)
		}
	}
	return err
}

// lookAtForm reports whether the versions of the key that a cursor stands at are known to be in form, and takes it to the next
// key. It reads one entry besides, and no more than a few versions of a key that has many: those are not known.
func lookAtForm(ctx context.Context, r reader, at *reservedCursor) (bool, error) {
	key := at.place.Key
	found, err := load(ctx, r, currentKey(key))
	if err != nil {
		return false, err
	}
	heads, asides := found[:1], []string{}
	for n := 0; at.at(key); n++ {
		switch {
		case n == nearby:
			return false, at.seek(pastKey(versionsArea, key), firstRead)
		case at.place.Kind != KindMarker:
			asides = append(asides, at.place.VersionID)
		default:
			marker, err := at.version()
			if err != nil {
				return false, err
			}
			heads = append(heads, marker)
		}
		if err := at.advance(); err != nil {
			return false, err
		}
	}
	heads = slices.DeleteFunc(heads, func(v occupant) bool { return !v.exists() })
	return len(heads) == 1 && !slices.ContainsFunc(asides, heads[0].is), nil
}

// mendKey puts the versions of a key in form. It looks first, since a transaction is needed for few.
func (c *Catalog) mendKey(ctx context.Context, b Bucket, r reader, key string, done *MendReport) error {
	entries, err := mend(ctx, r, key, c.now())
	if err != nil || len(entries) == 0 {
		return err
	}
	mended := false
	err = c.change(ctx, b, func(ctx context.Context, tx *graveler.Transaction, _ settings) (int, error) {
		entries, err := mend(ctx, tx, key, c.now())
		mended = err == nil && len(entries) > 0
		apply(tx, entries)
		return len(entries), err
	})
	if err == nil && mended {
		done.Keys++
	}
	return err
}

// mend returns the entries that put the versions of a key in form.
func mend(ctx context.Context, r Reader, key string, now time.Time) ([]graveler.Entry, error) {
	found, err := load(ctx, r, currentKey(key), markerKey(key))
	if err != nil {
		return nil, err
	}
	object, marker := found[0], found[1]
	head := object
	if !object.exists() {
		head = marker
	}
	if !head.exists() {
		return mendHeadless(ctx, r, key, now)
	}
	var w writes
	half, err := load(ctx, r, versionKey(key, head.object.VersionID))
	if err != nil {
		return nil, err
	}
	w.clear(half[0])
	if object.exists() && marker.exists() {
		if !object.is(marker.object.VersionID) {
			err = mendMarker(ctx, r, key, object, marker, &w)
		}
		w.clear(marker)
	}
	if err != nil {
		return nil, err
	}
	return w.entries, w.err
}

// mendMarker moves a marker aside that is beside a current object, unless that is half done or the marker gives way.
func mendMarker(ctx context.Context, r Reader, key string, object, marker occupant, w *writes) error {
	found, err := load(ctx, r, versionKey(key, marker.object.VersionID))
	if err != nil {
		return err
	}
	if aside := found[0]; givesWay(object, marker, aside) || aside.exists() && aside.object.DeleteMarker && aside.time() == marker.time() {
		return nil
	}
	w.aside(key, marker, time.Unix(0, max(object.time(), marker.time())).UTC())
	return nil
}

// mendHeadless makes a delete marker, where a key has versions none of which is current.
func mendHeadless(ctx context.Context, r Reader, key string, now time.Time) ([]graveler.Entry, error) {
	newest, any := int64(0), false
	for v, err := range asides(ctx, r, key) {
		if err != nil {
			return nil, err
		}
		newest, any = max(newest, v.time()), true
		if !v.isNull() {
			break
		}
	}
	if !any {
		return nil, nil
	}
	at := max(now.UnixNano(), next(newest))
	var w writes
	w.set(markerKey(key), Object{DeleteMarker: true, VersionID: newVersionID(at), ModifiedAt: time.Unix(0, at).UTC()})
	return w.entries, w.err
}

func (c *Catalog) mendParts(ctx context.Context, b Bucket, r reader, done *MendReport) error {
	var after graveler.Key
	for {
		var id, key string
		for l, err := range r.List(ctx, graveler.ListOptions{Prefix: graveler.Key(partsArea), After: after, Limit: 1}) {
			if err != nil {
				return err
			}
			at, err := ParseKey(l.Key)
			if err == nil {
				_, key, err = decodePart(at.Part, *l.Value)
			}
			if err != nil {
				return err
			}
			id = at.UploadID
		}
		if id == "" {
			return nil
		}
		found, err := r.Get(ctx, uploadKey(key, id))
		if err != nil {
			return err
		}
		if found[0] == nil {
			parts, err := c.removeParts(ctx, b, key, id)
			done.Parts = append(done.Parts, parts...)
			if err != nil {
				return err
			}
		}
		after = graveler.Key(partsPrefix(id) + "\xff")
	}
}
