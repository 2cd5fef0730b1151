// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// DeleteParams says what to delete.
type DeleteParams struct {
	VersionID string // "": the current version
	// IfMatch is the ETag that the current version must have; "*": there must be an object. As in S3 it does not go together with VersionID.
	IfMatch string
	// BypassGovernance removes a version in spite of a retention in GOVERNANCE mode.
	BypassGovernance bool
}

// Delete deletes the current version of a key, or removes one version for good. Where the bucket keeps versions, the former makes
// a delete marker. What is not there is deleted already: that is no error, unless IfMatch is set (NoSuchKey). A version that a
// lock keeps is AccessDenied.
func (c *Catalog) Delete(ctx context.Context, b Bucket, key string, p DeleteParams) (Deleted, error) {
	id := ObjectID{Key: key, VersionID: p.VersionID, IfMatch: p.IfMatch}
	if err := id.check(); err != nil {
		return Deleted{}, describe(err, "delete", b, key)
	}
	var d Deleted
	err := c.change(ctx, b, func(ctx context.Context, tx *graveler.Transaction, s settings) (changes int, err error) {
		d, changes, err = c.deleteIn(ctx, tx, s, id, p.BypassGovernance)
		return changes, err
	})
	if err != nil {
		return Deleted{}, describe(err, "delete", b, key)
	}
	return d, nil
}

// ObjectID names what DeleteMany deletes, in the sense of DeleteParams.
type ObjectID struct {
	Key, VersionID, IfMatch string
}

func (id ObjectID) check() error {
	if id.IfMatch != "" && id.VersionID != "" {
		return fmt.Errorf("%w: If-Match of a version", NotImplemented)
	}
	return cmp.Or(checkKey(id.Key), checkVersionID(id.VersionID))
}

// deleteIn deletes when the transaction takes place, and returns how many changes that is.
func (c *Catalog) deleteIn(ctx context.Context, tx *graveler.Transaction, s settings, id ObjectID, bypass bool) (Deleted, int, error) {
	t := Transition{tx, s.Versioning, c.now()}
	if id.IfMatch != "" {
		found, err := load(ctx, tx, currentKey(id.Key))
		if err == nil {
			err = Conditions{IfMatch: id.IfMatch}.forChange(found[0].object)
		}
		if err != nil {
			return Deleted{}, 0, err
		}
	}
	var d Deleted
	var entries []graveler.Entry
	var err error
	if id.VersionID == "" {
		d, entries, err = t.Delete(ctx, id.Key)
	} else {
		d, entries, err = t.DeleteVersion(ctx, id.Key, id.VersionID, bypass)
	}
	if err != nil {
		return Deleted{}, 0, err
	}
	apply(tx, entries)
	return d, min(len(entries), 1), nil
}
