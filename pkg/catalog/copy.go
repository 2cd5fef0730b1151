// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// CopyParams says how to copy. The zero value copies everything but the lock.
type CopyParams struct {
	VersionID string // of the source; "": its current version
	// Source are conditions on the source, where each that does not hold is PreconditionFailed, Target those of Put.
	Source, Target Conditions
	// ReplaceMetadata takes ContentType and Metadata from here, ReplaceTags Tags (the REPLACE directives of S3); otherwise they are the source's.
	ReplaceMetadata bool
	ContentType     string
	Metadata        map[string]string
	ReplaceTags     bool
	Tags            map[string]string
	StorageClass    string // "": the source's
	Lock            Lock   // as in Put
	// Address is where the bytes of the copy are; "": where those of the source are. Between repositories it must be given, since
	// what keeps the bytes of one from being removed does not look at the other.
	Address string
}

// Copy puts what the source has, without its bytes, as an object of its own. To copy an object that is current onto itself
// without a change of metadata, class or address is InvalidRequest. Within a branch, source and target are of one instant. Between
// branches, a source that is not committed may be displaced, and be told to RetainParams.Release, before the copy is there to keep
// its address: commit it first, or give the copy an address of its own.
func (c *Catalog) Copy(ctx context.Context, from Bucket, source string, to Bucket, target string, p CopyParams) (Object, error) {
	o, err := c.copy(ctx, from, source, to, target, p)
	if err != nil {
		return Object{}, describe(fmt.Errorf("to %s:%q: %w", to, target, err), "copy", from, source)
	}
	return o, nil
}

func (c *Catalog) copy(ctx context.Context, from Bucket, source string, to Bucket, target string, p CopyParams) (put Object, err error) {
	now := c.now()
	said := Object{PhysicalAddress: p.Address, ContentType: p.ContentType, Metadata: p.Metadata, Tags: p.Tags, StorageClass: p.StorageClass, Lock: p.Lock}
	err = cmp.Or(checkKey(source), checkVersionID(p.VersionID), checkPut(now, target, &said))
	if err == nil && from.Repository != to.Repository && p.Address == "" {
		err = fmt.Errorf("%w: a copy in another repository needs an address of its own", InvalidRequest)
	}
	if err != nil {
		return Object{}, err
	}
	sourceRef, err := c.ref(ctx, from)
	if err != nil {
		return Object{}, err
	}
	targetRef, err := c.ref(ctx, to)
	if err != nil {
		return Object{}, err
	}
	here := from.Repository == to.Repository && sourceRef == targetRef
	err = c.change(ctx, to, func(ctx context.Context, tx *graveler.Transaction, s settings) (int, error) {
		var r Reader = reader{c.store, from.Repository, sourceRef}
		if here {
			r = tx
		}
		v, err := find(ctx, r, source, p.VersionID)
		if err != nil {
			return 0, err
		}
		if here && source == target && p.VersionID == "" && !p.changes(v.object) {
			return 0, fmt.Errorf("%w: it is copied onto itself without a change of its metadata, storage class or address", InvalidRequest)
		}
		err = p.Source.forRead(v.object)
		if errors.Is(err, NotModified) {
			err = fmt.Errorf("%w: of the source: %s", PreconditionFailed, err)
		}
		if err == nil {
			put, err = putIn(ctx, tx, s, now, target, p.apply(*v.object), p.Target)
		}
		return 1, err
	})
	return put, err
}

// changes reports whether a copy of o is more than its metadata over again.
func (p CopyParams) changes(o *Object) bool {
	return p.ReplaceMetadata || p.StorageClass != "" && p.StorageClass != o.StorageClass || p.Address != "" && p.Address != o.PhysicalAddress
}

// apply returns the copy of o.
func (p CopyParams) apply(o Object) Object {
	o.ModifiedAt, o.Lock = time.Time{}, p.Lock
	o.PhysicalAddress = cmp.Or(p.Address, o.PhysicalAddress)
	o.StorageClass = cmp.Or(p.StorageClass, o.StorageClass)
	if p.ReplaceMetadata {
		o.ContentType, o.Metadata = p.ContentType, maps.Clone(p.Metadata)
	}
	if p.ReplaceTags {
		o.Tags = maps.Clone(p.Tags)
	}
	return o
}
