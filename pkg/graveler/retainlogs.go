// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/rs/xid"
)

// shortenLogs removes the moves that are older than the rules keep, from the old end of each log, and the logs of deleted
// branches of which nothing is left.
//
// Between them, those who put pins and those who remove moves must not miss each other: who is about to remove moves announces
// that in the log's bounds and looks for pins then; who puts a pin looks at the bounds then.
func (r *retaining) shortenLogs(ctx context.Context) error {
	if r.params.DryRun {
		return nil
	}
	for log, err := range r.g.refs.ScanLogNames(ctx, r.repo, "") {
		if err == nil {
			err = r.shortenLog(ctx, log)
		}
		if err != nil && !errors.Is(err, ErrChanged) { // another is at this log
			return err
		}
	}
	return nil
}

func (r *retaining) shortenLog(ctx context.Context, log LogName) error {
	horizon := r.rules.horizon(log.Branch, r.now)
	if horizon == 0 {
		return nil
	}
	b, err := r.g.refs.GetBranch(ctx, r.repo, log.Branch)
	if errors.Is(err, ErrBranchNotFound) || err == nil && b.UID != log.UID {
		b, err = nil, nil
	}
	switch {
	case err != nil:
		return err
	case b != nil && b.State == BranchDeleted:
		return nil // its last move is still to be written
	}
	start, err := r.advanceStart(ctx, log, horizon)
	if err != nil {
		return err
	}
	left, err := r.removeMoves(ctx, log, start)
	if err != nil || b != nil || left {
		return err
	}
	// A log that has nothing may be that of a branch which is about to be created.
	if start < horizon || !createdBefore(log.UID, r.now.Add(-FileGrace)) {
		return nil
	}
	if _, err := r.g.refs.GetBranch(ctx, r.repo, log.Branch); !errors.Is(err, ErrBranchNotFound) {
		return err // there may be another of that name; its log is not empty, or the next run's
	}
	r.report.LogsRemoved++
	return r.g.refs.RemoveLogName(ctx, r.repo, log)
}

// advanceStart makes the start of a log the horizon, or what pins leave of it, and returns it.
func (r *retaining) advanceStart(ctx context.Context, log LogName, horizon int64) (int64, error) {
	bounds, err := r.g.refs.LogBounds(ctx, r.repo, log.UID)
	if err != nil || bounds.Start >= horizon {
		return bounds.Start, err
	}
	bounds.Intent = horizon
	if err := r.g.refs.PutLogBounds(ctx, r.repo, log.UID, bounds); err != nil {
		return 0, err
	}
	if bounds, err = r.g.refs.LogBounds(ctx, r.repo, log.UID); err != nil || bounds.Intent != horizon {
		return bounds.Start, err
	}
	for pin, err := range r.g.refs.ScanPins(ctx, r.repo) {
		if err != nil {
			return 0, err
		}
		if from, ok := pin.Logs[log.UID]; ok {
			horizon = min(horizon, from)
		}
	}
	bounds.Start = max(bounds.Start, horizon)
	bounds.Intent = bounds.Start
	return bounds.Start, r.g.refs.PutLogBounds(ctx, r.repo, log.UID, bounds)
}

// removeMoves removes the moves before a time, oldest first, and reports whether others are left.
func (r *retaining) removeMoves(ctx context.Context, log LogName, start int64) (left bool, err error) {
	for m, err := range r.g.refs.ScanMoves(ctx, r.repo, log.UID, 0, math.MaxInt64) {
		if err != nil {
			return false, err
		}
		if m.Time >= start {
			return true, nil
		}
		if err := r.g.refs.RemoveMove(ctx, r.repo, log.UID, m.Time); err != nil {
			return false, err
		}
		r.report.MovesRemoved++
	}
	return false, nil
}

// createdBefore reports whether a branch with this UID was made before a time. UIDs that are not ours are old.
func createdBefore(uid string, t time.Time) bool {
	id, err := xid.FromString(uid)
	return err != nil || id.Time().Before(t)
}
