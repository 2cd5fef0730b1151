// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// Source is a branch, as it was when the pass began: one that has been made again under the same name since has another UID.
type Source struct {
	Repository graveler.RepositoryID
	Branch     graveler.BranchID
	UID        string
}

// Item is one thing to do. Actions, and the memory of keys, are shared by many and are not to be changed.
type Item struct {
	Action *lifecycle.Action
	// Key is that of the entry that holds the object, LogicalKey the one that users know. Of an upload that is aborted it can be
	// that of a part, which was committed when the upload was gone already.
	Key        graveler.Key
	LogicalKey string
	// VersionID is the version's, or the upload's.
	VersionID string
	// Due is when the action became due.
	Due time.Time
	// ContentIdentity is that of the object that the action is meant for (see lifecycle.Object). Where the entry holds another
	// one, nothing is to be done.
	ContentIdentity []byte
	// Object is that object, as it was when the action was found to be due, and Value the identity of the value that it was
	// decoded from; nil: they are not known. An entry that has that value still need not be decoded once more. Where a version
	// has another NoncurrentSince, nothing is to be done: it was restored and displaced again, and is as young as that.
	Object *lifecycle.Object
	Value  []byte
}

// Batch holds items of one shard, in the order of their keys.
type Batch struct {
	Shard int
	Items []Item
}

// Result is what came of an item.
type Result struct {
	Outcome lifecycle.Outcome
	// Until is when a lock ends that bars the removal (SkippedObjectLock); zero for a legal hold, of which nobody knows.
	Until time.Time
	// Reason says why an item is Blocked or to be tried later.
	Reason string
}

// Dispatcher carries out batches of one branch, no two of them of one shard.
//
// It returns a result for each item of each batch, in their order; or an error, after which it is not known what was done: every
// item may be dispatched again, now or in a later pass. So an action that was carried out already must be harmless: it is
// NoopResolved. Dispatchers are called by several goroutines at a time, of which no two are about the same shard of a branch.
type Dispatcher interface {
	Dispatch(ctx context.Context, source Source, batches []Batch) ([][]Result, error)
}
