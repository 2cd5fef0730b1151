// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Retention keeps a version from being removed until a time. The zero value is none.
type Retention struct {
	Mode  LockMode
	Until time.Time
}

var errNoObjectLock = fmt.Errorf("%w: the bucket has no object lock", InvalidRequest)

// checkRetention refuses a retention that a version cannot be given.
func checkRetention(now time.Time, l Lock) error {
	switch err := l.check(); {
	case err != nil:
		return err
	case l.Mode != LockNone && !now.Before(l.RetainUntil):
		return fmt.Errorf("%w: a retention until %s is over already", InvalidArgument, l.RetainUntil.Format(time.RFC3339))
	}
	return nil
}

// Retention returns the retention of a version, "" being the current one; NoSuchObjectLockConfiguration where it has none.
func (c *Catalog) Retention(ctx context.Context, b Bucket, key, version string) (Retention, error) {
	o, err := c.get(ctx, b, key, version)
	if err == nil && o.Lock.Mode == LockNone {
		err = NoSuchObjectLockConfiguration
	}
	if err != nil {
		return Retention{}, describe(err, "get retention of", b, key)
	}
	return Retention{o.Lock.Mode, o.Lock.RetainUntil}, nil
}

// PutRetention sets the retention of a version. One that has not ended can be made longer; to make it shorter, to change its mode
// or to remove it is AccessDenied, unless its mode is GOVERNANCE and bypassGovernance is set.
func (c *Catalog) PutRetention(ctx context.Context, b Bucket, key, version string, r Retention, bypassGovernance bool) error {
	now := c.now()
	if err := checkRetention(now, Lock{Mode: r.Mode, RetainUntil: r.Until}); err != nil {
		return describe(err, "put retention of", b, key)
	}
	err := c.lock(ctx, b, key, version, func(o *Object) error {
		old := o.Lock
		weaker := r.Mode != old.Mode || r.Until.Before(old.RetainUntil)
		if now.Before(old.RetainUntil) && weaker && (old.Mode != LockGovernance || !bypassGovernance) {
			return fmt.Errorf("%w: it is retained until %s, in %s mode", AccessDenied, old.RetainUntil.Format(time.RFC3339), old.Mode)
		}
		o.Lock.Mode, o.Lock.RetainUntil = r.Mode, r.Until.UTC()
		return nil
	})
	return describe(err, "put retention of", b, key)
}

// LegalHold reports whether a version is under legal hold.
func (c *Catalog) LegalHold(ctx context.Context, b Bucket, key, version string) (bool, error) {
	o, err := c.get(ctx, b, key, version)
	return err == nil && o.Lock.LegalHold, describe(err, "get legal hold of", b, key)
}

// PutLegalHold puts a version under legal hold, which keeps it until the hold is taken back.
func (c *Catalog) PutLegalHold(ctx context.Context, b Bucket, key, version string, hold bool) error {
	err := c.lock(ctx, b, key, version, func(o *Object) error {
		o.Lock.LegalHold = hold
		return nil
	})
	return describe(err, "put legal hold of", b, key)
}

// lock edits the lock of a version.
func (c *Catalog) lock(ctx context.Context, b Bucket, key, version string, edit func(o *Object) error) error {
	return c.edit(ctx, b, key, version, func(s settings, o *Object) error {
		if s.ObjectLock == nil {
			return errNoObjectLock
		}
		return edit(o)
	})
}

// edit changes what is said about a version.
func (c *Catalog) edit(ctx context.Context, b Bucket, key, version string, edit func(s settings, o *Object) error) error {
	if err := cmp.Or(checkKey(key), checkVersionID(version)); err != nil {
		return err
	}
	return c.change(ctx, b, func(ctx context.Context, tx *graveler.Transaction, s settings) (int, error) {
		_, entries, err := Transition{tx, s.Versioning, c.now()}.Edit(ctx, key, version, func(o *Object) error { return edit(s, o) })
		if err == nil {
			apply(tx, entries)
		}
		return len(entries), err
	})
}
