// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

const (
	mainBranch = graveler.BranchID("main")
	// bulkEntries is how many entries are staged with one call where the staging is not what is measured.
	bulkEntries = 10_000
)

// repository makes a new repository.
func (b *bench) repository(ctx context.Context) (graveler.RepositoryID, error) {
	b.made++
	id := graveler.RepositoryID(fmt.Sprintf("bench-%d", b.made))
	if _, err := b.store.CreateRepository(ctx, id, graveler.CreateRepositoryParams{}); err != nil {
		return "", err
	}
	b.repositories = append(b.repositories, id)
	return id, nil
}

// entries are n entries below a prefix. Those of one prefix and number are always the same.
func (b *bench) entries(prefix string, n int) entries {
	return entries{prefix: prefix, n: n, seed: b.Seed, size: b.ValueBytes}
}

// stage stages entries in bulk.
func (b *bench) stage(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, es entries) error {
	for chunk := range slices.Chunk(upTo(es.n), bulkEntries) {
		if err := b.store.SetMany(ctx, repo, branch, es.batch(chunk)); err != nil {
			return err
		}
	}
	return nil
}

// upTo returns the numbers from zero on.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// discard removes a repository with all that it has, so that the next one finds the store as this one did.
func (b *bench) discard(ctx context.Context, repo graveler.RepositoryID) error {
	if err := b.store.DeleteRepository(ctx, repo); err != nil {
		return err
	}
	b.repositories = slices.DeleteFunc(b.repositories, func(id graveler.RepositoryID) bool { return id == repo })
	return b.tidy(ctx)
}

// fill commits entries to an empty branch, by whichever way is the quickest. What is written over later would not be missed at
// the end, so the tree is checked here.
func (b *bench) fill(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, es entries) (graveler.Commit, error) {
	if err := b.stage(ctx, repo, branch, es); err != nil {
		return graveler.Commit{}, err
	}
	c, err := b.commit(ctx, repo, branch)
	if err == nil {
		err = b.verifyRoot(ctx, c, es.all)
	}
	return c, err
}

// commit commits what was staged, of which there must be something.
func (b *bench) commit(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID) (graveler.Commit, error) {
	return commit(ctx, b.store, repo, branch)
}

func commit(ctx context.Context, store *moraine.Store, repo graveler.RepositoryID, branch graveler.BranchID) (graveler.Commit, error) {
	res, err := store.Commit(ctx, repo, branch, graveler.CommitParams{Message: "bench", Committer: "bench"})
	if errors.Is(err, graveler.ErrNoChanges) {
		err = fmt.Errorf("%w: %w", ErrWrong, err)
	}
	return res.Commit, err
}

// commitTimed returns how long a commit took, in seconds.
func (b *bench) commitTimed(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID) (float64, error) {
	return timed(func() error {
		_, err := b.commit(ctx, repo, branch)
		return err
	})
}

// timed returns how long fn took, in seconds.
func timed(fn func() error) (float64, error) {
	began := time.Now()
	err := fn()
	return time.Since(began).Seconds(), err
}
