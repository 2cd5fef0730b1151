// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// KeepLocked returns a guard for graveler.Hooks, which every process that changes the store must have: merges, resets and all
// else that changes entries without knowing versions is AccessDenied where a version that the branch shows, and a lock keeps,
// would go from it, or have a weaker lock. So is what brings such a version to the head, if uncommitted changes would hide it.
// Nobody can bypass governance here. DeletePrefix of package graveler, which does not look at what it removes, is refused
// wherever a bucket has object lock. now is the clock; nil: time.Now.
//
// It costs the reading of one setting, and, where the bucket has object lock, that of all that changes.
func KeepLocked(now func() time.Time) func(ctx context.Context, r *graveler.Revision) error {
	if now == nil {
		now = time.Now
	}
	return func(ctx context.Context, r *graveler.Revision) error {
		stored, err := r.Setting(ctx, settingName)
		if errors.Is(err, graveler.ErrSettingNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		s, err := parseSettings(r.Repository, stored)
		switch {
		case err != nil || s.ObjectLock == nil:
			return err
		case r.DeletesPrefix:
			return fmt.Errorf("%w: repository %s has object lock, and a prefix goes without a look at what is below it: delete the objects", AccessDenied, r.Repository)
		}
		k := lockKeeper{r, Transition{Now: now()}}
		if err := k.keep(ctx, r.Before, r.After, ""); err != nil || r.After == r.NewHead {
			return err
		}
		return k.keep(ctx, r.NewHead, r.After, r.OldHead)
	}
}

// lockKeeper looks at what a revision does to locked versions.
type lockKeeper struct {
	*graveler.Revision
	Transition
}

// snapshot shows one tree of a revision.
type snapshot struct {
	r    *graveler.Revision
	tree graveler.MetaRangeID
}

func (s snapshot) Get(ctx context.Context, keys ...graveler.Key) ([]*graveler.Value, error) {
	return s.r.Get(ctx, s.tree, keys...)
}

// keep returns AccessDenied where a locked version of the tree before is not in the tree after, unless the tree known has it.
func (k lockKeeper) keep(ctx context.Context, before, after, known graveler.MetaRangeID) error {
	for d, err := range k.Diff(ctx, before, after) {
		if err != nil {
			return err
		}
		if d.Left == nil {
			continue
		}
		at, err := ParseKey(d.Key)
		if err != nil || at.Kind != KindCurrent && at.Kind != KindNull && at.Kind != KindNoncurrent {
			continue // what is no entry of a bucket has no lock
		}
		o, err := decodeAt(d.Key, *d.Left)
		if err == nil && !o.DeleteMarker {
			err = k.keepVersion(ctx, at.Key, occupant{d.Key, o}, before, after, known)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (k lockKeeper) keepVersion(ctx context.Context, key string, v occupant, before, after, known graveler.MetaRangeID) error {
	held, err := k.find(ctx, before, key, v)
	if err != nil || !bytes.Equal(held.place, v.place) {
		return err // half of a move: what counts is in another place
	}
	kept, err := k.find(ctx, after, key, v)
	if err != nil {
		return err
	}
	if kept.exists() && !bytes.Equal(kept.place, v.place) {
		k.Rely(v.place)
		k.Rely(kept.place)
	}
	barred := k.permit(v, false)
	if barred == nil || kept.exists() && kept.object.Lock.covers(v.object.Lock, k.Now) {
		return nil
	}
	if known != "" {
		excused, err := k.find(ctx, known, key, v)
		if err != nil || excused.exists() {
			return err
		}
	}
	if kept.exists() {
		return fmt.Errorf("%w, and would have a weaker lock in %q", barred, key)
	}
	return fmt.Errorf("%w, and %q would lose it", barred, key)
}

// find returns a version of a key as a tree has it.
func (k lockKeeper) find(ctx context.Context, tree graveler.MetaRangeID, key string, v occupant) (occupant, error) {
	found, err := load(ctx, snapshot{k.Revision, tree}, currentKey(key), markerKey(key), versionKey(key, v.object.VersionID))
	if err != nil {
		return occupant{}, err
	}
	// Of two null versions one may have taken the place of the other.
	if f := firstOf(v.object.VersionID, found); f.exists() && bytes.Equal(f.object.ContentIdentity(), v.object.ContentIdentity()) {
		return f, nil
	}
	return occupant{}, nil
}

// retains reports whether a retention has not ended.
func (l Lock) retains(now time.Time) bool { return l.Mode != LockNone && now.Before(l.RetainUntil) }

// covers reports whether a lock keeps a version at least as long as another one does, and no less strictly.
func (l Lock) covers(other Lock, now time.Time) bool {
	weaker := l.Mode < other.Mode || l.RetainUntil.Before(other.RetainUntil)
	return (l.LegalHold || !other.LegalHold) && !(other.retains(now) && weaker)
}
