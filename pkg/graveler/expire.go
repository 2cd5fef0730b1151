// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
)

// ErrExpired: retention has taken the tree of a commit. The commit itself stays, as a part of the history.
var ErrExpired = errors.New("entries of the commit have expired")

// A commit's tree goes in steps, between which a grace period passes, so that neither a process that is slow nor one that was
// quicker loses what it relies on:
//
//	pending   Nothing was found that keeps the tree. Whoever comes to rely on it (referable) takes the record away.
//	expired   Nobody may look at the tree any more, nor give the commit a name. This cannot be taken back.
//	removed   The files have gone, as far as no other tree has them.
//
// What somebody makes to rely on a commit (a branch, a tag, a pin, a head) is written within FileGrace of the call of referable,
// or referable is called once more afterwards. So who finds a mark that is older than FileGrace, then looks and finds nothing
// that keeps the commit, and then succeeds in replacing the very record that he found, knows that nobody relies on the commit.
// For that the time in a mark is that at which it was written, not that at which the run began: it must not be older than the
// mark, however long the run had been stopped.

// referable makes sure that a commit is one that a name can be given to, a head made of, or a pin put on: its tree is there, and
// will not go before there was time to write that. It returns ErrExpired where that is too late. It costs a read.
func (g *Graveler) referable(ctx context.Context, repo *Repository, id CommitID) error {
	for {
		e, err := g.refs.GetExpiration(ctx, repo, id)
		switch {
		case errors.Is(err, ErrNotFound):
			return nil
		case err != nil:
			return err
		case !e.Pending:
			return expired(id)
		}
		if err := g.refs.RemoveExpiration(ctx, repo, e); err != nil && !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

func expired(id CommitID) error { return fmt.Errorf("commit %s: %w", id, ErrExpired) }

// hasExpired reports whether retention has taken the tree of a commit.
func (g *Graveler) hasExpired(ctx context.Context, repo *Repository, id CommitID) (bool, error) {
	e, err := g.refs.GetExpiration(ctx, repo, id)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && !e.Pending, err
}

// readableTree returns the tree of a commit for those who look into it, or ErrExpired. That a commit was not even pending is
// remembered for a while, in which its files cannot go.
func (g *Graveler) readableTree(ctx context.Context, repo *Repository, c *Commit) (MetaRangeID, error) {
	k, now := commitKey{repo.Partition(), c.ID}, g.now()
	if since, ok := g.kept.GetIfPresent(k); ok && now.Sub(since) >= 0 && g.elapsed(since) < FileGrace/4 {
		return c.Tree, nil
	}
	e, err := g.refs.GetExpiration(ctx, repo, c.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		g.kept.Set(k, now)
	case err != nil:
		return "", err
	case !e.Pending:
		return "", expired(c.ID)
	}
	return c.Tree, nil
}

// readableTrees is readableTree for two commits.
func (g *Graveler) readableTrees(ctx context.Context, repo *Repository, a, b *Commit) (left, right MetaRangeID, err error) {
	if left, err = g.readableTree(ctx, repo, a); err == nil {
		right, err = g.readableTree(ctx, repo, b)
	}
	return left, right, err
}
