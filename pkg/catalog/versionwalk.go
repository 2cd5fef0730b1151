// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// versionQuery is what is left to list: what follows a version of a key, or, where version is "", what follows a key or common prefix.
type versionQuery struct{ prefix, delimiter, key, version string }

// versionResult is a version, or a common prefix, which is the Key then.
type versionResult struct {
	ListedVersion
	common bool
}

// same reports whether two readings have found the same version in the same role.
func (r versionResult) same(s versionResult) bool {
	return r.Key == s.Key && r.common == s.common && r.Latest == s.Latest && r.VersionID == s.VersionID && r.PhysicalAddress == s.PhysicalAddress && r.ModifiedAt.Equal(s.ModifiedAt)
}

// versions yields what q asks for; size is how much is read at a time.
//
// Objects that are current and all other versions are in two places, which no reading sees at one instant: a version that goes
// from one to the other might be in neither. So both are read twice, and what comes out the same counts: nothing was moved
// between the two readings of what is current then, since a version that was displaced comes back only when the one that
// displaced it is gone for good. It is the same with delete markers.
func (c *Catalog) versions(ctx context.Context, b Bucket, q versionQuery, size int) iter.Seq2[versionResult, error] {
	return func(yield func(versionResult, error) bool) {
		ref, err := c.ref(ctx, b)
		if err != nil {
			yield(versionResult{}, err)
			return
		}
		r := reader{c.store, b.Repository, ref}
		for most := size; ; {
			first, err := readVersions(ctx, r, q, most)
			var second []versionResult
			if err == nil {
				second, err = readVersions(ctx, r, q, most)
			}
			if err != nil {
				yield(versionResult{}, err)
				return
			}
			n := 0
			for n < min(len(first), len(second)) && first[n].same(second[n]) {
				if !yield(first[n], nil) {
					return
				}
				n++
			}
			switch {
			case n == len(first) && n == len(second) && n < most:
				return
			case n == 0: // writers are faster: less is read sooner
				most = max(most/2, 1)
			default:
				q.key, q.version, most = first[n-1].Key, first[n-1].VersionID, size
			}
		}
	}
}

// readVersions reads the first of what q asks for, at most limit.
func readVersions(ctx context.Context, r reader, q versionQuery, limit int) ([]versionResult, error) {
	w := versionWalk{limit: limit}
	var rest *versionGroup
	from := startAfter(versionsArea, q.key, q.prefix, q.delimiter)
	if _, inCommon := commonPrefix(q.key, q.prefix, q.delimiter); q.version != "" && strings.HasPrefix(q.key, q.prefix) && !inCommon {
		found, err := load(ctx, r, currentKey(q.key), markerKey(q.key), nullKey(q.key), versionKey(q.key, q.version))
		if err != nil {
			return nil, err
		}
		rest = newVersionGroup(q.key, found[0], found[1], found[2])
		from = rest.resume(q.version, found[3])
	}
	c, err := newCursor(ctx, r, versionsArea, q.prefix, from, limit)
	defer c.close()
	if err == nil && rest != nil {
		err = w.take(rest, c)
	}
	if err != nil || w.full() {
		return w.results, err
	}
	next, stop := iter.Pull2(r.List(ctx, graveler.ListOptions{
		Prefix: graveler.Key(q.prefix), Delimiter: q.delimiter, After: graveler.Key(max(q.key, afterReserved)), Limit: limit - len(w.results),
	}))
	defer stop()
	current, err, ok := next()
	for err == nil && (ok || c.valid) && !w.full() {
		key, common := string(current.Key), current.CommonPrefix
		if c.valid {
			reserved, inCommon := commonPrefix(c.place.Key, q.prefix, q.delimiter)
			if !inCommon {
				reserved = c.place.Key
			}
			if !ok || reserved < key {
				key, common = reserved, inCommon
			}
		}
		isCurrent := ok && string(current.Key) == key
		if common {
			w.results = append(w.results, versionResult{ListedVersion{Key: key}, true})
			err = c.skip(key)
		} else {
			err = w.takeKey(key, current, isCurrent, c)
		}
		if err == nil && isCurrent {
			current, err, ok = next()
		}
	}
	return w.results, err
}

// versionWalk gathers results.
type versionWalk struct {
	limit   int
	results []versionResult
}

func (w *versionWalk) full() bool { return len(w.results) >= w.limit }

// takeKey takes the versions of a key: c stands at the first of those that are not in the entry of the key itself, or behind them.
func (w *versionWalk) takeKey(key string, current graveler.Listing, isCurrent bool, c *reservedCursor) (err error) {
	var object, marker, null occupant
	if isCurrent {
		object.place = current.Key
		if object.object, err = decodeAt(current.Key, *current.Value); err != nil {
			return err
		}
	}
	for c.at(key) && c.place.Kind != KindNoncurrent {
		v, err := c.version()
		if err != nil {
			return err
		}
		if c.place.Kind == KindMarker {
			marker = v
		} else {
			null = v
		}
		if err := c.advance(); err != nil {
			return err
		}
	}
	return w.take(newVersionGroup(key, object, marker, null), c)
}

// take takes the versions of a group, of which c has those that have IDs.
func (w *versionWalk) take(g *versionGroup, c *reservedCursor) error {
	w.add(g, g.head)
	rest := g.rest
	for c.at(g.key) && !w.full() {
		v, err := c.version()
		if err != nil {
			return err
		}
		for len(rest) > 0 && newerFirst(rest[0], v) < 0 {
			w.add(g, rest[0])
			rest = rest[1:]
		}
		if !g.half(v) {
			w.add(g, v)
		}
		if err := c.advance(); err != nil {
			return err
		}
	}
	for _, v := range rest {
		w.add(g, v)
	}
	return nil
}

func (w *versionWalk) add(g *versionGroup, v occupant) {
	if !v.exists() || w.full() || g.listed != nil && g.listed(v) {
		return
	}
	o := *v.object
	if isNull(o.VersionID) {
		o.VersionID = NullVersion
	}
	w.results = append(w.results, versionResult{ListedVersion{g.key, string(v.place) == string(g.head.place), o}, false})
}

// versionGroup is the versions of a key, but for those that are in order by their IDs.
type versionGroup struct {
	key    string
	head   occupant   // the current version
	marker occupant   // a marker beside a current object, which is one of the noncurrent versions then
	rest   []occupant // that marker, and the null version where it is aside; newest first
	listed func(v occupant) bool
}

func newVersionGroup(key string, object, marker, null occupant) *versionGroup {
	g := &versionGroup{key: key, head: object, marker: marker}
	if !object.exists() {
		g.head, g.marker = marker, occupant{}
	} else if marker.exists() && (object.is(marker.object.VersionID) || givesWay(object, marker, null)) {
		g.marker = occupant{}
	}
	g.rest = slices.DeleteFunc([]occupant{g.marker, null}, func(v occupant) bool { return !v.exists() })
	if null.exists() && g.half(null) {
		g.rest = g.rest[:len(g.rest)-1]
	}
	slices.SortFunc(g.rest, newerFirst)
	return g
}

// newerFirst orders versions as they are listed: of two that were made at the same time, which only a merge or an interruption
// can leave, the null version is first, and then the lesser ID.
func newerFirst(a, b occupant) int {
	id := func(v occupant) string {
		if v.isNull() {
			return ""
		}
		return v.object.VersionID
	}
	return cmp.Or(cmp.Compare(b.time(), a.time()), strings.Compare(id(a), id(b)))
}

// half reports whether a version that is aside is half of an unfinished move: the version is elsewhere.
func (g *versionGroup) half(aside occupant) bool {
	id := aside.object.VersionID
	return g.head.is(id) || g.marker.is(id)
}

// resume leaves out what is listed already when a version has been, and returns where the others begin among those that are in
// order by their IDs. aside is that version, where it is not current.
//
// If it is gone the current version may be one that followed it. Of a null version that is gone nothing tells when it was made:
// all are listed again then.
func (g *versionGroup) resume(version string, aside occupant) graveler.Key {
	isHead := func(v occupant) bool { return string(v.place) == string(g.head.place) }
	if g.head.is(version) {
		g.listed = isHead
		return nullKey(g.key)
	}
	if g.marker.is(version) {
		aside = g.marker
	}
	if isNull(version) && !aside.exists() {
		return nullKey(g.key)
	}
	last := occupant{object: &Object{VersionID: version}}
	if aside.exists() {
		last = aside
	}
	g.listed = func(v occupant) bool { return aside.exists() && isHead(v) || newerFirst(v, last) <= 0 }
	if isNull(version) {
		return versionsOf(g.key, fmt.Sprintf("%s%0*x", versionTag, timeDigits, math.MaxInt64-last.time()))
	}
	return versionKey(g.key, version)
}
