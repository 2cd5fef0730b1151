// SPDX-License-Identifier: Apache-2.0

package fsck

import (
	"context"
	"errors"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
)

// log checks one branch log, from where it may begin to the last move of the branch's record, or, of a branch that was deleted, to the deletion.
func (r *repository) log(ctx context.Context, name graveler.LogName) error {
	r.logs[digestOf(name.UID)] = struct{}{}
	moves := 0
	err := r.confirm(ctx, func(ctx context.Context) ([]Finding, error) {
		l := logCheck{repository: r, name: name}
		err := l.run(ctx)
		moves = l.moves
		return l.found, err
	})
	r.counts.Moves += moves
	return err
}

// logCheck is one look at a log.
type logCheck struct {
	*repository
	name   graveler.LogName
	branch *graveler.Branch // nil: it was deleted
	start  int64            // what came before may have been removed

	moves  int
	last   graveler.Move // that was read; the zero move is before all
	broken bool          // a move in between does not decode
	found  []Finding
}

func (l *logCheck) run(ctx context.Context) error {
	if whole, err := l.bounds(ctx); !whole || err != nil {
		return err
	}
	for s, err := range l.refs.ScanStored(ctx, l.record.Partition(), ref.LogPrefix(l.name.UID)) {
		if err != nil {
			return err
		}
		m, ok := s.Record.(ref.LoggedMove)
		switch {
		case !ok:
			l.broken = true
		case l.branch == nil || m.Time < l.branch.LastMove.Time:
			err = l.follow(ctx, m.Move)
		case m.Move != l.branch.LastMove: // which may be in the log already, if somebody was about to make another
			l.bad("the log has a move at %s that the branch's record does not know", timeOf(m.Time))
		}
		if err != nil {
			return err
		}
	}
	if l.branch != nil {
		return l.follow(ctx, l.branch.LastMove)
	}
	return l.ended(ctx)
}

// bounds reads where the log begins and ends. The record of the branch is read before the moves: they are all there then up to
// its last one. False means that a record which says so does not decode.
func (l *logCheck) bounds(ctx context.Context) (known bool, err error) {
	l.branch, err = l.refs.GetBranch(ctx, l.record, l.name.Branch)
	if errors.Is(err, graveler.ErrBranchNotFound) || err == nil && l.branch.UID != l.name.UID {
		l.branch, err = nil, nil
	}
	if err == nil {
		l.start, err = l.refs.LogStart(ctx, l.record, l.name.UID)
	}
	if errors.Is(err, graveler.ErrCorrupt) {
		return false, nil
	}
	return err == nil, err
}

// follow goes on with the next move.
func (l *logCheck) follow(ctx context.Context, m graveler.Move) error {
	last := l.last
	switch {
	case l.broken: // nothing is known of the one before
	case last.Op == graveler.OpDelete:
		l.bad("the log goes on after the branch was deleted at %s", timeOf(last.Time))
	case m.Previous < last.Time:
		l.bad("the move at %s is none of those that lead to the one at %s", timeOf(last.Time), timeOf(m.Time))
	case m.Previous > last.Time && m.Previous >= l.start:
		l.bad("the move at %s, before the one at %s, is missing", timeOf(m.Previous), timeOf(m.Time))
	case m.Previous == last.Time && m.Old != last.New:
		l.bad("the move at %s is from commit %s, but the one before it was to commit %s", timeOf(m.Time), orNone(m.Old), orNone(last.New))
	}
	l.last, l.broken = m, false
	l.moves++
	if m.Time < l.start {
		return nil // it is about to go, and what it names may have gone
	}
	ids := []graveler.CommitID{m.New}
	if m.Previous != last.Time {
		ids = append(ids, m.Old)
	}
	for _, id := range ids {
		if err := l.moved(ctx, m, id); err != nil {
			return err
		}
	}
	return nil
}

// moved looks for a commit that a move names.
func (l *logCheck) moved(ctx context.Context, m graveler.Move, id graveler.CommitID) error {
	if id == "" {
		return nil
	}
	_, exists, err := l.lookUp(ctx, id)
	if err == nil && !exists {
		exists, err = l.expiredNow(ctx, id)
	}
	if err == nil && !exists {
		f := damage(MissingCommit, "commit %s, which the move of the branch at %s names, does not exist", id, timeOf(m.Time))
		f.Branch, f.Commit = l.name.Branch, id
		l.found = append(l.found, f)
	}
	return err
}

// ended looks at how the log of a branch ends that has no record.
func (l *logCheck) ended(ctx context.Context) error {
	switch {
	case l.broken, l.last.Op == graveler.OpDelete:
		return nil
	case l.moves > 0:
		l.bad("the log ends at %s without a deletion, but the branch does not exist", timeOf(l.last.Time))
		return nil
	}
	if named, err := l.isLogNamed(ctx, l.name); err != nil || !named {
		return err
	}
	l.found = append(l.found, Finding{
		Kind: Unfinished, Severity: Note, Branch: l.name.Branch, What: "a branch was about to be created, or its log about to be removed: nothing is left of it but the name",
	})
	return nil
}

func (l *logCheck) bad(format string, args ...any) {
	f := damage(BadLog, format, args...)
	f.Branch = l.name.Branch
	l.found = append(l.found, f)
}

// isLogNamed reports whether a branch name is known to have had a log. If one of its records does not decode, that may be the one.
func (r *repository) isLogNamed(ctx context.Context, name graveler.LogName) (bool, error) {
	for n, err := range r.refs.ScanLogNames(ctx, r.record, name.Branch) {
		if errors.Is(err, graveler.ErrCorrupt) || err == nil && n.UID == name.UID {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// move looks at which log a move is of. The names of logs come before the moves in a scan.
func (r *repository) move(ctx context.Context, m ref.LoggedMove) error {
	if m.UID == r.lastLog {
		return nil
	}
	r.lastLog = m.UID
	if _, ok := r.logs[digestOf(m.UID)]; ok {
		return nil
	}
	return r.confirm(ctx, func(ctx context.Context) ([]Finding, error) {
		for n, err := range r.refs.ScanLogNames(ctx, r.record, "") {
			if errors.Is(err, graveler.ErrCorrupt) || err == nil && n.UID == m.UID {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
		}
		for _, err := range r.refs.ScanStored(ctx, r.record.Partition(), ref.LogPrefix(m.UID)) {
			return []Finding{damage(BadLog, "nothing says of which branch the log of %s is", m.UID)}, err
		}
		return nil, nil
	})
}

func timeOf(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano)
}
