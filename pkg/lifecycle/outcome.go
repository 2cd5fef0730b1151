// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "fmt"

// Outcome is what came of an action that was due. The zero value is no outcome.
type Outcome int

const (
	// Done: the action was carried out.
	Done Outcome = iota + 1
	// NoopResolved: there was nothing left to do, since the object is gone or not what it was.
	NoopResolved
	// SkippedObjectLock: a lock bars the removal.
	SkippedObjectLock
	// RetryLater: it did not work this time.
	RetryLater
	// Blocked: it will not work until somebody does something about it.
	Blocked
)

// Settled reports whether nothing more is to be done about the action in this pass, so that a position may move past it.
func (o Outcome) Settled() bool {
	return o == Done || o == NoopResolved || o == SkippedObjectLock
}

// String returns the label that metrics carry.
func (o Outcome) String() string {
	switch o {
	case Done:
		return "DONE"
	case NoopResolved:
		return "NOOP_RESOLVED"
	case SkippedObjectLock:
		return "SKIPPED_OBJECT_LOCK"
	case RetryLater:
		return "RETRY_LATER"
	case Blocked:
		return "BLOCKED"
	default:
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
}
