// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
)

// ActionKind is what an action does and what makes it due.
type ActionKind int

const (
	// ExpirationDays expires an object that has been current for some days, and removes a delete marker that has been for as long
	// and is the only version.
	ExpirationDays ActionKind = iota + 1
	// NoncurrentDays removes a version that was displaced some days ago and, where a count is given, has that many newer noncurrent ones.
	NoncurrentDays
	// AbortMPU aborts a multipart upload that was started some days ago.
	AbortMPU
	// ExpirationDate expires every current object from a date on.
	ExpirationDate
	// ExpiredDeleteMarker removes a delete marker as soon as it is the only version.
	ExpiredDeleteMarker
	// NewerNoncurrent removes a noncurrent version as soon as it has a given number of newer noncurrent ones.
	NewerNoncurrent
)

// Replay reports whether actions of this kind have a delay, and so are found by what the branch log says about the past.
func (k ActionKind) Replay() bool { return k >= ExpirationDays && k <= AbortMPU }

// On reports whether actions of this kind are about objects of that kind.
func (k ActionKind) On(o ObjectKind) bool {
	switch k {
	case ExpirationDays:
		return o == Current || o == Marker
	case ExpirationDate:
		return o == Current
	case NoncurrentDays, NewerNoncurrent:
		return o == Noncurrent
	case AbortMPU:
		return o == Upload
	case ExpiredDeleteMarker:
		return o == Marker
	default:
		return false
	}
}

// String returns the label that metrics carry.
func (k ActionKind) String() string {
	switch k {
	case ExpirationDays:
		return "ExpirationDays"
	case NoncurrentDays:
		return "NoncurrentDays"
	case AbortMPU:
		return "AbortMPU"
	case ExpirationDate:
		return "ExpirationDate"
	case ExpiredDeleteMarker:
		return "ExpiredDeleteMarker"
	case NewerNoncurrent:
		return "NewerNoncurrent"
	default:
		return fmt.Sprintf("ActionKind(%d)", int(k))
	}
}

// Action is one thing that a rule asks for.
type Action struct {
	Kind ActionKind
	Rule *Rule
	// Delay is in days; 0 for the kinds that have none.
	Delay int
	// Date is that of ExpirationDate.
	Date time.Time
	// NewerNoncurrent is how many newer noncurrent versions spare a version, or 0 where versions are not counted.
	NewerNoncurrent int
}

// Actions returns what r asks for, by kind, whether it is enabled or not.
func (r *Rule) Actions() []Action {
	var actions []Action
	if e := r.Expiration; e != nil && e.Days != nil {
		actions = append(actions, Action{Kind: ExpirationDays, Rule: r, Delay: *e.Days})
	}
	n := r.NoncurrentVersionExpiration
	if n != nil && n.NoncurrentDays != nil {
		a := Action{Kind: NoncurrentDays, Rule: r, Delay: *n.NoncurrentDays}
		if n.NewerNoncurrentVersions != nil {
			a.NewerNoncurrent = *n.NewerNoncurrentVersions
		}
		actions = append(actions, a)
	}
	if a := r.AbortIncompleteMultipartUpload; a != nil {
		actions = append(actions, Action{Kind: AbortMPU, Rule: r, Delay: a.DaysAfterInitiation})
	}
	if e := r.Expiration; e != nil && e.Date != nil {
		actions = append(actions, Action{Kind: ExpirationDate, Rule: r, Date: *e.Date})
	}
	if e := r.Expiration; e != nil && e.ExpiredObjectDeleteMarker != nil && *e.ExpiredObjectDeleteMarker {
		actions = append(actions, Action{Kind: ExpiredDeleteMarker, Rule: r})
	}
	if n != nil && n.NoncurrentDays == nil && n.NewerNoncurrentVersions != nil {
		actions = append(actions, Action{Kind: NewerNoncurrent, Rule: r, NewerNoncurrent: *n.NewerNoncurrentVersions})
	}
	return actions
}

// Siblings reports whether the answer for an object of that kind also depends on the other versions of its key, so that it must
// be asked again when one of those changes.
func (a *Action) Siblings(o ObjectKind) bool {
	return o == Marker || a.NewerNoncurrent > 0
}

// Accepts reports whether the action is meant for o: the kind fits, and so do all predicates of the rule's filter. Whether the
// rule is enabled is not looked at. It costs no allocation.
func (a *Action) Accepts(o *Object) bool {
	return a.Kind.On(o.Kind) && a.Rule.Filter.accepts(o)
}

// Applies reports whether the action is meant for o as it stands among its siblings, whose Object.Sole and Object.NewerNoncurrent
// must be known. Only the time is left out.
func (a *Action) Applies(o *Object) bool {
	if !a.Accepts(o) || o.Kind == Marker && !o.Sole {
		return false
	}
	return o.NewerNoncurrent >= a.NewerNoncurrent
}

// Permanent reports whether the action on o takes a version away for good, which a lock of o bars. What it does otherwise is to add a delete marker.
func (a *Action) Permanent(o *Object) bool {
	switch {
	case o.Kind != Current || o.Versioning == catalog.VersioningOff:
		return true
	case o.Versioning == catalog.VersioningEnabled:
		return false
	default: // the marker takes the place of the null version, and of no other
		return o.Null()
	}
}

// accepts reports whether o meets all predicates. A delete marker and an upload have size 0 and no tags.
func (f *Filter) accepts(o *Object) bool {
	if f.Prefix != nil && !strings.HasPrefix(o.Key, *f.Prefix) ||
		f.SizeGreaterThan != nil && o.Size <= *f.SizeGreaterThan ||
		f.SizeLessThan != nil && o.Size >= *f.SizeLessThan {
		return false
	}
	for _, t := range f.Tags {
		if v, ok := o.Tags[t.Key]; !ok || v != t.Value {
			return false
		}
	}
	return true
}
