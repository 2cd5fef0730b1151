// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// Store moves the heads of branches; *graveler.Graveler does.
type Store interface {
	ChangeTree(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, p graveler.ChangeTreeParams, build func(ctx context.Context, t *graveler.Tree) (iter.Seq2[graveler.Entry, error], error)) (graveler.Commit, error)
}

// Buckets tells the settings of buckets; *catalog.Catalog does.
type Buckets interface {
	Versioning(ctx context.Context, repo graveler.RepositoryID) (catalog.Versioning, error)
}

// Mover carries out all batches that it is given together as one move of the branch's head, with op graveler.OpLifecycle. What is
// uncommitted on the branch stays.
//
// Each item is judged again by the tree of the head that is moved: whether the entry still holds that object, in the place that
// the action is about; whether the filter accepts it; its rank among the versions of its key, and whether it is the only one; and
// whether a lock bars its removal. What does not hold any more is NoopResolved. The items of one key are judged one after
// another, in their order, each by what those before it leave; but of versions that are not current, newer ones come first where
// they are counted, and a delete marker that is current comes last. Where nothing is left to do no move is made.
//
// All items are Blocked where the repository is read-only, or the branch protected against moves; those that were to be done,
// where a hook refuses the move. All are NoopResolved where the branch is gone, or the repository is going. After any other error
// the same may be dispatched again.
//
// What an item says of its object is relied on where the entry still has the very value that it was read from. Otherwise, and
// where a bucket keeps versions, entries are decoded, on all processors.
//
// Memory is some 200 bytes per item that changes something, beside the items themselves, and the values of what is set aside. It
// is safe for concurrent use.
type Mover struct {
	Store   Store
	Buckets Buckets
	// Committer is that of the commits.
	Committer string
	// Now is the clock by which locks end and delete markers are made; nil: time.Now.
	Now func() time.Time
}

// errOtherVersioning: the state of the bucket changed while the changes were applied.
var errOtherVersioning = errors.New("the versioning of the bucket has changed")

// Dispatch implements [Dispatcher].
func (m *Mover) Dispatch(ctx context.Context, source Source, batches []Batch) ([][]Result, error) {
	results := make([][]Result, len(batches))
	for i, b := range batches {
		results[i] = make([]Result, len(b.Items))
	}
	items := byKey(batches, results)
	if len(items) == 0 {
		return results, nil
	}
	p := graveler.ChangeTreeParams{
		CommitParams: graveler.CommitParams{Committer: m.Committer, Message: "Apply lifecycle rules"},
		Op:           graveler.OpLifecycle, UID: source.UID,
	}
	for {
		_, err := m.Store.ChangeTree(ctx, source.Repository, source.Branch, p, func(ctx context.Context, tree *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
			versioning, err := m.Buckets.Versioning(ctx, source.Repository)
			if err != nil {
				return nil, err
			}
			changes, err := judgeAll(ctx, tree, versioning, m.now(), items)
			if err != nil || len(changes) == 0 {
				return nil, err
			}
			return func(yield func(graveler.Entry, error) bool) {
				for _, c := range changes {
					if !yield(c, nil) {
						return
					}
				}
				// Building took a while. What was overwritten for good under the setting of before could be wanted now.
				now, err := m.Buckets.Versioning(ctx, source.Repository)
				if err == nil && now != versioning {
					err = errOtherVersioning
				}
				if err != nil {
					yield(graveler.Entry{}, err)
				}
			}, nil
		})
		if errors.Is(err, errOtherVersioning) {
			continue
		}
		return results, settle(items, err)
	}
}

func (m *Mover) now() time.Time {
	if m.Now == nil {
		return time.Now()
	}
	return m.Now()
}

// task is an item, and where its result goes.
type task struct {
	*Item
	*Result
}

// byKey returns the items of all batches by logical key, those of one key by entry and in the order of the batch.
func byKey(batches []Batch, results [][]Result) []task {
	n := 0
	for _, b := range batches {
		n += len(b.Items)
	}
	items := make([]task, 0, n)
	for i, b := range batches {
		for n := range b.Items {
			items = append(items, task{&b.Items[n], &results[i][n]})
		}
	}
	return mergeRuns(items, func(a, b task) int {
		if order := strings.Compare(a.LogicalKey, b.LogicalKey); order != 0 {
			return order
		}
		return bytes.Compare(a.Key, b.Key)
	})
}

// mergeRuns sorts what consists of a few sorted runs, such as batches are, by merging two neighbours at a time. Equal items stay in order.
func mergeRuns[T any](items []T, compare func(a, b T) int) []T {
	ends := []int{0} // of runs
	for i := 1; i <= len(items); i++ {
		if i == len(items) || compare(items[i-1], items[i]) > 0 {
			ends = append(ends, i)
		}
	}
	merged := make([]T, len(items))
	for len(ends) > 2 {
		left := ends[:1]
		for i := 2; i < len(ends)+1; i += 2 {
			from, middle := ends[i-2], ends[i-1]
			through := middle
			if i < len(ends) {
				through = ends[i]
			}
			a, b := items[from:middle], items[middle:through]
			for to := from; to < through; to++ {
				if len(b) == 0 || len(a) > 0 && compare(a[0], b[0]) <= 0 {
					merged[to], a = a[0], a[1:]
				} else {
					merged[to], b = b[0], b[1:]
				}
			}
			left = append(left, through)
		}
		items, merged, ends = merged, items, left
	}
	return items
}

// settle makes results of the errors of a move that are about the branch, and returns the others.
func settle(items []task, err error) error {
	switch {
	case err == nil || errors.Is(err, graveler.ErrNoChanges):
		return nil
	case errors.Is(err, graveler.ErrRepositoryNotFound), errors.Is(err, graveler.ErrRepositoryInDeletion), errors.Is(err, graveler.ErrBranchNotFound):
		for _, t := range items {
			*t.Result = Result{Outcome: lifecycle.NoopResolved}
		}
		return nil
	case errors.Is(err, graveler.ErrReadOnly), errors.Is(err, graveler.ErrProtected), errors.Is(err, graveler.ErrRefused):
		reason, refused := err.Error(), errors.Is(err, graveler.ErrRefused)
		for _, t := range items {
			if !refused || t.Outcome == lifecycle.Done {
				*t.Result = Result{Outcome: lifecycle.Blocked, Reason: reason}
			}
		}
		return nil
	default:
		return fmt.Errorf("apply lifecycle rules: %w", err)
	}
}
