// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
	"github.com/moraine-store/moraine/pkg/lifecycle/router"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// replayed reads the candidates of a lane with a delay, and hands over what is due.
func (s *source) replayed(ctx context.Context, g *group, r *reading) (err error) {
	empty := s.Store.EmptyTree()
	if g.step.Horizon.Tree == empty {
		return nil // nothing was there so long ago
	}
	horizon, err := s.horizon(ctx, g.delay, s.head)
	if err != nil {
		return err
	}
	l := newReplay(s, g.delay)
	l.later = horizon.Tree != g.step.Horizon.Tree
	if l.horizon, err = s.open(ctx, horizon.Tree); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.horizon.Close()) }()
	from := g.from.Horizon.Tree
	if g.cold() {
		from = empty
	}
	candidates := s.fellDue(ctx, from, g.step.Horizon.Tree, g.after)
	for _, w := range g.windows() {
		t, err := s.window(ctx, w)
		if err != nil {
			return err
		}
		candidates = merged(candidates, sortedAfter(ctx, t.puts, g.after))
	}
	for entry, err := range candidates {
		if err == nil {
			err = l.candidate(ctx, entry, r)
		}
		if err == nil {
			err = r.passed(ctx, entry.Key)
		}
		if err != nil || r.over {
			return err
		}
	}
	return nil
}

// fellDue yields the entries that came between two trees, as the second has them.
func (s *source) fellDue(ctx context.Context, from, to graveler.MetaRangeID, after graveler.Key) iter.Seq2[graveler.Entry, error] {
	return func(yield func(graveler.Entry, error) bool) {
		for d, err := range s.Store.DiffTrees(ctx, s.target.Repository, from, to, graveler.DiffOptions{After: after}) {
			if (err != nil || d.Right != nil) && !yield(graveler.Entry{Key: d.Key, Value: d.Right}, err) {
				return
			}
		}
	}
}

// merged yields the entries of a sorted sequence, and the keys of another one, without values where the first does not have them,
// in order, each once.
func merged(entries iter.Seq2[graveler.Entry, error], keys iter.Seq2[graveler.Key, error]) iter.Seq2[graveler.Entry, error] {
	return func(yield func(graveler.Entry, error) bool) {
		next, stop := iter.Pull2(keys)
		defer stop()
		key, err, more := next()
		// upTo yields the keys before one, and passes over that one.
		upTo := func(last graveler.Key) bool {
			for more && err == nil && (last == nil || bytes.Compare(key, last) < 0) {
				if !yield(graveler.Entry{Key: key}, nil) {
					return false
				}
				key, err, more = next()
			}
			if err != nil {
				yield(graveler.Entry{}, err)
				return false
			}
			if more && bytes.Equal(key, last) {
				key, err, more = next()
			}
			return true
		}
		for e, err := range entries {
			if err == nil && !upTo(e.Key) || !yield(e, err) || err != nil {
				return
			}
		}
		upTo(nil)
	}
}

// replay judges the candidates of a lane.
type replay struct {
	*source
	delay    int
	actions  []*engine.CompiledAction
	prefixes walker.Prefixes
	router   *router.Router
	counts   int
	aborts   bool         // uploads are aborted
	markers  bool         // actions about noncurrent versions, one of which a delete marker may be
	horizon  *walker.Tree // of this pass
	later    bool         // it is not that of the step, which an earlier pass has left, or which does not go so far
	match    router.Match
}

func newReplay(s *source, delay int) *replay {
	actions := s.lane(delay)
	return &replay{
		source: s, delay: delay, actions: actions, prefixes: walker.PrefixesOf(actions), router: router.New(actions), counts: walker.Counts(actions),
		aborts:  slices.ContainsFunc(actions, func(a *engine.CompiledAction) bool { return a.Kind == lifecycle.AbortMPU }),
		markers: slices.ContainsFunc(actions, func(a *engine.CompiledAction) bool { return a.Kind.On(lifecycle.Noncurrent) }),
	}
}

// candidate hands over what is due of an entry. What the horizon does not have is not due; nor is what the newest head has no
// more. Where the candidate has a value it is that of the step's horizon.
func (l *replay) candidate(ctx context.Context, candidate graveler.Entry, r *reading) error {
	key := candidate.Key
	part := l.aborts && catalog.IsPart(key)
	if !part && !l.prefixes.Cover(key) {
		return nil
	}
	place, err := catalog.ParseKey(key)
	if err != nil {
		return nil // it is no entry that a bucket has
	}
	if part {
		return l.lostPart(ctx, candidate, place, r)
	}
	sh := r.wants(place.Key)
	if sh == nil {
		return nil
	}
	head, err := l.present(ctx)
	if err != nil {
		return err
	}
	value, err := head.Entry(key)
	if err != nil || value == nil {
		return err
	}
	o, a, err := l.judge(ctx, head, place, key, *value)
	if undecodable(err) {
		r.refuse(sh, key, err.Error())
		return nil
	}
	if err != nil || a == nil {
		return err
	}
	then := candidate.Value
	if then == nil || l.later {
		if then, err = l.horizon.Entry(key); err != nil {
			return err
		}
	}
	if then == nil || !sameObject(*then, o) {
		return nil
	}
	e := l.evaluator()
	return r.add(ctx, sh, key, walker.Due{Object: o, Action: a, At: e.DueAt(a, o)})
}

// lostPart hands over a part whose upload is no more, which was committed when lifecycle had aborted the upload. It is due as the
// upload would be, and no move but a put can have made it a candidate.
func (l *replay) lostPart(ctx context.Context, candidate graveler.Entry, place catalog.Place, r *reading) error {
	if candidate.Value == nil {
		return nil
	}
	key, upload, err := catalog.UploadOfPart(place, *candidate.Value)
	if err != nil || !l.prefixes.CoverKey(key) {
		return nil // nobody can say whose it is
	}
	sh := r.wants(key)
	if sh == nil {
		return nil
	}
	head, err := l.present(ctx)
	if err != nil {
		return err
	}
	values, err := head.Get(ctx, upload, candidate.Key)
	if err != nil || values[0] != nil || values[1] == nil || !values[1].Same(candidate.Value) {
		return err
	}
	o := &walker.Object{Entry: candidate.Key, Value: candidate.Value.Identity, Object: lifecycle.Object{
		Kind: lifecycle.Upload, Key: key, VersionID: place.UploadID, ContentIdentity: candidate.Value.Identity, Versioning: l.versioning,
	}}
	for _, a := range l.actions {
		if a.Applies(&o.Object) {
			return r.add(ctx, sh, candidate.Key, walker.Due{Object: o, Action: a, At: l.now})
		}
	}
	return nil
}

// judge returns the object in an entry of the head, and the first action of the lane that is meant for it as it stands among its siblings.
func (l *replay) judge(ctx context.Context, head *walker.Tree, place catalog.Place, key graveler.Key, value graveler.Value) (*walker.Object, *engine.CompiledAction, error) {
	marker := place.Kind == catalog.KindMarker
	matched, err := l.router.Match(key, value, &l.match)
	if err != nil || !matched && !(marker && l.markers) {
		return nil, nil, err
	}
	if place.Kind == catalog.KindCurrent || place.Kind == catalog.KindUpload {
		return &walker.Object{Object: l.match.Object, Entry: key, Value: value.Identity}, l.match.Actions[0], nil
	}
	o, err := head.Object(ctx, key, l.counts)
	if err != nil || o == nil {
		return nil, nil, err
	}
	for _, a := range l.actions {
		if a.Applies(&o.Object) {
			return o, a, nil
		}
	}
	return nil, nil, nil
}

// undecodable reports whether an error is that an entry holds no object.
func undecodable(err error) bool {
	return errors.Is(err, graveler.ErrInvalidValue) || errors.Is(err, graveler.ErrCorrupt)
}

// evaluator judges by all rules of the source.
func (s *source) evaluator() *walker.Evaluator {
	return &walker.Evaluator{Replay: s.replay, Scan: s.scan, Held: s.held, Calendar: s.calendar(), Now: s.now}
}

// touchedGroups looks at the keys that moves have touched, or at all of them in a lane that starts cold, for what has no delay or
// depends on the other versions of a key.
func (s *source) touchedGroups(ctx context.Context, g *group, r *reading) error {
	e := s.evaluator()
	e.Siblings = true
	if g.cold() {
		return s.allGroups(ctx, e, string(g.after), r)
	}
	t, err := s.window(ctx, g.news())
	if err != nil {
		return err
	}
	for key, err := range sortedAfter(ctx, t.keys, g.after) {
		if err == nil {
			var head *walker.Tree
			if head, err = s.present(ctx); err == nil {
				err = s.evaluate(ctx, e, head.Group(string(key)), r)
			}
		}
		if err != nil || r.over {
			return err
		}
	}
	return nil
}

// allGroups looks at all keys of the newest head behind one.
func (s *source) allGroups(ctx context.Context, e *walker.Evaluator, after string, r *reading) (err error) {
	t, err := s.open(ctx, s.head.Tree)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for g, err := range t.Groups(after) {
		if err == nil {
			err = s.evaluate(ctx, e, g, r)
		}
		if err != nil || r.over {
			return err
		}
	}
	return nil
}

// evaluate hands over what is due of a key.
func (s *source) evaluate(ctx context.Context, e *walker.Evaluator, g *walker.Group, r *reading) error {
	unit := graveler.Key(g.Key)
	if !s.prefixes.CoverKey(g.Key) {
		return r.passed(ctx, unit)
	}
	if sh := r.wants(g.Key); sh != nil {
		for due, err := range e.Evaluate(ctx, g) {
			if undecodable(err) {
				r.refuse(sh, unit, err.Error())
				break
			}
			if err == nil {
				err = r.add(ctx, sh, unit, due)
			}
			if err != nil {
				return err
			}
		}
	}
	return r.passed(ctx, unit)
}
