// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"fmt"
	"iter"
)

// BranchLog yields the moves of a branch's head from the time from on (nanoseconds since the epoch), oldest first. A gap in the log is ErrCorrupt.
func (g *Graveler) BranchLog(ctx context.Context, repo RepositoryID, branch BranchID, from int64) iter.Seq2[Move, error] {
	return func(yield func(Move, error) bool) {
		r, b, err := g.readLiveBranch(ctx, repo, branch)
		if err != nil {
			yield(Move{}, err)
			return
		}
		g.moves(ctx, r, b, from)(yield)
	}
}

// moves yields the moves up to the one that the record b, read before, carries. The log has every move but the newest of the
// current record; reading the record first therefore misses none.
func (g *Graveler) moves(ctx context.Context, repo *Repository, b *Branch, from int64) iter.Seq2[Move, error] {
	return sequence(func(emit func(Move) bool) error {
		chain := chain{repo: repo.ID, branch: b.ID}
		for m, err := range g.refs.ScanMoves(ctx, repo, b.UID, from, b.LastMove.Time-1) {
			if err == nil {
				err = g.link(ctx, repo, b.UID, &chain, m)
			}
			if err != nil {
				return err
			}
			if !emit(m) {
				return nil
			}
		}
		if b.LastMove.Time < from {
			return nil
		}
		if err := g.link(ctx, repo, b.UID, &chain, b.LastMove); err != nil {
			return err
		}
		emit(b.LastMove)
		return nil
	})
}

// link adds a move to a chain. Those between may be missing because retention has removed them since the reading began.
func (g *Graveler) link(ctx context.Context, repo *Repository, uid string, c *chain, m Move) error {
	gap := c.link(m)
	if gap == nil {
		return nil
	}
	start, err := g.refs.LogStart(ctx, repo, uid)
	if err != nil {
		return err
	}
	if m.Previous >= start {
		return gap
	}
	c.started = false
	return c.link(m)
}

// chain notices a move that is missing between others.
type chain struct {
	repo     RepositoryID
	branch   BranchID
	previous int64
	started  bool
}

func (c *chain) link(m Move) error {
	if c.started && m.Previous != c.previous {
		return fmt.Errorf("log of branch %s/%s: %w: the move at %d follows one at %d, which is missing", c.repo, c.branch, ErrCorrupt, m.Time, m.Previous)
	}
	c.previous, c.started = m.Time, true
	return nil
}
