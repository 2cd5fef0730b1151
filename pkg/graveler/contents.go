// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"errors"
	"iter"
)

// Contents is everything that a repository has, record by record, for those who write it down: see package dump. It only reads,
// while others go on writing.
//
// A commit is there before anything refers to it, a child of it included: who reads branches, their logs and tags first and
// commits afterwards has every commit that they name. A scan of the commits may, however, see one that is made meanwhile and miss
// its parent. Log starts come last of all, since commits go only after the log moves that named them.
type Contents struct {
	g    *Graveler
	repo *Repository
}

// Contents returns the contents of a repository. If it is deleted while they are read, they look like less than they were: StillThere tells.
func (g *Graveler) Contents(ctx context.Context, id RepositoryID) (*Contents, error) {
	r, err := g.repository(ctx, id)
	if err != nil {
		return nil, err
	}
	return &Contents{g: g, repo: r}, nil
}

// Repository returns the record of the repository.
func (c *Contents) Repository() Repository { return *c.repo }

// StillThere returns an error if the repository has been deleted since the contents were opened.
func (c *Contents) StillThere(ctx context.Context) error { return c.g.stillThere(ctx, c.repo) }

// Settings yields the settings, by name.
func (c *Contents) Settings(ctx context.Context) iter.Seq2[Setting, error] {
	return sequence(func(emit func(Setting) bool) error {
		for name, err := range c.g.refs.ScanSettings(ctx, c.repo) {
			if err != nil {
				return err
			}
			document, stamp, err := c.g.refs.GetSetting(ctx, c.repo, name)
			if errors.Is(err, ErrSettingNotFound) {
				continue // it was removed just now
			}
			if err != nil || !emit(Setting{Name: name, Document: document, Checksum: checksum(stamp)}) {
				return err
			}
		}
		return nil
	})
}

// Pins yields the pins, by owner.
func (c *Contents) Pins(ctx context.Context) iter.Seq2[Pin, error] {
	return c.g.refs.ScanPins(ctx, c.repo)
}

// Tags yields the tags, by name.
func (c *Contents) Tags(ctx context.Context) iter.Seq2[*Tag, error] {
	return c.g.refs.ScanTags(ctx, c.repo, "")
}

// Commits yields the commits, by ID.
func (c *Contents) Commits(ctx context.Context) iter.Seq2[*Commit, error] {
	return c.g.refs.ScanCommits(ctx, c.repo, "")
}

// Commit returns a commit, or ErrCommitNotFound.
func (c *Contents) Commit(ctx context.Context, id CommitID) (*Commit, error) {
	return c.g.refs.GetCommit(ctx, c.repo, id)
}

// Expired reports whether retention has taken the tree of a commit, or the commit itself.
func (c *Contents) Expired(ctx context.Context, id CommitID) (bool, error) {
	return c.g.hasExpired(ctx, c.repo, id)
}

// Expirations yields the expirations, by commit, without those that are pending.
func (c *Contents) Expirations(ctx context.Context) iter.Seq2[Expiration, error] {
	return sequence(func(emit func(Expiration) bool) error {
		for e, err := range c.g.refs.ScanExpirations(ctx, c.repo) {
			if err != nil || !e.Pending && !emit(e) {
				return err
			}
		}
		return nil
	})
}

// Logs yields the branch logs, of live branches, of deleted ones, and of some that were never made. They are in the order of name, colon, UID.
func (c *Contents) Logs(ctx context.Context) iter.Seq2[LogName, error] {
	return c.g.refs.ScanLogNames(ctx, c.repo, "")
}

// LiveLogs yields, by name, the logs of the branches that live. Logs has them too, if it is read afterwards and they still live.
func (c *Contents) LiveLogs(ctx context.Context) iter.Seq2[LogName, error] {
	return sequence(func(emit func(LogName) bool) error {
		for b, err := range c.g.refs.ScanBranches(ctx, c.repo, "") {
			if err != nil || b.State == BranchLive && !emit(LogName{b.ID, b.UID}) {
				return err
			}
		}
		return nil
	})
}

// LogStart returns the time before which moves of a log may have been removed, 0 if none was.
func (c *Contents) LogStart(ctx context.Context, log LogName) (int64, error) {
	return c.g.refs.LogStart(ctx, c.repo, log.UID)
}

// ReadBranch calls read with the record of the live branch that a log is of and with what that record shows uncommitted, by key:
// the changes that make the head's tree what a reader of the branch sees, with a nil value where an entry is gone. It is the
// state of the branch at one instant, but for entries that are staged while it is read, each of which is there or not; read is
// called again, to start anew, where that turns out not to be so. It returns ErrBranchNotFound where that branch does not live.
func (c *Contents) ReadBranch(ctx context.Context, log LogName, read func(b Branch, changes iter.Seq2[Entry, error]) error) error {
	for {
		b, err := c.g.liveBranch(ctx, c.repo, log.Branch)
		if err == nil && b.UID != log.UID {
			err = ErrBranchNotFound
		}
		if err != nil {
			return err
		}
		v, err := c.g.viewOf(ctx, c.repo, b)
		if err == nil {
			err = read(*b.Clone(), v.allUncommitted(ctx))
		}
		now, readErr := c.g.liveBranch(ctx, c.repo, log.Branch)
		switch {
		case readErr != nil:
			return readErr
		case bytes.Equal(b.Stamp, now.Stamp):
			return c.g.unlessGone(ctx, c.repo, err)
		case err == nil && len(unlisted(b, now)) == 0:
			return nil
		}
	}
}

func (v *view) allUncommitted(ctx context.Context) iter.Seq2[Entry, error] {
	return sequence(func(emit func(Entry) bool) error {
		return v.uncommitted(ctx, nil, nil, func(d Diff) bool { return emit(Entry{Key: d.Key, Value: d.Right}) })
	})
}

// EarlierMoves yields the moves of a live branch before the one that its record, as it was read, carries, oldest first.
func (c *Contents) EarlierMoves(ctx context.Context, b Branch) iter.Seq2[Move, error] {
	return c.g.refs.ScanMoves(ctx, c.repo, b.UID, 0, b.LastMove.Time-1)
}

// DeletedMoves yields the moves of a branch that lives no more, oldest first; nothing if it does, or if nothing is left of it.
func (c *Contents) DeletedMoves(ctx context.Context, log LogName) iter.Seq2[Move, error] {
	return c.g.deletedMoves(ctx, c.repo, log, 0)
}
