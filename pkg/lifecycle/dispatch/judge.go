// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// judgeAll judges items, which are sorted by key, by a tree, and returns what they change in it, by key. An item of which the tree holds nothing that can be understood is Blocked, and so are the others of its key that have to
// do with it; an error is one of reading the tree.
func judgeAll(ctx context.Context, tree *graveler.Tree, versioning catalog.Versioning, now time.Time, items []task) ([]graveler.Entry, error) {
	r := &overlay{tree: tree, entries: map[string]change{}}
	var changes []graveler.Entry
	for len(items) > 0 {
		n := 1
		for n < len(items) && items[n].LogicalKey == items[0].LogicalKey {
			n++
		}
		g := group{overlay: r, key: items[0].LogicalKey, transition: catalog.Transition{Reader: r, Versioning: versioning, Now: now}}
		g.judge(ctx, items[:n])
		if err := errors.Join(r.failed, ctx.Err()); err != nil {
			return nil, err
		}
		changes = r.flush(changes)
		items = items[n:]
	}
	slices.SortFunc(changes, func(a, b graveler.Entry) int { return bytes.Compare(a.Key, b.Key) })
	// Two keys have an entry in common only where both have an upload of the same ID, and thus the same parts.
	return slices.CompactFunc(changes, func(a, b graveler.Entry) bool { return bytes.Equal(a.Key, b.Key) }), nil
}

// overlay shows a tree with the changes to one key's entries.
type overlay struct {
	tree    *graveler.Tree
	entries map[string]change // what was read or changed
	failed  error             // the first error of the tree
}

type change struct {
	value   *graveler.Value
	changed bool
}

// Get implements [catalog.Reader].
func (o *overlay) Get(_ context.Context, keys ...graveler.Key) ([]*graveler.Value, error) {
	values := make([]*graveler.Value, len(keys))
	for i, key := range keys {
		e, known := o.entries[string(key)]
		if !known {
			v, err := o.tree.Get(key)
			if err != nil {
				return nil, o.fail(err)
			}
			e.value = v
			o.entries[string(key)] = e
		}
		values[i] = e.value
	}
	return values, nil
}

// List implements [catalog.Reader]. Like that of a transaction it shows the tree without the changes.
func (o *overlay) List(ctx context.Context, opts graveler.ListOptions) iter.Seq2[graveler.Listing, error] {
	return func(yield func(graveler.Listing, error) bool) {
		for l, err := range o.tree.List(ctx, opts) {
			if !yield(l, o.fail(err)) {
				return
			}
		}
	}
}

func (o *overlay) fail(err error) error {
	if err != nil && o.failed == nil {
		o.failed = err
	}
	return err
}

func (o *overlay) apply(entries []graveler.Entry) {
	for _, e := range entries {
		o.entries[string(e.Key)] = change{e.Value, true}
	}
}

// removed reports whether an entry of the tree is there no more.
func (o *overlay) removed(key graveler.Key) bool {
	e := o.entries[string(key)]
	return e.changed && e.value == nil
}

// flush appends the changes and forgets the key.
func (o *overlay) flush(changes []graveler.Entry) []graveler.Entry {
	for key, e := range o.entries {
		if e.changed {
			changes = append(changes, graveler.Entry{Key: graveler.Key(key), Value: e.value})
		}
	}
	clear(o.entries)
	return changes
}

// group judges the items of one key.
type group struct {
	*overlay
	key        string
	transition catalog.Transition
	versions   catalog.Versions
}

func (g *group) judge(ctx context.Context, items []task) {
	for _, t := range items {
		*t.Result = Result{}
	}
	versions, err := catalog.ReadVersions(ctx, g.overlay, g.key)
	g.versions = versions
	if err == nil {
		err = g.ranked(ctx, items)
	}
	current, _ := g.versions.Current()
	rest := func(marker bool) {
		for _, t := range items {
			switch {
			case t.Outcome != 0 || marker != (current.Object.DeleteMarker && bytes.Equal(t.Key, current.Place)):
			case err != nil:
				*t.Result = Result{Outcome: lifecycle.Blocked, Reason: err.Error()}
			default:
				*t.Result = g.decide(ctx, t.Item, unranked)
			}
		}
	}
	rest(false)
	rest(true) // which may be alone by now
}

// unranked is the rank of what is older than every version that had to be counted.
const unranked = int(^uint(0) >> 1)

// ranked decides about the items that count newer versions, and about the others that are come across in counting. It counts no further than the items ask for, since what is older than that has rank enough.
func (g *group) ranked(ctx context.Context, items []task) error {
	most := 0
	for _, t := range items {
		most = max(most, t.Action.NewerNoncurrent)
	}
	if most == 0 {
		return nil
	}
	newer := 0
	for v, err := range g.versions.Noncurrent(ctx) {
		if err != nil {
			return err
		}
		first, _ := slices.BinarySearchFunc(items, v.Place, func(t task, place graveler.Key) int { return bytes.Compare(t.Key, place) })
		for _, t := range items[first:] {
			if !bytes.Equal(t.Key, v.Place) {
				break
			}
			*t.Result = g.decide(ctx, t.Item, newer)
		}
		if g.removed(v.Place) {
			continue
		}
		if newer++; newer == most {
			break
		}
	}
	return nil
}

// decide judges an item that has that many newer noncurrent versions, and carries it out in the overlay.
func (g *group) decide(ctx context.Context, item *Item, newer int) Result {
	result, entries, err := g.act(ctx, item, newer)
	if err != nil {
		return Result{Outcome: lifecycle.Blocked, Reason: err.Error()}
	}
	g.apply(entries)
	return result
}

func (g *group) act(ctx context.Context, item *Item, newer int) (Result, []graveler.Entry, error) {
	noop := Result{Outcome: lifecycle.NoopResolved}
	o, found, err := g.object(ctx, item)
	if err != nil || !found || !bytes.Equal(o.ContentIdentity, item.ContentIdentity) {
		return noop, nil, err
	}
	o.NewerNoncurrent = newer
	if o.Kind == lifecycle.Marker && item.Action.Kind.On(lifecycle.Marker) {
		if o.Sole, err = g.sole(ctx); err != nil {
			return noop, nil, err
		}
	}
	if !item.Action.Applies(&o) {
		return noop, nil, nil
	}
	if until, locked := o.Locked(g.transition.Now); locked && item.Action.Permanent(&o) {
		return Result{Outcome: lifecycle.SkippedObjectLock, Until: until}, nil, nil
	}
	entries, err := g.carryOut(ctx, item, &o)
	if errors.Is(err, catalog.AccessDenied) {
		until, err := g.nullLock(ctx)
		return Result{Outcome: lifecycle.SkippedObjectLock, Until: until}, nil, err
	}
	return Result{Outcome: lifecycle.Done}, entries, err
}

// object returns what the entry of an item holds now. Half of an unfinished put or delete is nothing.
func (g *group) object(ctx context.Context, item *Item) (lifecycle.Object, bool, error) {
	place, err := catalog.ParseKey(item.Key)
	if err == nil && place.Key != g.key {
		err = fmt.Errorf("%w: entry %q is not one of %q", graveler.ErrInvalidValue, item.Key, g.key)
	}
	if err != nil {
		return lifecycle.Object{}, false, err
	}
	values, err := g.Get(ctx, item.Key)
	if err != nil || values[0] == nil {
		return lifecycle.Object{}, false, err
	}
	if place.Kind == catalog.KindUpload {
		return lifecycle.Object{Kind: lifecycle.Upload, Key: place.Key, VersionID: place.UploadID, ContentIdentity: []byte(place.UploadID), Versioning: g.transition.Versioning}, true, nil
	}
	o, err := lifecycle.NewObject(place, *values[0], g.transition.Versioning)
	if err != nil || g.versions.Half(item.Key, o.VersionID) {
		return lifecycle.Object{}, false, err
	}
	current, _ := g.versions.Current()
	if o.Kind == lifecycle.Marker && !bytes.Equal(current.Place, item.Key) {
		o.Kind = lifecycle.Noncurrent
	}
	if o.Versioning == catalog.VersioningOff && !o.Null() {
		o.Versioning = catalog.VersioningSuspended // as the transition takes it: the version is kept
	}
	return o, true, nil
}

// sole reports whether no version is left but the one that is current.
func (g *group) sole(ctx context.Context) (bool, error) {
	for v, err := range g.versions.Noncurrent(ctx) {
		if err != nil || !g.removed(v.Place) {
			return false, err
		}
	}
	return true, nil
}

// carryOut returns the changes that an action makes.
func (g *group) carryOut(ctx context.Context, item *Item, o *lifecycle.Object) ([]graveler.Entry, error) {
	switch place, _ := catalog.ParseKey(item.Key); {
	case o.Kind == lifecycle.Upload:
		return g.transition.AbortUpload(ctx, g.key, o.VersionID)
	case o.Kind == lifecycle.Current:
		_, entries, err := g.transition.Delete(ctx, g.key)
		return entries, err
	case place.Kind == catalog.KindMarker:
		_, entries, err := g.transition.DeleteVersion(ctx, g.key, o.VersionID, false)
		return entries, err
	default: // a version that is aside leaves nothing to put right
		return []graveler.Entry{{Key: item.Key}}, nil
	}
}

// nullLock returns when the lock ends of the null version that is aside, which a null delete marker would have replaced.
func (g *group) nullLock(ctx context.Context) (time.Time, error) {
	for v, err := range g.versions.Noncurrent(ctx) {
		if err != nil {
			return time.Time{}, err
		}
		if v.Object.VersionID == catalog.NullVersion {
			if l := v.Object.Lock; !l.LegalHold {
				return l.RetainUntil, nil
			}
			break
		}
	}
	return time.Time{}, nil
}
