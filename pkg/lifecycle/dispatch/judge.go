// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// judgeAll judges items, which are sorted by key, by a tree, and returns what they change in it, by key. An item of which the
// tree holds nothing that can be understood is Blocked, and so are the others of its key that have to do with it; an error is one
// of reading the tree.
func judgeAll(ctx context.Context, tree *graveler.Tree, versioning catalog.Versioning, now time.Time, items []task) ([]graveler.Entry, error) {
	j := judge{reader: reader{tree: tree, ahead: map[string]*graveler.Value{}}, versioning: versioning, now: now}
	changes := make([]graveler.Entry, 0, len(items))
	for len(items) > 0 {
		part := items[:wholeKeys(items, readAhead)]
		items = items[len(part):]
		rest, plain, err := j.plain(part)
		if err == nil {
			err = j.readFor(rest)
		}
		if err != nil {
			return nil, err
		}
		others, err := j.others(ctx, rest)
		if err != nil {
			return nil, err
		}
		changes = append(append(changes, plain...), others...)
	}
	slices.SortFunc(changes, func(a, b graveler.Entry) int { return bytes.Compare(a.Key, b.Key) })
	// Two keys have an entry in common only where both have an upload of the same ID, and thus the same parts.
	return slices.CompactFunc(changes, func(a, b graveler.Entry) bool { return bytes.Equal(a.Key, b.Key) }), nil
}

// wholeKeys returns the number of the first items, so many if there are as many, and those of the last one's key that follow.
func wholeKeys(items []task, n int) int {
	n = min(n, len(items))
	for n < len(items) && items[n].LogicalKey == items[n-1].LogicalKey {
		n++
	}
	return n
}

// judge is what all items are judged by.
type judge struct {
	reader
	versioning catalog.Versioning
	now        time.Time
}

// plain judges the items of which nothing needs to be decoded: in a bucket that keeps no versions, the only item of a key whose
// entry still has the value that was judged when the item was made. No other entry has a say there, and nothing is put in its
// place. The others are returned as they are.
func (j *judge) plain(items []task) (others []task, changes []graveler.Entry, err error) {
	if j.versioning != catalog.VersioningOff {
		return items, nil, nil
	}
	for len(items) > 0 {
		n := wholeKeys(items, 1)
		t := items[0]
		var value *graveler.Value
		if n == 1 && t.Object != nil && t.Object.Kind == lifecycle.Current && t.Object.Null() && string(t.Key) == t.LogicalKey {
			if value, err = j.tree.Get(t.Key); err != nil {
				return nil, nil, err
			}
		}
		if value == nil || !bytes.Equal(value.Identity, t.Value) {
			others = append(others, items[:n]...)
			items = items[n:]
			continue
		}
		items = items[n:]
		o := *t.Object
		o.Versioning = j.versioning
		switch until, locked := o.Locked(j.now); {
		case !bytes.Equal(o.ContentIdentity, t.ContentIdentity) || !t.Action.Applies(&o):
			*t.Result = Result{Outcome: lifecycle.NoopResolved}
		case locked:
			*t.Result = Result{Outcome: lifecycle.SkippedObjectLock, Until: until}
		default:
			*t.Result = Result{Outcome: lifecycle.Done}
			changes = append(changes, graveler.Entry{Key: t.Key})
		}
	}
	return others, changes, nil
}

// others judges items key by key, several keys at a time.
func (j *judge) others(ctx context.Context, items []task) ([]graveler.Entry, error) {
	workers, ctx := errgroup.WithContext(ctx)
	n := len(items)/runtime.GOMAXPROCS(0) + 1
	var parts []*[]graveler.Entry
	for len(items) > 0 {
		part, changes := items[:wholeKeys(items, n)], new([]graveler.Entry)
		items = items[len(part):]
		parts = append(parts, changes)
		workers.Go(func() (err error) {
			*changes, err = j.each(ctx, part)
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	var changes []graveler.Entry
	for _, part := range parts {
		changes = append(changes, *part...)
	}
	return changes, nil
}

func (j *judge) each(ctx context.Context, items []task) (changes []graveler.Entry, err error) {
	o := &overlay{reader: &j.reader, entries: map[string]change{}}
	for len(items) > 0 {
		n := wholeKeys(items, 1)
		g := group{overlay: o, key: items[0].LogicalKey, transition: catalog.Transition{Reader: o, Versioning: j.versioning, Now: j.now}}
		g.judge(ctx, items[:n])
		if err := errors.Join(o.failed, ctx.Err()); err != nil {
			return nil, err
		}
		changes = o.flush(changes)
		items = items[n:]
	}
	return changes, nil
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

// ranked decides about the items that count newer versions, and about the others that are come across in counting. It counts no
// further than the items ask for, since what is older than that has rank enough.
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
	if item.Object != nil && !o.NoncurrentSince.Equal(item.Object.NoncurrentSince) { // all other times are part of its identity
		return noop, nil, nil
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
	if err == nil && place.Kind == catalog.KindPart {
		return g.lostPart(ctx, item, place)
	}
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
	o, err := g.decode(item, place, *values[0])
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

// lostPart returns a part that no upload has any more, as if it were an upload.
func (g *group) lostPart(ctx context.Context, item *Item, place catalog.Place) (lifecycle.Object, bool, error) {
	values, err := g.Get(ctx, item.Key)
	if err != nil || values[0] == nil {
		return lifecycle.Object{}, false, err
	}
	identity := values[0].Identity
	key, upload, err := catalog.UploadOfPart(place, *values[0])
	if err != nil || key != g.key {
		return lifecycle.Object{}, false, err
	}
	if values, err = g.Get(ctx, upload); err != nil || values[0] != nil {
		return lifecycle.Object{}, false, err
	}
	return lifecycle.Object{Kind: lifecycle.Upload, Key: key, VersionID: place.UploadID, ContentIdentity: identity, Versioning: g.transition.Versioning}, true, nil
}

// decode returns the object that a value holds, by what is known of it where it is the value that was judged when the item was made.
func (g *group) decode(item *Item, place catalog.Place, value graveler.Value) (lifecycle.Object, error) {
	if item.Object == nil || !bytes.Equal(item.Value, value.Identity) {
		return lifecycle.NewObject(place, value, g.transition.Versioning)
	}
	o := *item.Object
	o.Kind, o.Versioning, o.Sole, o.NewerNoncurrent = lifecycle.KindAt(place.Kind), g.transition.Versioning, false, 0
	return o, nil
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
	case o.Kind == lifecycle.Upload && place.Kind == catalog.KindUpload:
		return g.transition.AbortUpload(ctx, g.key, o.VersionID)
	case o.Kind == lifecycle.Current:
		_, entries, err := g.transition.Delete(ctx, g.key)
		return entries, err
	case place.Kind == catalog.KindMarker:
		_, entries, err := g.transition.DeleteVersion(ctx, g.key, o.VersionID, false)
		return entries, err
	default: // a version that is aside leaves nothing to put right, nor does a part
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
