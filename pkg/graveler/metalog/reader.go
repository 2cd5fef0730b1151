// SPDX-License-Identifier: Apache-2.0

package metalog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Store is what this package asks of the versioned store. *graveler.Graveler implements it, and says what the methods promise.
type Store interface {
	LogNames(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID) iter.Seq2[graveler.LogName, error]
	MoveLog(ctx context.Context, repo graveler.RepositoryID, log graveler.LogName, after, until int64) iter.Seq2[graveler.LoggedMove, error]
	HeadAt(ctx context.Context, repo graveler.RepositoryID, log graveler.LogName, at int64) (graveler.BranchHead, error)
	DiffTrees(ctx context.Context, repo graveler.RepositoryID, left, right graveler.MetaRangeID, o graveler.DiffOptions) iter.Seq2[graveler.Diff, error]
}

var _ Store = (*graveler.Graveler)(nil)

// Reader reads branch logs. It keeps nothing and is safe for concurrent use.
//
// What its methods return matches graveler.ErrLogTruncated, graveler.ErrCorrupt, graveler.ErrNotFound where the repository, or
// the branch with its log, is unknown, and graveler.ErrInvalidValue where a source has no UID.
type Reader struct{ store Store }

// New returns a reader of a store.
func New(s Store) *Reader { return &Reader{s} }

// Sources returns the branches that a name has had, live and deleted; where branch is "", those of all names of the repository. A
// name that never had one is graveler.ErrBranchNotFound.
func (r *Reader) Sources(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID) ([]Source, error) {
	var sources []Source
	for log, err := range r.store.LogNames(ctx, repo, branch) {
		if err != nil {
			return nil, fmt.Errorf("find the logs of %s/%s: %w", repo, branch, err)
		}
		sources = append(sources, Source{Repository: repo, Branch: log.Branch, UID: log.UID})
	}
	if len(sources) == 0 && branch != "" {
		return nil, fmt.Errorf("find the logs of %s/%s: %w", repo, branch, graveler.ErrBranchNotFound)
	}
	return sources, nil
}

// HeadAt returns the head of a source as of an instant: after its last move at or before that. The time of that move says up to
// when the head is settled: no move that is still to come will have that time or an earlier one. It costs a few reads of records,
// and if the branch is deleted, as graveler.HeadAt says, much of its log.
func (r *Reader) HeadAt(ctx context.Context, source Source, at int64) (graveler.BranchHead, error) {
	if err := source.validate(); err != nil {
		return graveler.BranchHead{}, err
	}
	return r.store.HeadAt(ctx, source.Repository, source.log(), at)
}

// TreeAt returns the tree of HeadAt: the empty tree before the branch was created, and after it was deleted.
func (r *Reader) TreeAt(ctx context.Context, source Source, at int64) (graveler.MetaRangeID, error) {
	head, err := r.HeadAt(ctx, source, at)
	return head.Tree, err
}

// Net yields what the moves of a window come to: the difference between the head at after and the one at until, by key. A key
// that was changed and changed back is not in it. Each event has the time and the commit of the later head. Where only one of the
// heads is of a branch that was there, every entry of it is an event, whatever the source says about contents. It costs what
// differs between the heads, not how many moves there were between them.
func (r *Reader) Net(ctx context.Context, source Source, after, until int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		after = max(after, source.After)
		// In this order: of a move that comes in between, at a time before both, this shows the changes. The other order would show them reversed.
		from, err := r.HeadAt(ctx, source, after)
		to := from
		if err == nil && after < until {
			to, err = r.HeadAt(ctx, source, until)
		}
		if err != nil {
			yield(Event{}, err)
			return
		}
		r.changes(ctx, source, after, from.Tree, to.Tree, source.event(to.Time, to.Commit), yield)
	}
}

// changes yields the difference of two trees as events that are otherwise like e, and tells whether to go on.
func (r *Reader) changes(ctx context.Context, source Source, after int64, left, right graveler.MetaRangeID, e Event, yield func(Event, error) bool) bool {
	for d, err := range r.store.DiffTrees(ctx, source.Repository, left, right, graveler.DiffOptions{}) {
		if err != nil {
			yield(Event{}, fmt.Errorf("changes of %s/%s: %w", source.Repository, source.Branch, r.explain(ctx, source, after, err)))
			return false
		}
		if !yield(e.change(d), nil) {
			return false
		}
	}
	return true
}

// explain returns what is behind an error in reading a tree. Files that are missing are no damage if retention has passed the
// window meanwhile, or the log has gone altogether.
func (r *Reader) explain(ctx context.Context, source Source, after int64, err error) error {
	if errors.Is(err, graveler.ErrCorrupt) {
		_, gone := r.HeadAt(ctx, source, after)
		if errors.Is(gone, graveler.ErrLogTruncated) || errors.Is(gone, graveler.ErrNotFound) {
			return gone
		}
	}
	return err
}

func (s Source) validate() error {
	if s.UID == "" {
		return fmt.Errorf("%w: source %s/%s has no branch UID", graveler.ErrInvalidValue, s.Repository, s.Branch)
	}
	return nil
}

func (s Source) event(at int64, commit graveler.CommitID) Event {
	return Event{Timestamp: at, Repository: s.Repository, Branch: s.Branch, UID: s.UID, Commit: commit}
}
