// SPDX-License-Identifier: Apache-2.0

package graveler

import "context"

// BatchRefs is what a store of records may be able to do besides: write many records that do not depend on each other in few
// round trips. A load uses it where it is there. After an error any of the records may have been written.
type BatchRefs interface {
	PutCommits(ctx context.Context, repo *Repository, commits []*Commit) error
	PutMoves(ctx context.Context, repo *Repository, branchUID string, moves []Move) error
}

// A batch of records has at most so many, or about so many bytes of text.
const (
	batchRecords = 500
	batchBytes   = 1 << 20
)

// loadBatch are records of a load that are to be written together: commits, and moves of one log.
type loadBatch struct {
	commits []*Commit
	bytes   int
	log     string // UID of the branch
	moves   []Move
}

func (l *Loading) addCommit(ctx context.Context, c *Commit) error {
	if _, ok := l.g.refs.(BatchRefs); !ok {
		return l.write(ctx, func() error { return l.g.refs.PutCommit(ctx, l.repo, c) })
	}
	l.batch.commits = append(l.batch.commits, c)
	l.batch.bytes += len(c.Committer) + len(c.Message)
	for k, v := range c.Metadata {
		l.batch.bytes += len(k) + len(v)
	}
	if len(l.batch.commits) < batchRecords && l.batch.bytes < batchBytes {
		return l.alive(ctx)
	}
	return l.writeCommits(ctx)
}

func (l *Loading) addMove(ctx context.Context, branchUID string, m Move) error {
	if _, ok := l.g.refs.(BatchRefs); !ok {
		return l.write(ctx, func() error { return l.g.refs.PutMove(ctx, l.repo, branchUID, m) })
	}
	if l.batch.log != branchUID || len(l.batch.moves) == batchRecords {
		if err := l.writeMoves(ctx); err != nil {
			return err
		}
	}
	l.batch.log = branchUID
	l.batch.moves = append(l.batch.moves, m)
	return l.alive(ctx)
}

// writeBatch writes in the background what has been put together so far.
func (l *Loading) writeBatch(ctx context.Context) error {
	if err := l.writeCommits(ctx); err != nil {
		return err
	}
	return l.writeMoves(ctx)
}

func (l *Loading) writeCommits(ctx context.Context) error {
	commits := l.batch.commits
	if len(commits) == 0 {
		return nil
	}
	l.batch.commits, l.batch.bytes = nil, 0
	return l.behind(ctx, &l.chunks, func() error { return l.g.refs.(BatchRefs).PutCommits(ctx, l.repo, commits) })
}

func (l *Loading) writeMoves(ctx context.Context) error {
	moves, log := l.batch.moves, l.batch.log
	if len(moves) == 0 {
		return nil
	}
	l.batch.moves = nil
	return l.behind(ctx, &l.chunks, func() error { return l.g.refs.(BatchRefs).PutMoves(ctx, l.repo, log, moves) })
}
