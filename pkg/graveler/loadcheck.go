// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/errgroup"
)

const (
	// treesAtOnce is how many trees of a load are copied or checked at a time.
	treesAtOnce = 4
	// rememberedFiles is how many files a load knows to be done. One that is forgotten is only looked at again.
	rememberedFiles = 100_000
)

// loadCheck proves that what was loaded is whole, by reading it back, past the caches.
type loadCheck struct {
	*Loading
	trees *errgroup.Group
	done  *otter.Cache[string, struct{}] // files that are copied or checked with all below them, or that a tree under way is about to; if that fails, so does the load
}

func (l *Loading) check(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(treesAtOnce)
	c := &loadCheck{Loading: l, trees: group, done: otter.Must(&otter.Options[string, struct{}]{MaximumSize: rememberedFiles, Executor: func(fn func()) { fn() }})}
	err := c.records(ctx)
	if err != nil && ctx.Err() == nil {
		cancel() // the trees under way, whose errors say no more than that
		_ = group.Wait()
		return err
	}
	return cmp.Or(group.Wait(), err)
}

func (c *loadCheck) records(ctx context.Context) error {
	for _, check := range []func(context.Context) error{c.logNames, c.defaultBranch, c.branches, c.tags, c.commits, c.pins, c.retention} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// logNames makes sure that every log is of a branch.
func (c *loadCheck) logNames(context.Context) error {
	for uid, branch := range c.Loading.logs {
		if branch == "" {
			return fmt.Errorf("log %s: %w: nothing says of which branch it is", uid, ErrInvalidValue)
		}
	}
	return nil
}

// retention makes sure that the rules can be read: they would be found out by the first run that is to apply them.
func (c *loadCheck) retention(ctx context.Context) error {
	_, err := c.g.retentionRules(ctx, c.repo)
	return err
}

func (c *loadCheck) defaultBranch(ctx context.Context) error {
	_, err := c.g.liveBranch(ctx, c.repo, c.repo.DefaultBranch)
	if errors.Is(err, ErrBranchNotFound) {
		return fmt.Errorf("%w: there is no default branch %s", ErrInvalidValue, c.repo.DefaultBranch)
	}
	return err
}

func (c *loadCheck) branches(ctx context.Context) error {
	for b, err := range c.g.refs.ScanBranches(ctx, c.repo, "") {
		if err == nil {
			err = c.named(ctx, b.Head, "branch "+string(b.ID))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *loadCheck) tags(ctx context.Context) error {
	for t, err := range c.g.refs.ScanTags(ctx, c.repo, "") {
		if err == nil {
			err = c.unlikeBranch(ctx, t.ID)
		}
		if err == nil {
			err = c.named(ctx, t.Commit, "tag "+string(t.ID))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unlikeBranch makes sure that no branch has the name of a tag: the tag could not be had by its name.
func (c *loadCheck) unlikeBranch(ctx context.Context, id TagID) error {
	_, err := c.g.liveBranch(ctx, c.repo, BranchID(id))
	switch {
	case err == nil:
		return fmt.Errorf("tag %s: %w: there is a branch of that name", id, ErrInvalidValue)
	case errors.Is(err, ErrBranchNotFound):
		return nil
	default:
		return err
	}
}

// named makes sure that what has a name is there, tree and all.
func (c *loadCheck) named(ctx context.Context, id CommitID, by string) error {
	commit, err := c.g.refs.GetCommit(ctx, c.repo, id)
	if errors.Is(err, ErrCommitNotFound) {
		return fmt.Errorf("%s: %w: commit %s is missing", by, ErrInvalidValue, id)
	}
	if err != nil {
		return err
	}
	c.tree(ctx, commit.Tree)
	return c.alive(ctx)
}

func (c *loadCheck) pins(ctx context.Context) error {
	for p, err := range c.g.refs.ScanPins(ctx, c.repo) {
		if err != nil {
			return err
		}
		for _, tree := range p.Trees {
			c.tree(ctx, tree)
		}
	}
	return nil
}

// tree copies a tree, or checks it where it is, unless that was done: most commits have the tree of another.
func (c *loadCheck) tree(ctx context.Context, tree MetaRangeID) {
	if _, done := c.done.GetIfPresent(string(tree)); done || tree == c.g.trees.EmptyTree() {
		return
	}
	c.trees.Go(func() error {
		if c.params.Files != "" && !c.params.InPlace {
			return c.g.trees.CopyTree(ctx, c.params.Files, c.repo.Namespace, tree, func(f TreeFile) (bool, error) { return c.isNew(ctx, f) })
		}
		return c.g.trees.Walk(ctx, c.repo.Namespace, tree, func(f TreeFile) (bool, error) {
			isNew, err := c.isNew(ctx, f)
			if err == nil && isNew {
				err = c.g.trees.CheckFile(ctx, c.repo.Namespace, f)
			}
			return isNew, err
		})
	})
}

func (c *loadCheck) isNew(ctx context.Context, f TreeFile) (bool, error) {
	_, added := c.done.SetIfAbsent(f.ID, struct{}{})
	return added, c.alive(ctx)
}
