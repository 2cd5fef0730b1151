// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// The oracle is the definition of what is due, and nothing else: it opens the tree of the head and that of D days ago, and looks
// at every entry. It remembers nothing from one pass to the next, and shares no code with what finds candidates, reads logs,
// keeps positions or walks.

// object is an entry of a tree with what its siblings tell.
type object struct {
	lifecycle.Object
	entry graveler.Key
	since time.Time // a version's time, for their order
	aside bool      // it is neither in the place of an object that is current nor in that of a marker that is
}

// id names an object: where it is, what it is, and since when it has not been current. A version that is displaced a second time
// is another one: it begins to age anew.
func (o *object) id() string { return identify(o.entry, o.Object) }

func identify(entry graveler.Key, o lifecycle.Object) string {
	return fmt.Sprintf("%q %x %d", string(entry), o.ContentIdentity, lifecycle.Nanoseconds(o.NoncurrentSince))
}

// due is an object for which an action is due.
type due struct {
	*object
	action *lifecycle.Action // one of those that are due
	// sure is set where whatever else is done in the same pass does not matter: no version that it is counted against goes as well.
	sure bool
}

// tree returns the entries of a commit by key; "" is no commit, and has none.
func (w *world) tree(repo graveler.RepositoryID, commit graveler.CommitID) (map[string]graveler.Value, error) {
	entries := map[string]graveler.Value{}
	if commit == "" {
		return entries, nil
	}
	for l, err := range w.users.List(w.ctx, repo, string(commit), graveler.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		entries[string(l.Key)] = *l.Value
	}
	return entries, nil
}

// headAt returns the head of a branch at an instant, by reading its log from the beginning.
func (w *world) headAt(source dispatch.Source, at time.Time) (head graveler.CommitID, err error) {
	for m, err := range w.users.BranchLog(w.ctx, source.Repository, source.Branch, 0) {
		if err != nil {
			return "", err
		}
		if m.Time <= at.UnixNano() {
			head = m.New
		}
	}
	return head, nil
}

// objects returns what a tree has of objects, halves of unfinished puts left out.
func objects(tree map[string]graveler.Value, v catalog.Versioning) (map[string]*object, error) {
	all, byKey := map[string]*object{}, map[string][]*object{}
	for key, value := range tree {
		place, err := catalog.ParseKey(graveler.Key(key))
		if err != nil {
			return nil, err
		}
		if place.Kind == catalog.KindPart {
			continue
		}
		o := &object{entry: graveler.Key(key)}
		if o.Object, err = lifecycle.NewObject(place, value, v); err != nil {
			return nil, err
		}
		all[key] = o
		if o.Kind == lifecycle.Upload {
			continue
		}
		o.since, o.aside = o.ModifiedAt, o.Kind == lifecycle.Noncurrent
		if n, err := strconv.ParseInt(o.VersionID[:min(len(o.VersionID), 16)], 16, 64); err == nil && len(o.VersionID) == 24 {
			o.since = time.Unix(0, math.MaxInt64-n)
		}
		byKey[o.Key] = append(byKey[o.Key], o)
	}
	for _, versions := range byKey {
		slices.SortFunc(versions, func(a, b *object) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), b.since.Compare(a.since), cmp.Compare(a.VersionID, b.VersionID))
		})
		// A merge can leave a null marker beside an object that is current, and another null object aside: that one is the null version.
		has := func(is func(p *object) bool) bool { return slices.ContainsFunc(versions, is) }
		givesWay := has(func(p *object) bool { return p.Kind == lifecycle.Current && !p.Null() }) && has(func(p *object) bool { return p.aside && p.Null() && !p.DeleteMarker })
		versions = slices.DeleteFunc(versions, func(o *object) bool {
			gone := givesWay && o.Kind == lifecycle.Marker && o.Null()
			if gone {
				delete(all, string(o.entry))
			}
			return gone
		})
		for i, o := range versions {
			if i > 0 && o.Kind == lifecycle.Marker {
				o.Kind = lifecycle.Noncurrent // beside an object that is current
			}
			half := func(p *object) bool { return !p.aside && (p.VersionID == o.VersionID || p.Null() && o.Null()) }
			if slices.ContainsFunc(versions[:i], half) {
				delete(all, string(o.entry))
			}
		}
		versions = slices.DeleteFunc(versions, func(o *object) bool { return all[string(o.entry)] == nil })
		noncurrent := slices.DeleteFunc(slices.Clone(versions), func(o *object) bool { return o.Kind != lifecycle.Noncurrent })
		slices.SortFunc(noncurrent, func(a, b *object) int { // markers that two branches made at one time differ in what is random of their IDs
			return cmp.Or(b.since.Compare(a.since), cmp.Compare(a.VersionID, b.VersionID))
		})
		for rank, o := range noncurrent {
			o.NewerNoncurrent = rank
		}
		for _, o := range versions {
			o.Sole = len(versions) == 1
		}
	}
	return all, nil
}

// evaluate returns what is due at a time on a branch that has some head: the page's definition.
func (w *world) evaluate(source dispatch.Source, head graveler.CommitID, now time.Time) (map[string]due, error) {
	v, err := w.catalog.Versioning(w.ctx, source.Repository)
	if err != nil {
		return nil, err
	}
	tree, err := w.tree(source.Repository, head)
	if err != nil {
		return nil, err
	}
	present, err := objects(tree, v)
	if err != nil {
		return nil, err
	}
	calendar := lifecycle.Calendar{Day: w.Day, Boundary: w.Boundary}
	found := map[string]due{}
	var counted []lifecycle.Action
	rules := w.rules[source.Repository].Rules
	for i := range rules {
		if !rules[i].Enabled {
			continue
		}
		for _, a := range rules[i].Actions() {
			if a.NewerNoncurrent > 0 {
				counted = append(counted, a)
			}
			held, err := w.held(source, &a, now, calendar)
			if err != nil {
				return nil, err
			}
			for _, o := range present {
				if a.Applies(&o.Object) && held(o) && !barred(&a, o, present, now) {
					if !found[o.id()].sure { // what does not count stands for what does
						found[o.id()] = due{o, &a, a.NewerNoncurrent == 0}
					}
				}
			}
		}
	}
	// What is counted is sure to go where enough newer versions stay.
	for id, d := range found {
		stay := 0
		for _, o := range present {
			_, goes := found[o.id()]
			if o.Key == d.Key && o.Kind == lifecycle.Noncurrent && o.NewerNoncurrent < d.NewerNoncurrent && !goes {
				stay++
			}
		}
		for _, a := range counted {
			if stay < a.NewerNoncurrent || !a.Applies(&d.Object) {
				continue
			}
			held, err := w.held(source, &a, now, calendar)
			if err != nil {
				return nil, err
			}
			if held(d.object) {
				found[id] = due{d.object, d.action, true}
			}
		}
	}
	return found, nil
}

// promoted reports whether the log is too short for an action.
func (w *world) promoted(a *lifecycle.Action) bool {
	return a.Kind.Replay() && w.Window > 0 && a.Delay >= int(w.Window/w.Day)
}

// held returns the test for whether it is time for an action on an object.
func (w *world) held(source dispatch.Source, a *lifecycle.Action, now time.Time, c lifecycle.Calendar) (func(o *object) bool, error) {
	if !a.Kind.Replay() || w.promoted(a) {
		return func(o *object) bool {
			at, ok := lifecycle.Due(a, &o.Object, c)
			atOnce := a.Kind == lifecycle.NewerNoncurrent || a.Kind == lifecycle.ExpiredDeleteMarker // whatever the clock said by which the object came to be what it is
			return ok && (atOnce || !at.After(now))
		}, nil
	}
	then, err := w.headAt(source, c.Horizon(a.Delay, now))
	if err != nil {
		return nil, err
	}
	past, err := w.tree(source.Repository, then)
	if err != nil {
		return nil, err
	}
	was := map[string]bool{}
	for key, value := range past {
		place, err := catalog.ParseKey(graveler.Key(key))
		if err != nil {
			return nil, err
		}
		if place.Kind != catalog.KindPart {
			o, err := lifecycle.NewObject(place, value, catalog.VersioningOff)
			if err != nil {
				return nil, err
			}
			was[identify(graveler.Key(key), o)] = true
		}
	}
	return func(o *object) bool { return was[o.id()] }, nil
}

// barred reports whether a lock bars an action: one of the object itself, or of the null version that a null delete marker would replace.
func barred(a *lifecycle.Action, o *object, present map[string]*object, now time.Time) bool {
	if _, locked := o.Locked(now); locked && a.Permanent(&o.Object) {
		return true
	}
	if o.Kind != lifecycle.Current || o.Versioning != catalog.VersioningSuspended {
		return false
	}
	for _, p := range present {
		if _, locked := p.Locked(now); locked && p.Key == o.Key && p.Kind == lifecycle.Noncurrent && p.Null() {
			return true
		}
	}
	return false
}

// gone is what a move of lifecycle has taken out of a tree.
type gone struct {
	*object
	madeWay bool // for a delete marker that was put on the object that was current
}

// removed returns what the moves that lifecycle made of a branch after some time took away, and what each of them left of the branch.
func (w *world) removed(source dispatch.Source, after int64) (map[string]gone, error) {
	v, err := w.catalog.Versioning(w.ctx, source.Repository)
	if err != nil {
		return nil, err
	}
	removed := map[string]gone{}
	for m, err := range w.users.BranchLog(w.ctx, source.Repository, source.Branch, after+1) {
		if err != nil {
			return nil, err
		}
		if m.Op != graveler.OpLifecycle {
			continue
		}
		before, err := w.objectsOf(source.Repository, m.Old, v)
		if err != nil {
			return nil, err
		}
		left, err := w.objectsOf(source.Repository, m.New, v)
		if err != nil {
			return nil, err
		}
		for key, o := range before {
			if p, stays := left[key]; stays && p.id() == o.id() {
				continue
			}
			marked := before[o.Key] != nil && left[o.Key] == nil
			beside := o.DeleteMarker && strings.HasSuffix(string(o.entry), "\x00\x01c") || o.Null() && v == catalog.VersioningSuspended
			removed[o.id()] = gone{o, marked && o.Kind == lifecycle.Noncurrent && beside}
		}
	}
	return removed, nil
}

func (w *world) objectsOf(repo graveler.RepositoryID, commit graveler.CommitID, v catalog.Versioning) (map[string]*object, error) {
	tree, err := w.tree(repo, commit)
	if err != nil {
		return nil, err
	}
	return objects(tree, v)
}

// sources returns the branches that lifecycle acts on.
func (w *world) sources() ([]dispatch.Source, error) {
	var sources []dispatch.Source
	for _, repo := range repositories {
		c, ok := w.rules[repo]
		if !ok {
			continue
		}
		for _, branch := range branches {
			if branch != "main" && !slices.Contains(c.Branches, string(branch)) {
				continue
			}
			b, err := w.users.GetBranch(w.ctx, repo, branch)
			if errors.Is(err, graveler.ErrBranchNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			sources = append(sources, dispatch.Source{Repository: repo, Branch: branch, UID: b.UID})
		}
	}
	return sources, nil
}
