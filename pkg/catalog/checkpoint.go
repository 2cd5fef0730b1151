// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

const (
	// lastCommits is how long the commits may take that Run makes when its context has ended.
	lastCommits = 30 * time.Second
	// Commits that failed are tried again after a while, twice as long each time.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Checkpoint commits what is uncommitted on a branch. It is no error if that is nothing.
func (c *Catalog) Checkpoint(ctx context.Context, b Bucket) error {
	ref, err := c.ref(ctx, b)
	if err == nil {
		on := branchName{b.Repository, graveler.BranchID(ref)}
		n := c.changes.take(on)
		if err = c.commit(ctx, on); err != nil {
			c.changes.putBack(on, n)
		}
	}
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", b, err)
	}
	return nil
}

func (c *Catalog) commit(ctx context.Context, on branchName) error {
	_, err := c.store.Commit(ctx, on.repository, on.branch, graveler.CommitParams{Message: "checkpoint", Committer: c.checkpoint.Committer})
	if errors.Is(err, graveler.ErrNoChanges) {
		return nil
	}
	return err
}

// Run makes checkpoints by the policy until ctx ends, for stores that show their users no commits. First it commits what is
// uncommitted on the default branches of all buckets, where an earlier process may have left something; then each branch that
// this catalog has changed, when its changes have reached the number of the policy, and at every interval. When ctx has ended it
// commits the rest, for up to half a minute. There should be one Run for a Catalog; changes are durable with or without it.
//
// A commit that fails is reported to failed, which may be nil, and tried again; a branch that is no more is forgotten. Run
// returns what is not committed at the end, and why, and nil where all is.
func (c *Catalog) Run(ctx context.Context, failed func(b Bucket, err error)) error {
	if failed == nil {
		failed = func(Bucket, error) {}
	}
	return (&checkpoints{c: c, after: time.After, failed: failed}).run(ctx)
}

// checkpoints is a Run.
type checkpoints struct {
	c      *Catalog
	after  func(time.Duration) <-chan time.Time
	failed func(b Bucket, err error)

	retry time.Duration    // since the last commit that succeeded there were failures, and this was the pause; 0: none
	again <-chan time.Time // when those that failed are due, nil: none did
}

func (r *checkpoints) run(ctx context.Context) error {
	r.takeOver(ctx)
	var tick <-chan time.Time
	for ctx.Err() == nil {
		if tick == nil && r.c.checkpoint.Interval > 0 {
			tick = r.after(r.c.checkpoint.Interval)
		}
		select {
		case <-ctx.Done():
		case <-r.c.changes.reached:
			if r.again == nil { // else they wait for the others
				r.commitAll(ctx, max(r.c.checkpoint.Changes, 1))
			}
		case <-r.again:
			r.again = nil
			r.commitAll(ctx, 1)
		case <-tick:
			tick = nil
			r.commitAll(ctx, 1)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCommits)
	defer cancel()
	return r.commitAll(last, 1)
}

// takeOver counts a change for each default branch, so that they are committed, and tried again, like others.
func (r *checkpoints) takeOver(ctx context.Context) {
	for repo, err := range r.c.store.ListRepositories(ctx, "") {
		if err != nil {
			if ctx.Err() == nil {
				r.failed(Bucket{}, fmt.Errorf("look for what an earlier process has left: %w", err))
			}
			break
		}
		if repo.State == graveler.RepositoryActive && !repo.ReadOnly {
			r.c.changes.putBack(branchName{repo.ID, repo.DefaultBranch}, 1)
		}
	}
	r.commitAll(ctx, 1)
}

// commitAll commits the branches that have at least a number of changes, and returns what went wrong.
func (r *checkpoints) commitAll(ctx context.Context, atLeast int) error {
	var errs []error
	for _, on := range r.c.changes.branches(atLeast) {
		n := r.c.changes.take(on)
		err := r.c.commit(ctx, on)
		if err == nil || errors.Is(err, graveler.ErrNotFound) || errors.Is(err, graveler.ErrRepositoryInDeletion) {
			continue
		}
		r.c.changes.putBack(on, n)
		b := Bucket{on.repository, string(on.branch)}
		err = fmt.Errorf("checkpoint %s: %w", b, err)
		errs = append(errs, err)
		if ctx.Err() == nil {
			r.failed(b, err)
		}
	}
	switch {
	case len(errs) == 0:
		r.retry = 0
	case r.again == nil:
		r.retry = min(max(2*r.retry, firstRetry), lastRetry)
		r.again = r.after(r.retry)
	}
	return errors.Join(errs...)
}

// branches returns those with at least a number of changes.
func (c *changeCounts) branches(atLeast int) []branchName {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []branchName
	for on, n := range c.counts {
		if n >= atLeast {
			found = append(found, on)
		}
	}
	return found
}

// take returns how many changes a branch has, and starts again from zero.
func (c *changeCounts) take(on branchName) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.counts[on]
	delete(c.counts, on)
	return n
}

// putBack adds changes that were not committed. Unlike new ones they do not call for a checkpoint.
func (c *changeCounts) putBack(on branchName, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 {
		c.counts[on] += n
	}
}
