// SPDX-License-Identifier: Apache-2.0

package kv

// Predicate is a condition on the stored value of one key. Make one with [Equals], take the one that
// Get returned, or use [Absent] or [Present]. Two predicates are the same condition if they are ==.
//
// The zero Predicate is no condition at all, and every call that needs one refuses it with
// [ErrMissingPredicate]: a forgotten predicate must not turn into an unconditional write.
type Predicate struct {
	kind  predicateKind
	value string // a private copy, since callers own the slices they see
}

type predicateKind uint8

const (
	absent predicateKind = iota + 1
	present
	equals
)

var (
	// Absent holds when the key does not exist.
	Absent = Predicate{kind: absent}

	// Present holds when the key exists, with any value.
	Present = Predicate{kind: present}
)

// Equals holds when the key exists and stores exactly these bytes, no matter what it stored in
// between: a record that must tell two lives apart carries a nonce. The bytes are copied.
func Equals(value []byte) Predicate {
	return Predicate{kind: equals, value: string(value)}
}

// Holds evaluates the predicate against what is stored. It is for engines.
func (p Predicate) Holds(stored []byte, found bool) bool {
	switch p.kind {
	case absent:
		return !found
	case present:
		return found
	case equals:
		return found && string(stored) == p.value
	default:
		return false
	}
}

// Expected returns a copy of the bytes that an Equals predicate compares with, never nil, and nil for
// any other predicate. It is for engines that let a server do the comparison.
func (p Predicate) Expected() []byte {
	if p.kind != equals {
		return nil
	}
	return append([]byte{}, p.value...)
}

// IsZero reports whether p is no condition at all.
func (p Predicate) IsZero() bool { return p.kind == 0 }
