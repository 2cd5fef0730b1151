// SPDX-License-Identifier: Apache-2.0

package metalog

import (
	"cmp"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Source is a branch whose log is read.
type Source struct {
	Repository graveler.RepositoryID
	Branch     graveler.BranchID
	UID        string // of the branch: it names the log
	// Contents makes the creation and the deletion of the branch changes of every entry that it had then.
	Contents bool
	// After is how far the source has been read already: its moves up to this time are left out, also where a window begins earlier.
	After int64
}

func (s Source) log() graveler.LogName { return graveler.LogName{Branch: s.Branch, UID: s.UID} }

// compare orders sources by repository, branch and UID.
func (s Source) compare(o Source) int {
	return cmp.Or(cmp.Compare(s.Repository, o.Repository), cmp.Compare(s.Branch, o.Branch), cmp.Compare(s.UID, o.UID))
}

// Kind says what happened.
type Kind int

const (
	// Put: the entry has Value now; it had Previous before, nil if it is new.
	Put Kind = iota + 1
	// Delete: the entry, which had Previous, is gone.
	Delete
	// Head: the branch was created, and stands on Commit; or, where Commit is "", it was deleted. It has no key.
	Head
)

func (k Kind) String() string {
	switch k {
	case Put:
		return "put"
	case Delete:
		return "delete"
	case Head:
		return "head"
	default:
		return fmt.Sprintf("Kind(%d)", int(k))
	}
}

// Event is one change. What it points to is the receiver's to keep.
type Event struct {
	Timestamp       int64 // of the move, nanoseconds since the epoch
	Repository      graveler.RepositoryID
	Branch          graveler.BranchID
	UID             string            // of the branch
	Commit          graveler.CommitID // the head after the move, "" after a deletion
	Op              graveler.Op       // of the move; zero in a net effect, which is of no single one
	Kind            Kind
	Key             graveler.Key
	Value, Previous *graveler.Value
}

// change makes an event of a difference of two trees.
func (e Event) change(d graveler.Diff) Event {
	e.Kind, e.Key, e.Value, e.Previous = Put, d.Key, d.Right, d.Left
	if d.Right == nil {
		e.Kind = Delete
	}
	return e
}
