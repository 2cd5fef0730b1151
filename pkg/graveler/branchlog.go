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
		previous, first := int64(0), true
		linked := func(m Move) error {
			if !first && m.Previous != previous {
				return fmt.Errorf("log of branch %s/%s: %w: the move at %d follows one at %d, which is missing", repo.ID, b.ID, ErrCorrupt, m.Time, m.Previous)
			}
			previous, first = m.Time, false
			return nil
		}
		for m, err := range g.refs.ScanMoves(ctx, repo, b.UID, from, b.LastMove.Time-1) {
			if err == nil {
				err = linked(m)
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
		if err := linked(b.LastMove); err != nil {
			return err
		}
		emit(b.LastMove)
		return nil
	})
}
