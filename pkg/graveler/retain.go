// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// RetainParams says how to apply the retention rules.
type RetainParams struct {
	// DryRun removes nothing and marks nothing. The report then says what would go in the end, if the rules and all that is kept stayed as they are.
	DryRun bool
	// Release, if it is not nil, is told of every value that goes: of every entry in a file that is about to be removed, unless
	// an entry that stays, committed or not, has the same value. That is when what the value points to may be removed too.
	// Nothing is removed if it returns an error. A value may be released again: by a run that follows one that was cut off.
	//
	// Whoever stages a value that he has read in a commit of this repository must do so within FileGrace of reading it: later
	// than that it may have been released. An uncommitted value may be at any time, as soon as another change displaces it: to
	// have it under another key of the branch, read it in the Transaction that stages it there.
	Release func(Entry) error
	// BeforeRemoval, if it is not nil, is called when Release has been told of everything, before the first file is removed: the
	// time to make it durable. An error keeps all files.
	BeforeRemoval func() error
	// Identify returns what a released value is known by, if that is not all of it: where an object is, for one. Entries with the
	// same identification stand for the same thing. It is not nil only together with Release, and must not keep the value.
	Identify func(*Value) []byte
}

// RetainReport counts what Retain did, or, in a dry run, what would be done in the end.
type RetainReport struct {
	Commits  int // of the repository
	Expired  int // of these, those whose trees have been taken, before this run or by it
	Expiring int // that this run took the trees of
	Pending  int // that nothing keeps, and whose trees go unless that changes within FileGrace
	Renewed  int // that were pending, and are kept again

	MovesRemoved int // from branch logs
	LogsRemoved  int // of deleted branches

	FilesKept    int
	FilesWaiting int // that nothing has any more, but are not old enough
	FilesRemoved int
	BytesRemoved int64 // of these files
	// FilesUnreadable are files that nothing has any more and that are damaged, so that it cannot be said which values they held.
	// They are left where they are.
	FilesUnreadable int
	Released        int // values that Release was told of
}

// Retain applies the retention rules of a repository, and collects the files that builds left behind which were cut off or
// overtaken. Without rules it does only the latter.
//
// What stays, as it was: every tree that a head, a tag, a pin or a move in a branch log names; what is uncommitted; of each
// branch the commits that are not older than its rule says, with their parents; and the commits from which heads and tags have
// parted, so that they can still be merged. Carried commits (see Commit.Carried) that no head, tag or log leads to are like a
// branch that was deleted when the last of them was made, and that only the rule for all names matches: without one they stay,
// with all that they reach.
//
// Of everything else the trees go: a run marks the commits, one that comes FileGrace later makes them ErrExpired, and one that
// comes FileGrace after that removes the files, as far as no other tree has them. The records of commits stay, so that histories
// stay whole. Moves of branch logs that are older go too, from the old end, but none that a pin keeps; with the last move of a
// deleted branch, that it can be restored.
//
// Any number of processes may call it, at any time and beside everything else. Where it fails it may have done a part, which the
// next run completes; where a record or file is missing that something refers to, it returns ErrCorrupt and removes no file. It
// returns ErrClockSkew where this machine's clock disagrees with others'.
//
// It reads all records of the repository and the metaranges of all trees, and lists all files; with Release it also reads all
// files, once for every million of values that may go. It keeps about 300 bytes in memory for each commit and 150 for each file.
func (g *Graveler) Retain(ctx context.Context, repo RepositoryID, p RetainParams) (report RetainReport, err error) {
	defer g.observe("retain", time.Now(), &err)
	r, err := g.repository(ctx, repo)
	if err == nil && !p.DryRun {
		err = checkWritable(r)
	}
	if err != nil {
		return RetainReport{}, err
	}
	for range retainAttempts {
		run := retaining{g: g, repo: r, params: p, report: report.lasting()}
		err = g.unlessGone(ctx, r, run.run(ctx))
		report = run.report
		if !errors.Is(err, ErrCorrupt) || !run.overtaken(ctx) {
			break
		}
	}
	if err != nil {
		return report, fmt.Errorf("apply retention to %s: %w", repo, err)
	}
	return report, nil
}

// retainAttempts bounds how often a run is begun anew which missed what another has removed meanwhile.
const retainAttempts = 3

// lasting is what a run that ended early has done for good.
func (r RetainReport) lasting() RetainReport {
	return RetainReport{Expiring: r.Expiring, Renewed: r.Renewed, MovesRemoved: r.MovesRemoved, LogsRemoved: r.LogsRemoved}
}

// retaining is one run of Retain.
type retaining struct {
	g      *Graveler
	repo   *Repository
	params RetainParams
	rules  retentionRules
	now    time.Time
	// files is when the run began, by the clock of the storage. A build that this run does not see the result of has found its
	// files in place, or put them, so shortly before that they are not old by then.
	files time.Time

	bases   []*Branch // those that have one
	pins    []Pin
	windows []window
	history *history
	expired map[CommitID]Expiration

	report RetainReport
}

// overtaken reports whether another run may by rights have removed what this one has missed: a base that was replaced meanwhile
// goes as soon as its files are old, and everything may where this process was stopped for long.
func (r *retaining) overtaken(ctx context.Context) bool {
	if r.g.elapsed(r.now) > FileGrace/2 {
		return true
	}
	for _, b := range r.bases {
		if r.g.unlessMoved(ctx, r.repo, b, nil) != nil {
			return true
		}
	}
	return false
}

func (r *retaining) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.begin,
		r.shortenLogs,
		// Marks are read before what keeps commits: who names a commit later than that removes its mark.
		r.readExpirations,
		// Records name trees that were there before them: what keeps commits is read before the commits are.
		r.readRoots,
		r.readHistory,
		r.keepCarried,
		r.keep,
		r.expire,
		r.sweep,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin reads rules and clocks. Where the storage has a clock of its own it is compared with this machine's, by which ages are reckoned.
func (r *retaining) begin(ctx context.Context) (err error) {
	if r.rules, err = r.g.retentionRules(ctx, r.repo); err != nil {
		return err
	}
	if _, err = r.g.moveTime(ctx, 0); err != nil {
		return err
	}
	if r.files, err = r.g.trees.FileTime(ctx, r.repo.Namespace); err != nil {
		return err
	}
	r.now = r.g.now()
	if r.now.Sub(r.files).Abs() > maxClockSkew {
		return fmt.Errorf("%w: this machine's clock says %s, that of the files' storage %s", ErrClockSkew, r.now.UTC().Format(time.RFC3339), r.files.UTC().Format(time.RFC3339))
	}
	return nil
}

// expire takes each commit that nothing keeps one step further, and takes back what is pending of those that are kept.
func (r *retaining) expire(ctx context.Context) error {
	due := r.now.Add(-FileGrace).UnixNano()
	for i := range r.history.commits {
		c := &r.history.commits[i]
		e, known := r.expired[c.id]
		var err error
		switch {
		case known && !e.Pending:
			r.report.Expired++
		case c.kept && known:
			err = r.renew(ctx, e)
		case c.kept:
		case r.params.DryRun:
			r.report.Pending++
		case known && e.At <= due:
			err = r.take(ctx, e)
		default:
			err = r.suspend(ctx, c.id, e)
		}
		if err != nil && !errors.Is(err, ErrChanged) { // another was there first
			return err
		}
	}
	r.report.Commits = len(r.history.commits)
	return nil
}

func (r *retaining) renew(ctx context.Context, e Expiration) error {
	r.report.Renewed++
	if r.params.DryRun {
		return nil
	}
	return r.g.refs.RemoveExpiration(ctx, r.repo, e)
}

func (r *retaining) take(ctx context.Context, e Expiration) error {
	e.At, e.Pending = r.g.now().UnixNano(), false // readers may have looked until now, however long ago the run began
	err := r.g.refs.PutExpiration(ctx, r.repo, e)
	if err == nil {
		r.report.Expiring++
		r.report.Expired++
		r.expired[e.Commit] = e
	}
	return err
}

// suspend makes a commit pending. A mark from the future is of a clock that was wrong, and is replaced.
func (r *retaining) suspend(ctx context.Context, id CommitID, e Expiration) error {
	r.report.Pending++
	if e.Pending && e.At <= r.now.Add(maxClockSkew).UnixNano() {
		return nil
	}
	return r.g.refs.PutExpiration(ctx, r.repo, Expiration{Commit: id, At: r.g.now().UnixNano(), Pending: true, Stamp: e.Stamp})
}
