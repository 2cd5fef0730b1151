// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"
)

// A branch log is read by the UID of its branch, which outlives the name's record, and tells one branch of a name from the next.
// The end of a log is read before the log, since movers write in the other order: what the end says was there then is in the log,
// or retention has removed it, or something is wrong.

// LoggedMove is a move with the trees of its commits; the empty tree where there is no commit.
type LoggedMove struct {
	Move
	OldTree, NewTree MetaRangeID
}

// BranchHead is the head of a branch as of an instant.
type BranchHead struct {
	Time   int64    // of the move that made it the head, nanoseconds since the epoch; 0 before the branch was created
	Commit CommitID // "" where there was no branch
	Tree   MetaRangeID
}

// ErrLogTruncated is what a LogTruncatedError matches.
var ErrLogTruncated = errors.New("branch log is truncated")

// LogTruncatedError: moves that were asked for may have been removed by retention.
type LogTruncatedError struct {
	Repository RepositoryID
	Log        LogName
	// Earliest is the earliest instant whose head the log still tells, in nanoseconds since the epoch: reading from there on works.
	Earliest int64
}

func (e *LogTruncatedError) Error() string {
	return fmt.Sprintf("%v: it begins after %s", ErrLogTruncated, timeText(e.Earliest))
}

// Is makes errors.Is(err, ErrLogTruncated) true.
func (e *LogTruncatedError) Is(target error) bool { return target == ErrLogTruncated }

// LogNames yields the logs that a branch name has had, live or deleted, or, where branch is "", those of all names, by name. Logs
// of one name come in the order in which their branches were made, except that those of one second come in any order. A log whose
// branch was never finished is among them, and empty.
func (g *Graveler) LogNames(ctx context.Context, repo RepositoryID, branch BranchID) iter.Seq2[LogName, error] {
	return sequence(func(emit func(LogName) bool) error {
		r, err := g.repository(ctx, repo)
		if err != nil {
			return err
		}
		for name, err := range g.refs.ScanLogNames(ctx, r, branch) {
			if err != nil {
				return err
			}
			if !emit(name) {
				return nil
			}
		}
		return nil
	})
}

// LogStart returns the earliest instant whose head a log tells, which is the smallest after that MoveLog takes; 0 where nothing was removed.
func (g *Graveler) LogStart(ctx context.Context, repo RepositoryID, log LogName) (int64, error) {
	r, err := g.repository(ctx, repo)
	if err != nil {
		return 0, err
	}
	return g.logStart(ctx, r, log)
}

func (g *Graveler) logStart(ctx context.Context, repo *Repository, log LogName) (int64, error) {
	start, err := g.refs.LogStart(ctx, repo, log.UID)
	return max(start-1, 0), err // the moves from start on are there, so the head just before it is known
}

// MoveLog yields the moves with after < Time <= until of the branch that log names, live or deleted, oldest first: all that there
// were when the iteration began, whatever is moved meanwhile. It returns a LogTruncatedError where after is before the start of
// the log, ErrBranchNotFound where there is no such log, and ErrCorrupt where a move is missing, be it the first. A move that is
// made later can be in the window too, unless until is at most the time of the branch's newest move, from which times only
// increase. It costs a read for each move in the window and for each of their commits; if the branch is deleted, what follows in
// its log is read too, or, where the window begins at its end, all of it.
func (g *Graveler) MoveLog(ctx context.Context, repo RepositoryID, log LogName, after, until int64) iter.Seq2[LoggedMove, error] {
	return sequence(func(emit func(LoggedMove) bool) error {
		r, b, err := g.openLog(ctx, repo, log, after)
		if err != nil {
			return err
		}
		for m, err := range g.movesAfter(ctx, r, b, after) {
			if err != nil {
				return err
			}
			if m.Time > until {
				return nil // it was read to see that none before it is missing
			}
			logged, err := g.withTrees(ctx, r, m)
			if err != nil {
				return g.explainLog(ctx, r, log, after, err)
			}
			if !emit(logged) {
				return nil
			}
		}
		return nil
	})
}

// HeadAt returns the head of the branch that log names as of an instant: after its last move at or before that time. Its errors
// are those of MoveLog, with at as after. It costs a few reads, whatever the length of the log. If the branch is deleted, the log
// is read from there to its end, or, where that is not before the end, all of it.
func (g *Graveler) HeadAt(ctx context.Context, repo RepositoryID, log LogName, at int64) (BranchHead, error) {
	r, b, err := g.openLog(ctx, repo, log, at)
	if err != nil {
		return BranchHead{}, err
	}
	head := BranchHead{Time: b.LastMove.Time, Commit: b.LastMove.New}
	if at < head.Time {
		for m, err := range g.movesAfter(ctx, r, b, at) {
			if err != nil {
				return BranchHead{}, err
			}
			head = BranchHead{Time: m.Previous, Commit: m.Old}
			break
		}
	}
	head.Tree, err = g.treeOf(ctx, r, head.Commit)
	if err != nil {
		return BranchHead{}, g.explainLog(ctx, r, log, at, err)
	}
	return head, nil
}

// DiffTrees yields the entries in which two trees of a repository differ, by key. They must be kept by something that refers to
// them. It costs what differs, not what there is.
func (g *Graveler) DiffTrees(ctx context.Context, repo RepositoryID, left, right MetaRangeID, o DiffOptions) iter.Seq2[Diff, error] {
	return sequence(func(emit func(Diff) bool) (err error) {
		defer g.observe("diff", time.Now(), &err)
		r, err := g.repository(ctx, repo)
		if err == nil {
			err = g.diffTrees(ctx, r, left, right, o, emit)
		}
		if err != nil {
			return fmt.Errorf("diff trees %s and %s of %s: %w", left, right, repo, err)
		}
		return nil
	})
}

// openLog reads how a log ends, and sees to it that it reaches back to after. The record is that of the branch; if the branch is
// deleted, what its deletion made of it.
func (g *Graveler) openLog(ctx context.Context, repo RepositoryID, log LogName, after int64) (*Repository, *Branch, error) {
	if err := ValidateBranchID(log.Branch); err != nil {
		return nil, nil, err
	}
	r, err := g.repository(ctx, repo)
	if err != nil {
		return nil, nil, err
	}
	b, err := g.logRecord(ctx, r, log)
	if err == nil && b == nil {
		b, err = g.endedLog(ctx, r, log, after)
	}
	if err == nil {
		err = g.checkLogStart(ctx, r, log, after)
	}
	if err == nil && b.State == BranchDeleted {
		err = g.checkLogName(ctx, r, log) // after its start, which goes last where retention removes a whole log
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the log of branch %s/%s: %w", repo, log.Branch, err)
	}
	return r, b, nil
}

// logRecord reads the record of the branch whose log this is, nil where there is none.
func (g *Graveler) logRecord(ctx context.Context, repo *Repository, log LogName) (*Branch, error) {
	b, err := g.readBranch(ctx, repo, log.Branch)
	if errors.Is(err, ErrBranchNotFound) || err == nil && b.UID != log.UID {
		return nil, nil
	}
	return b, err
}

// endedLog is for a branch that had no record just now. Its log ends with the deletion, or has nothing at all, if the branch
// never came to be or retention has removed everything. Any other end means that the record was made since, or, if there is none
// even now, that the rest of the log is missing.
func (g *Graveler) endedLog(ctx context.Context, repo *Repository, log LogName, after int64) (*Branch, error) {
	var last Move
	for range 2 {
		var err error
		if last, err = g.lastLogged(ctx, repo, log, after); err != nil {
			return nil, err
		}
		if last.New == "" {
			return &Branch{ID: log.Branch, UID: log.UID, State: BranchDeleted, LastMove: last}, nil
		}
		if b, err := g.logRecord(ctx, repo, log); b != nil || err != nil {
			return b, err
		}
	}
	if err := g.checkLogName(ctx, repo, log); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: the branch is gone, but its log ends with the move at %d, which is no deletion", ErrCorrupt, last.Time)
}

// lastLogged returns the newest move in the log, where it can among those after a time; a zero one where there is none.
func (g *Graveler) lastLogged(ctx context.Context, repo *Repository, log LogName, after int64) (last Move, err error) {
	for _, from := range []int64{following(after), 0} {
		for m, err := range g.refs.ScanMoves(ctx, repo, log.UID, from, math.MaxInt64) {
			if err != nil {
				return Move{}, err
			}
			last = m
		}
		if last.Time != 0 {
			break
		}
	}
	return last, nil
}

// following returns the first instant after a time at which there can be a move.
func following(after int64) int64 { return min(max(after, 0), math.MaxInt64-1) + 1 }

// checkLogStart returns a LogTruncatedError where moves after the time after may have been removed.
func (g *Graveler) checkLogStart(ctx context.Context, repo *Repository, log LogName, after int64) error {
	earliest, err := g.logStart(ctx, repo, log)
	if err == nil && max(after, 0) < earliest {
		err = &LogTruncatedError{Repository: repo.ID, Log: log, Earliest: earliest}
	}
	return err
}

// checkLogName returns ErrBranchNotFound where the name has not had this log.
func (g *Graveler) checkLogName(ctx context.Context, repo *Repository, log LogName) error {
	known := false
	for name, err := range g.refs.ScanLogNames(ctx, repo, log.Branch) {
		if err != nil {
			return err
		}
		known = known || name == log
	}
	// Where the repository was deleted meanwhile, nothing that was not found says anything.
	if err := g.stillThere(ctx, repo); err != nil {
		return err
	}
	if !known {
		return fmt.Errorf("%w: the name has no log of a branch %s", ErrBranchNotFound, log.UID)
	}
	return nil
}

// movesAfter yields the moves after a time, up to the one that the record b carries, and sees to it that the first of them
// follows one that is not after it.
func (g *Graveler) movesAfter(ctx context.Context, repo *Repository, b *Branch, after int64) iter.Seq2[Move, error] {
	return sequence(func(emit func(Move) bool) error {
		first := true
		for m, err := range g.moves(ctx, repo, b, following(after)) {
			if err == nil && first && m.Previous > max(after, 0) {
				err = fmt.Errorf("log of branch %s/%s: %w: the move at %d follows one at %d, which is missing", repo.ID, b.ID, ErrCorrupt, m.Time, m.Previous)
			}
			if err != nil {
				return g.explainLog(ctx, repo, LogName{Branch: b.ID, UID: b.UID}, after, err)
			}
			if first = false; !emit(m) {
				return nil
			}
		}
		return nil
	})
}

// explainLog returns what is behind something that is missing: retention has removed it, or the whole repository is gone. Otherwise it returns err.
func (g *Graveler) explainLog(ctx context.Context, repo *Repository, log LogName, after int64, err error) error {
	if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrExpired) {
		if truncated := g.checkLogStart(ctx, repo, log, after); errors.Is(truncated, ErrLogTruncated) {
			return fmt.Errorf("read the log of branch %s/%s: %w", repo.ID, log.Branch, truncated)
		}
	}
	return g.unlessGone(ctx, repo, err)
}

func (g *Graveler) withTrees(ctx context.Context, repo *Repository, m Move) (LoggedMove, error) {
	from, err := g.treeOf(ctx, repo, m.Old)
	if err != nil {
		return LoggedMove{}, err
	}
	to, err := g.treeOf(ctx, repo, m.New)
	return LoggedMove{Move: m, OldTree: from, NewTree: to}, err
}

// treeOf returns the tree of a commit that a move names, the empty one for none.
func (g *Graveler) treeOf(ctx context.Context, repo *Repository, id CommitID) (MetaRangeID, error) {
	if id == "" {
		return g.trees.EmptyTree(), nil
	}
	c, err := g.referred(ctx, repo, id)
	if err != nil {
		return "", err
	}
	return g.readableTree(ctx, repo, c)
}
