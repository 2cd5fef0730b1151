// SPDX-License-Identifier: Apache-2.0

package fsck

import (
	"context"
	"errors"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// lookUp finds a commit among those that are remembered, and, since it may be newer than they are, in the store.
func (r *repository) lookUp(ctx context.Context, id graveler.CommitID) (facts commitFacts, exists bool, err error) {
	if facts, ok := r.commits[digestOf(id)]; ok {
		return facts, true, nil
	}
	c, err := r.refs.GetCommit(ctx, r.record, id)
	switch {
	case err == nil:
		return commitFacts{generation: c.Generation, logTime: c.LogTime}, true, nil
	case errors.Is(err, graveler.ErrCommitNotFound):
		return commitFacts{}, false, nil
	case errors.Is(err, graveler.ErrCorrupt):
		return commitFacts{}, true, nil
	}
	return commitFacts{}, false, err
}

// isExpired goes by what is remembered, expiredNow by what is stored.
func (r *repository) isExpired(id graveler.CommitID) bool {
	_, ok := r.expired[digestOf(id)]
	return ok
}

func (r *repository) expiredNow(ctx context.Context, id graveler.CommitID) (bool, error) {
	e, err := r.refs.GetExpiration(ctx, r.record, id)
	if errors.Is(err, graveler.ErrNotFound) {
		return false, nil
	}
	if errors.Is(err, graveler.ErrCorrupt) { // reported for itself
		return true, nil
	}
	return err == nil && !e.Pending, err
}

func (r *repository) commit(ctx context.Context, c *graveler.Commit) error {
	r.counts.Commits++
	if c.Version != graveler.CommitVersion && !c.Carried() {
		r.unverified++
	}
	read := func(ctx context.Context) (*graveler.Commit, error) { return r.refs.GetCommit(ctx, r.record, c.ID) }
	found, err := twice(ctx, again(c, read, r.lookAtCommit))
	if err == nil {
		err = r.suspect(ctx, c.ID, found)
	}
	if err != nil {
		return err
	}
	switch {
	case r.isExpired(c.ID):
		r.counts.ExpiredCommits++
		r.unwalked = true
		return nil
	case !r.isReached(c.ID):
		r.counts.UnreachedCommits++
		r.unwalked = true
		return nil
	}
	return r.tree(ctx, c.Tree, r.commitRefers(c.ID))
}

func (r *repository) lookAtCommit(ctx context.Context, c *graveler.Commit) (found []Finding, err error) {
	bad := func(format string, args ...any) {
		f := damage(BadCommit, format, args...)
		f.Commit = c.ID
		found = append(found, f)
	}
	switch computed := c.ComputeID(); {
	case c.Version == graveler.CommitVersion && computed != c.ID:
		bad("the record of commit %s holds what has the ID %s", c.ID, computed)
	case c.Carried() && c.Nonce != c.Digest():
		bad("the record of commit %s does not hold what it was carried with", c.ID)
	case c.Version != graveler.CommitVersion && computed == c.ID:
		bad("commit %s says that its ID was computed by rule %d, which it was not", c.ID, c.Version)
	}
	generation, known := int64(0), true
	for _, p := range c.Parents {
		parent, exists, err := r.lookUp(ctx, p)
		if err != nil {
			return nil, err
		}
		if !exists {
			f := damage(MissingCommit, "commit %s, a parent of commit %s, does not exist", p, c.ID)
			f.Commit = p
			found = append(found, f)
		}
		if parent.generation == 0 {
			known = false
			continue
		}
		generation = max(generation, parent.generation)
		if c.LogTime <= parent.logTime {
			bad("the log time of commit %s is not after that of its parent %s", c.ID, p)
		}
	}
	if known && c.Generation != generation+1 {
		bad("commit %s has generation %d, not %d", c.ID, c.Generation, generation+1)
	}
	return found, nil
}

func (r *repository) tag(ctx context.Context, t *graveler.Tag) error {
	r.counts.Tags++
	read := func(ctx context.Context) (*graveler.Tag, error) { return r.refs.GetTag(ctx, r.record, t.ID) }
	err := r.confirm(ctx, again(t, read, func(ctx context.Context, t *graveler.Tag) ([]Finding, error) {
		_, exists, err := r.lookUp(ctx, t.Commit)
		if exists || err != nil {
			return nil, err
		}
		f := damage(DanglingTag, "commit %s, which the tag names, does not exist", t.Commit)
		f.Tag, f.Commit = t.ID, t.Commit
		return []Finding{f}, nil
	}))
	if err != nil || !r.isExpired(t.Commit) {
		return err
	}
	c, err := r.refs.GetCommit(ctx, r.record, t.Commit)
	if errors.Is(err, graveler.ErrNotFound) || errors.Is(err, graveler.ErrCorrupt) {
		return nil // reported where it was looked for
	}
	if err != nil {
		return err
	}
	return r.tree(ctx, c.Tree, r.tagRefers(t))
}
