// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"
)

// loadWindow is how many commits a load checks references to at a time. One takes some 70 bytes.
const loadWindow = 1 << 20

// commitWindow are the commits of a load that are neighbours by ID, as many as are kept in memory. Children and moves refer to
// commits in no order, and a read of the store for each of them would take longer than the rest of the load; so all references
// are gone through once for each window. Most repositories have one.
type commitWindow struct {
	*loadCheck
	from, end CommitID // the window has what is at or after from, and before end; "": there is no bound
	commits   []loadedCommit
	ahead     []aheadReference
}

type loadedCommit struct {
	id                  commitHash
	generation, logTime int64
}

// aheadReference is that of a commit of a window to a parent whose ID is greater, so that it had yet to be read.
type aheadReference struct {
	parent commitHash
	child  int32 // its place in the window
}

// commitHash is the ID of a commit in the memory that it needs.
type commitHash [commitDigits / 2]byte

// hashOf returns false for what is no ID of a commit.
func hashOf(id CommitID) (h commitHash, ok bool) {
	if !isCommitID(string(id)) {
		return h, false
	}
	_, err := hex.Decode(h[:], []byte(id))
	return h, err == nil
}

func (h commitHash) id() CommitID { return CommitID(hex.EncodeToString(h[:])) }

// commits checks the commits with their trees, and whatever refers to them.
func (c *loadCheck) commits(ctx context.Context) error {
	expired, stop := c.expired(ctx)
	defer stop()
	w := &commitWindow{loadCheck: c}
	for {
		if err := w.fill(ctx, expired); err != nil {
			return err
		}
		references, ctx := errgroup.WithContext(ctx)
		for _, check := range []func(context.Context) error{w.parents, w.branchLogs, w.deletedLogs} {
			references.Go(func() error { return check(ctx) })
		}
		if err := references.Wait(); err != nil {
			return err
		}
		if w.end == "" {
			return nil
		}
		w = &commitWindow{loadCheck: c, from: w.end, commits: w.commits[:0], ahead: w.ahead[:0]}
	}
}

// expired returns a function that reports whether retention has taken the tree of a commit. It is to be asked for commits in the order of their IDs.
func (c *loadCheck) expired(ctx context.Context) (has func(CommitID) (bool, error), stop func()) {
	next, stop := iter.Pull2(c.g.refs.ScanExpirations(ctx, c.repo))
	e, err, more := next()
	return func(id CommitID) (bool, error) {
		for more && err == nil && e.Commit < id {
			e, err, more = next()
		}
		return more && e.Commit == id && !e.Pending, err
	}, stop
}

// fill reads the commits of the window, and has their trees checked, and those parents that it has come to.
func (w *commitWindow) fill(ctx context.Context, expired func(CommitID) (bool, error)) error {
	for commit, err := range w.g.refs.ScanCommits(ctx, w.repo, w.from) {
		if err != nil {
			return err
		}
		if len(w.commits) == w.window {
			w.end = commit.ID
			return nil
		}
		id, ok := hashOf(commit.ID)
		if !ok {
			return fmt.Errorf("commit %q: %w: an ID has 64 hexadecimal digits", commit.ID, ErrCorrupt)
		}
		w.commits = append(w.commits, loadedCommit{id, commit.Generation, commit.LogTime})
		for _, parent := range commit.Parents {
			if hash, ok := hashOf(parent); ok && parent > commit.ID {
				w.ahead = append(w.ahead, aheadReference{hash, int32(len(w.commits) - 1)})
			} else if err := w.follows(ctx, commit.ID, commit.Generation, commit.LogTime, parent); err != nil {
				return err
			}
		}
		gone, err := expired(commit.ID)
		if err != nil {
			return err
		}
		if !gone {
			w.tree(ctx, commit.Tree)
		}
		if err := w.alive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// present returns a commit that something refers to; nil where retention has removed it, and where it belongs to another window.
func (w *commitWindow) present(ctx context.Context, id CommitID) (*loadedCommit, error) {
	if id < w.from || w.end != "" && id >= w.end {
		return nil, nil
	}
	if hash, ok := hashOf(id); ok {
		at, found := slices.BinarySearchFunc(w.commits, hash, func(c loadedCommit, hash commitHash) int { return bytes.Compare(c.id[:], hash[:]) })
		if found {
			return &w.commits[at], nil
		}
	}
	if expired, err := w.g.hasExpired(ctx, w.repo, id); expired || err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: commit %s is missing", ErrInvalidValue, id)
}

// follows makes sure that a commit comes after a parent, if this window has that.
func (w *commitWindow) follows(ctx context.Context, id CommitID, generation, logTime int64, parent CommitID) error {
	p, err := w.present(ctx, parent)
	if err == nil && p != nil && (p.generation >= generation || p.logTime >= logTime) {
		err = fmt.Errorf("%w: its generation or log time is not greater than that of its parent %s", ErrInvalidValue, parent)
	}
	if err != nil {
		return fmt.Errorf("commit %s: %w", id, err)
	}
	return nil
}

// parents makes sure of what fill could not: that commits follow parents which it came to later, and what commits of other windows follow.
func (w *commitWindow) parents(ctx context.Context) error {
	for _, r := range w.ahead {
		c := w.commits[r.child]
		if err := w.follows(ctx, c.id.id(), c.generation, c.logTime, r.parent.id()); err != nil {
			return err
		}
	}
	if w.from == "" && w.end == "" {
		return nil
	}
	for c, err := range w.g.refs.ScanCommits(ctx, w.repo, "") {
		if err != nil {
			return err
		}
		for _, parent := range c.Parents {
			if err := w.follows(ctx, c.ID, c.Generation, c.LogTime, parent); err != nil {
				return err
			}
		}
		if err := w.alive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// branchLogs looks at the logs of live branches, deletedLogs at those of others.
func (w *commitWindow) branchLogs(ctx context.Context) error {
	for b, err := range w.g.refs.ScanBranches(ctx, w.repo, "") {
		if err != nil {
			return err
		}
		log := loadedLog{commitWindow: w, LogName: LogName{b.ID, b.UID}}
		if log.start, err = w.g.refs.LogStart(ctx, w.repo, b.UID); err != nil {
			return err
		}
		for m, err := range w.g.moves(ctx, w.repo, b, 0) {
			if err == nil {
				err = log.check(ctx, m)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *commitWindow) deletedLogs(ctx context.Context) error {
	for name, err := range w.g.refs.ScanLogNames(ctx, w.repo, "") {
		if err != nil {
			return err
		}
		log := loadedLog{commitWindow: w, LogName: name}
		if log.start, err = w.g.refs.LogStart(ctx, w.repo, name.UID); err != nil {
			return err
		}
		for m, err := range w.g.deletedMoves(ctx, w.repo, name, 0) {
			if err == nil {
				err = log.check(ctx, m)
			}
			if err != nil {
				return err
			}
		}
		if log.started && log.last.Op != OpDelete {
			return fmt.Errorf("log %s of branch %s: %w: it neither ends with the deletion nor is there such a branch", name.UID, name.Branch, ErrInvalidValue)
		}
	}
	return nil
}

// loadedLog is a branch log that is being checked.
type loadedLog struct {
	*commitWindow
	LogName
	start   int64
	started bool
	last    Move
}

// check looks at the next move. That none is missing in between has been seen.
func (l *loadedLog) check(ctx context.Context, m Move) error {
	broken := func(why string) error {
		return fmt.Errorf("log %s of branch %s: %w: the move at %d %s", l.UID, l.Branch, ErrInvalidValue, m.Time, why)
	}
	switch {
	case !l.started && m.Previous != 0 && l.start == 0:
		return broken(fmt.Sprintf("follows one at %d, which is missing", m.Previous))
	case l.started && m.Old != l.last.New:
		return broken("does not begin where the one before it ended")
	}
	ends := []CommitID{m.Old, m.New}
	if l.started && l.last.Time >= l.start {
		ends = ends[1:] // the other has been seen
	}
	l.last, l.started = m, true
	if m.Time < l.start {
		return l.alive(ctx)
	}
	for _, id := range ends {
		if id == "" {
			continue
		}
		if _, err := l.present(ctx, id); err != nil {
			return fmt.Errorf("log %s of branch %s: the move at %d: %w", l.UID, l.Branch, m.Time, err)
		}
	}
	return l.alive(ctx)
}
