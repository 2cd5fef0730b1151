// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// maxAhead is how far the modification time that a caller gives may be ahead of this machine's clock: as far as clocks may be apart.
const maxAhead = 5 * time.Minute

// Put makes o the current version of a key, if the conditions hold, and returns it with its version ID and the time of its
// modification: now, where o has none. Where the bucket keeps versions, the one before stays as a noncurrent one, and times of
// versions never run backwards, whatever the clocks of the writers say: ModifiedAt may be a little later than now then. What o
// says of version ID, delete marker and noncurrent time is not looked at.
//
// A lock needs a bucket with object lock; without one o gets the bucket's default retention. To overwrite a version that is not
// kept, and is locked, is AccessDenied. Of several puts at the same time that are conditional on the same state one succeeds. It
// costs the reading of one entry and one write of the key/value store; the bucket's settings are read once per commit of the
// branch.
func (c *Catalog) Put(ctx context.Context, b Bucket, key string, o Object, conditions Conditions) (Object, error) {
	now := c.now()
	if err := checkPut(now, key, &o); err != nil {
		return Object{}, describe(err, "put", b, key)
	}
	put := o
	err := c.change(ctx, b, func(ctx context.Context, tx *graveler.Transaction, s settings) (int, error) {
		var err error
		put, err = putIn(ctx, tx, s, now, key, o, conditions)
		return 1, err
	})
	if err != nil {
		return Object{}, describe(err, "put", b, key)
	}
	return put, nil
}

// checkPut holds what is to be put to all limits that do not depend on the bucket.
func checkPut(now time.Time, key string, o *Object) error {
	err := cmp.Or(checkKey(key), o.check(), o.checkUser())
	switch {
	case err != nil:
		return err
	case o.ModifiedAt.After(now.Add(maxAhead)):
		return fmt.Errorf("%w: modified at %s, which is in the future", InvalidArgument, o.ModifiedAt.Format(time.RFC3339))
	}
	return checkRetention(now, o.Lock)
}

// putIn makes o the current version of a key when the transaction takes place.
func putIn(ctx context.Context, tx *graveler.Transaction, s settings, now time.Time, key string, o Object, conditions Conditions) (Object, error) {
	if conditions != (Conditions{}) {
		found, err := load(ctx, tx, currentKey(key))
		if err == nil {
			err = conditions.forChange(found[0].object)
		}
		if err != nil {
			return Object{}, err
		}
	}
	switch {
	case s.ObjectLock == nil && o.Lock != (Lock{}):
		return Object{}, errNoObjectLock
	case s.ObjectLock != nil && o.Lock.Mode == LockNone:
		retention := s.ObjectLock.lock(now)
		o.Lock.Mode, o.Lock.RetainUntil = retention.Mode, retention.RetainUntil
	}
	o, entries, err := Transition{tx, s.Versioning, now}.Put(ctx, key, o)
	if err == nil {
		apply(tx, entries)
	}
	return o, err
}

// apply stages the entries of a transition.
func apply(tx *graveler.Transaction, entries []graveler.Entry) {
	for _, e := range entries {
		if e.Value == nil {
			tx.Delete(e.Key)
		} else {
			tx.Set(e.Key, *e.Value)
		}
	}
}
