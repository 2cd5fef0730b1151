// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// GetParams says what to get.
type GetParams struct {
	VersionID  string // "": the current version
	Conditions Conditions
}

// Get returns a version of a key, for a GET or HEAD request. Where there is none it is NoSuchKey or NoSuchVersion. Of a key whose
// current version is a delete marker it is NoSuchKey, and MethodNotAllowed of a marker that is asked for by its ID; the marker is
// returned with the error then. A condition that does not hold is PreconditionFailed or NotModified, with which comes the object.
func (c *Catalog) Get(ctx context.Context, b Bucket, key string, p GetParams) (Object, error) {
	o, err := c.get(ctx, b, key, p.VersionID)
	if err == nil {
		err = p.Conditions.forRead(&o)
	}
	return o, describe(err, "get", b, key)
}

func (c *Catalog) get(ctx context.Context, b Bucket, key, id string) (Object, error) {
	if err := cmp.Or(checkKey(key), checkVersionID(id)); err != nil {
		return Object{}, err
	}
	ref, err := c.ref(ctx, b)
	if err != nil {
		return Object{}, err
	}
	r := reader{c.store, b.Repository, ref}
	v, err := find(ctx, r, key, id)
	if errors.Is(err, NoSuchVersion) {
		v, err = c.findAgain(ctx, r, key, id)
	}
	if !v.exists() {
		return Object{}, err
	}
	return *v.object, err
}

// findAgain looks for a version that was not found: it may have gone from one place to another behind the back of the reader. It
// is not there if another version is current before and after the look, the same one both times: no version goes from aside to
// current, or the other way, without another one, and one that has made room for it is gone for good.
func (c *Catalog) findAgain(ctx context.Context, r reader, key, id string) (occupant, error) {
	var before []occupant
	for {
		now, err := load(ctx, r, currentKey(key), markerKey(key))
		if err != nil {
			return occupant{}, err
		}
		if before != nil && slices.EqualFunc(now, before, occupant.same) && !firstOf(id, now).exists() {
			return occupant{}, fmt.Errorf("%w %q", NoSuchVersion, id)
		}
		v, err := find(ctx, r, key, id)
		if !errors.Is(err, NoSuchVersion) {
			return v, err
		}
		before = now
	}
}
