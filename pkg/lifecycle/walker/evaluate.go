// SPDX-License-Identifier: Apache-2.0

package walker

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
)

// Evaluator says what of a group is due at Now. All actions are of one repository.
type Evaluator struct {
	// Replay are actions that ask how long the branch has shown an object, which Held answers; Scan are all others, which ask the object itself.
	Replay, Scan []*engine.CompiledAction
	// Held reports whether the branch showed an object, in this entry, with this content and displaced when it was, that many days ago.
	Held func(ctx context.Context, delay int, o *Object) (bool, error)
	// Siblings leaves out what of Replay does not depend on the other versions of a key.
	Siblings bool
	Calendar lifecycle.Calendar
	Now      time.Time
}

// Due is what is to be done to an object, and since when.
type Due struct {
	Object *Object
	Action *engine.CompiledAction
	At     time.Time
}

// Prefer compares two actions that are due on one object, and which of them is to stand for both: the one that counts fewer newer
// versions, since it stays due where some of these are removed at the same time.
func Prefer(a, b *engine.CompiledAction) int {
	return cmp.Compare(a.NewerNoncurrent, b.NewerNoncurrent)
}

// Evaluate yields the objects of a group for which an action is due, each once: what all actions would do to one object is the
// same, so that one stands for all: the preferred one, or else the one that was due first.
func (e *Evaluator) Evaluate(ctx context.Context, g *Group) iter.Seq2[Due, error] {
	return func(yield func(Due, error) bool) {
		for o, err := range g.Objects(ctx) {
			due, found := Due{}, false
			if err == nil {
				due, found, err = e.Judge(ctx, o)
			}
			if (found || err != nil) && !yield(due, err) || err != nil {
				return
			}
		}
	}
}

// Judge returns the action that is due on one object, if any.
func (e *Evaluator) Judge(ctx context.Context, o *Object) (due Due, found bool, err error) {
	take := func(a *engine.CompiledAction, at time.Time) {
		if !found || Prefer(a, due.Action) < 0 || Prefer(a, due.Action) == 0 && at.Before(due.At) {
			due, found = Due{o, a, at}, true
		}
	}
	for _, a := range e.Scan {
		at, ok := lifecycle.Due(&a.Action, &o.Object, e.Calendar)
		if ok && !a.Kind.Replay() && a.Kind != lifecycle.ExpirationDate && at.After(e.Now) {
			at = e.Now // it is due at once, whatever the clock said of those who made it so
		}
		if ok && !at.After(e.Now) {
			take(a, at)
		}
	}
	delay, held := 0, false
	for _, a := range e.Replay {
		if e.Siblings && !dependsOnSiblings(a, o) || !a.Applies(&o.Object) {
			continue
		}
		if a.Delay != delay {
			delay = a.Delay
			if held, err = e.Held(ctx, delay, o); err != nil {
				return Due{}, false, err
			}
		}
		if held {
			take(a, e.DueAt(a, o))
		}
	}
	return due, found, nil
}

// dependsOnSiblings reports whether something that happens to another version of the key can make the action due. That includes a
// delete marker that is noncurrent because an object was merged in beside it, and, in a bucket that is suspended, the end of a
// lock of the null version, which a null delete marker would replace.
func dependsOnSiblings(a *engine.CompiledAction, o *Object) bool {
	return a.Siblings(o.Kind) || o.Kind == lifecycle.Noncurrent && o.DeleteMarker || o.Kind == lifecycle.Current && o.Versioning == catalog.VersioningSuspended
}

// DueAt is when an action that is due has been so by the object's own times, which say nothing where an older object was brought to the branch.
func (e *Evaluator) DueAt(a *engine.CompiledAction, o *Object) time.Time {
	if at, ok := lifecycle.Due(&a.Action, &o.Object, e.Calendar); ok && at.Before(e.Now) {
		return at
	}
	return e.Now
}

// Counts returns up to how many newer versions the actions count.
func Counts(actions []*engine.CompiledAction) int {
	most := 0
	for _, a := range actions {
		most = max(most, a.NewerNoncurrent)
	}
	return most
}
