// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// modelVersion is a version of a key as S3 shows it.
type modelVersion struct {
	id      string // "null" for a null version
	marker  bool
	address string
	tags    map[string]string
	lock    Lock
	at      int64 // when it was made
	since   int64 // when it was displaced, 0 of the current one
}

func (v modelVersion) String() string {
	return fmt.Sprintf("%s marker=%t address=%s tags=%v lock=%v at=%d since=%d", v.id, v.marker, v.address, v.tags, v.lock, v.at, v.since)
}

// modelKey is what a key has: versions, the first of which is the current one, unless there is none.
type modelKey struct {
	versions []modelVersion
	headless bool // no version is current
}

func (k modelKey) clone() modelKey {
	k.versions = slices.Clone(k.versions)
	return k
}

// modelBranch is what a branch shows.
type modelBranch map[string]modelKey

func (b modelBranch) clone() modelBranch {
	c := modelBranch{}
	for key, k := range b {
		c[key] = k.clone()
	}
	return c
}

// current returns the object that is current, nil where there is none.
func (k modelKey) current() *modelVersion {
	if k.headless || len(k.versions) == 0 || k.versions[0].marker {
		return nil
	}
	return &k.versions[0]
}

func (k modelKey) find(id string) int {
	return slices.IndexFunc(k.versions, func(v modelVersion) bool { return v.id == id })
}

// locked reports whether a version must stay, in the words of the object lock documentation.
func (v modelVersion) locked(now time.Time, bypass bool) bool {
	if v.marker {
		return false
	}
	retained := v.lock.Mode != LockNone && v.lock.RetainUntil.After(now)
	return v.lock.LegalHold || retained && !(v.lock.Mode == LockGovernance && bypass)
}

// loses reports whether a key that becomes other loses a version that must stay, or its lock.
func (k modelKey) loses(other modelKey, now time.Time) bool {
	return slices.ContainsFunc(k.versions, func(v modelVersion) bool {
		i := other.find(v.id)
		return v.locked(now, false) && (i < 0 || other.versions[i].address != v.address || !other.versions[i].lock.covers(v.lock, now))
	})
}

// add makes v the current version under a versioning.
func (k *modelKey) add(versioning Versioning, v modelVersion, now time.Time) error {
	switch versioning {
	case VersioningOff:
		if cur := k.current(); cur != nil && cur.locked(now, false) {
			return AccessDenied
		}
		k.versions = nil
	case VersioningSuspended:
		if i := k.find(NullVersion); i >= 0 {
			if k.versions[i].locked(now, false) {
				return AccessDenied
			}
			k.drop(i)
			if i == 0 {
				k.headless = true // until it is taken by v
			}
		}
	}
	if !k.headless && len(k.versions) > 0 {
		k.versions[0].since = v.at
	}
	k.versions = append([]modelVersion{v}, k.versions...)
	k.headless = false
	k.sort()
	return nil
}

// sort orders what is not current, newest first. Only what was interrupted has two of the same time.
func (k *modelKey) sort() {
	rest := k.versions
	if !k.headless && len(rest) > 0 {
		rest = rest[1:]
	}
	slices.SortStableFunc(rest, func(a, b modelVersion) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.id, b.id)) })
}

func (k *modelKey) drop(i int) { k.versions = slices.Delete(slices.Clone(k.versions), i, i+1) }

// remove removes a version for good.
func (k *modelKey) remove(id string, now time.Time, bypass bool) error {
	i := k.find(id)
	if i < 0 {
		return nil
	}
	if k.versions[i].locked(now, bypass) {
		return AccessDenied
	}
	k.drop(i)
	if i == 0 && !k.headless && len(k.versions) > 0 {
		k.versions[0].since = 0
	}
	return nil
}

// judge says what S3 answers to a conditional change.
func (k modelKey) judge(c Conditions) error {
	cur := k.current()
	switch {
	case c.IfNoneMatch == "*" && cur != nil:
		return PreconditionFailed
	case c.IfMatch != "" && cur == nil:
		return NoSuchKey
	case c.IfMatch != "" && c.IfMatch != "*" && c.IfMatch != cur.address:
		return PreconditionFailed
	}
	return nil
}

// show reads everything that a ref has, in the form of the model. strict holds it to the form that it has where nothing was interrupted.
func (f *fixture) show(ref string, strict bool) (modelBranch, error) {
	ctx := context.Background()
	type raw struct {
		current, marker *Object
		asides          []*Object
	}
	keys := map[string]*raw{}
	for l, err := range f.Graveler.List(ctx, f.name, ref, graveler.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		p, err := ParseKey(l.Key)
		if err != nil {
			return nil, err
		}
		o, err := Decode(*l.Value)
		if err != nil {
			return nil, err
		}
		r := keys[p.Key]
		if r == nil {
			r = &raw{}
			keys[p.Key] = r
		}
		switch p.Kind {
		case KindCurrent:
			r.current = &o
		case KindMarker:
			r.marker = &o
		default:
			if o.VersionID != p.VersionID {
				return nil, fmt.Errorf("version %q at %q", o.VersionID, l.Key)
			}
			r.asides = append(r.asides, &o)
		}
	}
	branch := modelBranch{}
	for key, r := range keys {
		null := slices.ContainsFunc(r.asides, func(o *Object) bool { return o.VersionID == NullVersion && !o.DeleteMarker })
		if r.current != nil && !isNull(r.current.VersionID) && r.marker != nil && isNull(r.marker.VersionID) && null {
			if strict {
				return nil, fmt.Errorf("key %q has two null versions", key)
			}
			r.marker = nil
		}
		heads := []*Object{}
		for _, o := range []*Object{r.current, r.marker} {
			if o != nil {
				heads = append(heads, o)
			}
		}
		k := modelKey{headless: len(heads) == 0}
		if strict && len(heads) != 1 {
			return nil, fmt.Errorf("key %q has %d current versions", key, len(heads))
		}
		if (r.current != nil && r.current.DeleteMarker) || (r.marker != nil && !r.marker.DeleteMarker) {
			return nil, fmt.Errorf("key %q: an object and a marker are in each other's place", key)
		}
		for i, o := range append(heads, r.asides...) {
			v := modelOf(*o)
			if k.find(v.id) >= 0 { // half of a move
				if strict {
					return nil, fmt.Errorf("key %q has version %s twice", key, v.id)
				}
				continue
			}
			if strict && (v.since == 0) != (i == 0) {
				return nil, fmt.Errorf("key %q: noncurrent since %d: %v", key, i, v)
			}
			k.versions = append(k.versions, v)
		}
		k.sort()
		for i := 1; strict && i < len(k.versions); i++ {
			if k.versions[i-1].at <= k.versions[i].at {
				return nil, fmt.Errorf("key %q: versions out of order: %v", key, k.versions)
			}
		}
		branch[key] = k
	}
	return branch, nil
}

func modelOf(o Object) modelVersion {
	v := modelVersion{id: o.VersionID, marker: o.DeleteMarker, address: o.PhysicalAddress, tags: o.Tags, lock: o.Lock, at: nanosecond(o.ModifiedAt), since: nanosecond(o.NoncurrentSince)}
	if v.id == "" {
		v.id = NullVersion
	}
	return v
}

// differ says how a branch differs from what it should be, "" where it does not. Since when a marker is noncurrent is left out:
// one beside an object does not know.
func (b modelBranch) differ(want modelBranch) string {
	show := func(k modelKey) string {
		var lines []string
		for _, v := range k.versions {
			if v.marker {
				v.since = 0
			}
			lines = append(lines, v.String())
		}
		return fmt.Sprint(strings.Join(lines, "\n     "), " ", k.headless)
	}
	names := map[string]bool{}
	for _, m := range []modelBranch{b, want} {
		for key, k := range m {
			if len(k.versions) > 0 {
				names[key] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(names)) {
		got, want := show(b[key]), show(want[key])
		if got != want {
			return fmt.Sprintf("%q\n got %s\nwant %s", key, got, want)
		}
	}
	return ""
}

// sameCode reports whether an outcome is the one that the model has.
func sameCode(got, want error) bool {
	if want == nil || got == nil {
		return want == nil && got == nil
	}
	return errors.Is(got, want)
}
