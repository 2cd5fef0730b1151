// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// PinParams says what an owner keeps from being removed by retention.
type PinParams struct {
	// Commits are those whose trees are kept.
	Commits []CommitID
	// Logs are branch logs, by the UID of the branch (not its name), of which the moves from a time on are kept, in nanoseconds
	// since the epoch; 0 keeps all. That there is such a branch is not looked at.
	Logs map[string]int64
}

// MaxPinOwnerBytes bounds the name of a pin's owner.
const MaxPinOwnerBytes = 200

// maxBranchUIDBytes leaves room for foreign UIDs; those that are made here have 20.
const maxBranchUIDBytes = 200

// PutPin replaces what an owner, whoever he calls himself, keeps from being removed. Until it has returned nil he must not rely
// on it. It returns ErrExpired where the tree of a commit has gone, and an error that matches ErrLogTruncated where moves from
// that time on may have gone; what was pinned before is then still pinned in the first case, unless this process was stopped for
// as long as FileGrace meanwhile, and all but the moves that have gone is in the second.
func (g *Graveler) PutPin(ctx context.Context, repo RepositoryID, owner string, p PinParams) error {
	r, err := g.writable(ctx, repo)
	if err == nil {
		err = g.putPin(ctx, r, owner, p)
	}
	if err != nil {
		return fmt.Errorf("pin of %q in %s: %w", owner, repo, err)
	}
	return nil
}

func (g *Graveler) putPin(ctx context.Context, r *Repository, owner string, p PinParams) error {
	pin := Pin{Owner: owner, Logs: p.Logs}
	if err := pin.validate(); err != nil {
		return err
	}
	for _, id := range p.Commits {
		c, err := g.commit(ctx, r, id)
		if err == nil {
			err = g.referable(ctx, r, id)
		}
		if err != nil {
			return err
		}
		pin.Trees = append(pin.Trees, c.Tree)
	}
	if err := g.refs.PutPin(ctx, r, pin); err != nil {
		return err
	}
	for uid, from := range p.Logs {
		if err := g.pinLog(ctx, r, uid, from); err != nil {
			return err
		}
	}
	for _, id := range p.Commits { // this process may have been stopped for long
		if err := g.referable(ctx, r, id); err != nil {
			return err
		}
	}
	return g.stillThere(ctx, r)
}

func (p Pin) validate() error {
	if p.Owner == "" || len(p.Owner) > MaxPinOwnerBytes || !utf8.ValidString(p.Owner) {
		return fmt.Errorf("%w: an owner has 1 to %d bytes of UTF-8", ErrInvalidName, MaxPinOwnerBytes)
	}
	for uid, from := range p.Logs {
		if err := validateBranchUID(uid); err != nil {
			return err
		}
		if from < 0 {
			return fmt.Errorf("log of branch %s: %w: there are no moves from %d on", uid, ErrInvalidValue, from)
		}
	}
	return nil
}

// validateBranchUID says whether a UID can be one of a branch.
func validateBranchUID(uid string) error {
	if uid == "" || len(uid) > maxBranchUIDBytes || !utf8.ValidString(uid) || strings.ContainsAny(uid, "/:") {
		return fmt.Errorf("%w: the UID of a branch has 1 to %d bytes of UTF-8, no slash and no colon", ErrInvalidValue, maxBranchUIDBytes)
	}
	return nil
}

// pinLog makes sure that a pin which was written has come before those who remove moves. One who has announced that he will, and
// has perhaps not seen the pin, is stopped.
func (g *Graveler) pinLog(ctx context.Context, r *Repository, uid string, from int64) error {
	for {
		b, err := g.refs.LogBounds(ctx, r, uid)
		switch {
		case err != nil:
			return err
		case b.Start > from:
			return fmt.Errorf("log of branch %s from %s on: %w: it begins after %s", uid, timeText(from), ErrLogTruncated, timeText(b.Start-1))
		case b.Intent <= from:
			return nil
		}
		b.Intent = b.Start
		if err := g.refs.PutLogBounds(ctx, r, uid, b); err == nil || !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

func timeText(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// RemovePin lets go of what an owner has pinned. It may be repeated.
func (g *Graveler) RemovePin(ctx context.Context, repo RepositoryID, owner string) error {
	r, err := g.writable(ctx, repo)
	if err != nil {
		return err
	}
	return g.refs.RemovePin(ctx, r, owner)
}

// ListPins yields the pins of a repository, by owner.
func (g *Graveler) ListPins(ctx context.Context, repo RepositoryID) iter.Seq2[Pin, error] {
	return sequence(func(emit func(Pin) bool) error {
		r, err := g.repository(ctx, repo)
		if err != nil {
			return err
		}
		for p, err := range g.refs.ScanPins(ctx, r) {
			if err != nil || !emit(p) {
				return err
			}
		}
		return nil
	})
}
