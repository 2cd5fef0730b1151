// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// Report is what a pass did.
type Report struct {
	// Now is the frozen time of the pass.
	Now time.Time
	// Took is how long the pass took, and Waited how much of that it waited for the limiter.
	Took, Waited time.Duration
	// CutOff: MaxRuntime was reached, the context ended, or all shards were lost to other processes, before everything was looked at.
	CutOff  bool
	DryRun  bool
	Shards  []ShardReport
	Sources []SourceReport
	// Outcomes counts what was dispatched; what a lock bars is SkippedObjectLock, whether it was dispatched or not. In a dry run
	// it counts what would be, as Done.
	Outcomes map[Dispatched]int
	// Errors is how many errors there were, all of which Run returns.
	Errors int
}

// Dispatched is a kind of action in a repository, and what came of it.
type Dispatched struct {
	Repository graveler.RepositoryID
	Kind       lifecycle.ActionKind
	Outcome    lifecycle.Outcome
}

// ShardReport is about a shard that the pass worked on.
type ShardReport struct {
	Shard int
	// Time is that of the latest pass up to which everything that was due has been done; zero where there was none.
	Time time.Time
	// LastWalked is when the oldest of the last walks began, of the repositories whose names are in the shard; zero where one was never walked.
	LastWalked time.Time
	// Events is how many changes and candidates were looked at.
	Events int
	// Took is how long the shard was worked on, together with others.
	Took time.Duration
}

// SourceReport is about a branch that has rules.
type SourceReport struct {
	dispatch.Source
	// Skipped says why nothing was done; "" where that is not so.
	Skipped string
	// Blocked is how many lanes of how many shards stand before something that could not be carried out, be it for now. What a
	// lock has deferred in a shard counts as one more, and so does a walk that has come to such a thing.
	Blocked int
	// WaitingUntil is when the next object falls due, as far as is known; zero: none is waiting.
	WaitingUntil time.Time
	// Events is how many changes were read.
	Events int
	// OverBudget: EventBudget was used up before everything was looked at, so that the next pass goes on there.
	OverBudget bool
	Walked     bool // a walk over it has ended
	Err        error
}

// Heartbeat returns one line about the pass, for a log. Its tokens stay as they are:
//
//	daily_run: status=ok shards=16 errors=0 duration=7s cursor_lag_max=2h walked_max_age=3m
//
// status is ok or error, or idle where the pass had no shards to work on: other processes hold them. A lag or an age is cold
// where nothing of the kind has ended yet.
func (r *Report) Heartbeat() string {
	status := "ok"
	switch {
	case r.Errors > 0:
		status = "error"
	case len(r.Shards) == 0:
		status = "idle"
	}
	lag, walked := "cold", "cold"
	if oldest, ok := r.oldest(func(s ShardReport) time.Time { return s.Time }); ok {
		lag = shortly(r.Now.Sub(oldest))
	}
	if oldest, ok := r.oldest(func(s ShardReport) time.Time { return s.LastWalked }); ok {
		walked = shortly(r.Now.Sub(oldest))
	}
	return fmt.Sprintf("daily_run: status=%s shards=%d errors=%d duration=%s cursor_lag_max=%s walked_max_age=%s", status, len(r.Shards), r.Errors, shortly(r.Took), lag, walked)
}

// oldest returns the earliest of a time of all shards; false where there is none, or a shard has none.
func (r *Report) oldest(of func(ShardReport) time.Time) (time.Time, bool) {
	oldest, ok := time.Time{}, len(r.Shards) > 0
	for _, s := range r.Shards {
		t := of(s)
		if ok = ok && !t.IsZero(); ok && (oldest.IsZero() || t.Before(oldest)) {
			oldest = t
		}
	}
	return oldest, ok
}

// shortly returns a duration in its two largest units.
func shortly(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%dh%s", d/time.Hour, unlessZero(d%time.Hour/time.Minute, "m"))
	case d >= time.Minute:
		return fmt.Sprintf("%dm%s", d/time.Minute, unlessZero(d%time.Minute/time.Second, "s"))
	case d >= time.Second:
		return fmt.Sprintf("%ds", d/time.Second)
	case d >= time.Millisecond:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	default:
		return "0s"
	}
}

func unlessZero(n time.Duration, unit string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d%s", n, unit)
}
