// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// Due returns when a is to happen to o, by the times that o itself carries, and whether it is at all (see Action.Applies). What
// happens at once has been due since the object came to be what it is. An object whose time is not known is never due: it could
// be as young as any.
func Due(a *Action, o *Object, c Calendar) (time.Time, bool) {
	if !a.Applies(o) {
		return time.Time{}, false
	}
	since := o.ModifiedAt
	if o.Kind == Noncurrent && !o.NoncurrentSince.IsZero() {
		since = o.NoncurrentSince
	}
	switch {
	case a.Kind == ExpirationDate:
		return a.Date, true
	case since.IsZero() && a.Kind.Replay():
		return time.Time{}, false
	case a.Kind.Replay():
		return c.Due(a.Delay, since), true
	default:
		return since, true
	}
}

// Prediction is when an object will be expired, and why.
type Prediction struct {
	At   time.Time
	Kind ActionKind
	Rule *Rule
}

// PredictExpiry returns the earliest expiry that the enabled ones of rules ask for, of equal ones that of the first rule. All
// that rules can ask for on one object ends it in the same way, so the earliest decides.
func PredictExpiry(rules []Rule, o *Object, c Calendar) (Prediction, bool) {
	var first Prediction
	found := false
	for i := range rules {
		if !rules[i].Enabled {
			continue
		}
		for _, a := range rules[i].Actions() {
			at, due := Due(&a, o, c)
			if due && (!found || at.Before(first.At)) {
				first, found = Prediction{At: at, Kind: a.Kind, Rule: &rules[i]}, true
			}
		}
	}
	return first, found
}
