// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// valueID stands for a value, or for what it points to: the first half of a SHA-256.
type valueID [16]byte

// releasedAtOnce bounds the values that are looked for in one reading of all files that stay: they are kept in memory, with about 50 bytes each.
const releasedAtOnce = 1 << 20

func (r *retaining) valueID(v *Value) valueID {
	h := sha256.New()
	if identify := r.params.Identify; identify != nil {
		_, _ = h.Write(identify(v)) // never fails
	} else {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(v.Identity))))
		_, _ = h.Write(v.Identity)
		_, _ = h.Write(v.Data)
	}
	return valueID(h.Sum(nil)[:16])
}

// rememberStaged reads what is uncommitted on all branches. It is only ever a small part of the whole.
//
// A value may go to another key meanwhile, as every version does that a newer one displaces, and a reading by key would miss it
// where that key is behind. So all is sealed first, and what was sealed then is read as it was then, as one. What has been staged
// since may be displaced again before it is read, so each token of that is read by itself.
func (s *sweeping) rememberStaged(ctx context.Context) error {
	s.staged = map[valueID]bool{}
	sealed := map[string]uint64{} // by UID of the branch, the number of its newest item
	if !s.params.DryRun {
		err := s.onBranches(ctx, func(b *Branch) error {
			b, err := s.g.seal(ctx, s.repo, b.ID, false)
			if err == nil {
				sealed[b.UID] = b.ItemCounter
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.onBranches(ctx, func(b *Branch) error { return s.rememberBranch(ctx, b.ID, sealed) })
}

func (s *sweeping) onBranches(ctx context.Context, do func(b *Branch) error) error {
	for b, err := range s.g.refs.ScanBranches(ctx, s.repo, "") {
		if err != nil {
			return err
		}
		if err := do(b); err != nil && !errors.Is(err, ErrBranchNotFound) { // it is being deleted
			return fmt.Errorf("uncommitted changes of branch %s: %w", b.ID, err)
		}
	}
	return nil
}

// rememberBranch reads the tokens of a branch and its base, again if a token has left the list meanwhile: it may have been
// dropped before it was read.
func (s *sweeping) rememberBranch(ctx context.Context, id BranchID, sealed map[string]uint64) error {
	for {
		b, err := s.g.liveBranch(ctx, s.repo, id)
		if err != nil {
			return err
		}
		err = s.rememberLayers(ctx, b, sealed[b.UID])
		now, readErr := s.g.liveBranch(ctx, s.repo, id)
		switch {
		case readErr != nil:
			return readErr
		case len(unlisted(b, now)) == 0 && b.Base == now.Base:
			return err
		}
	}
}

// rememberLayers reads what a branch shows of its items up to a number, and each newer token. A dry run, which has sealed
// nothing, reads what the branch shows.
func (s *sweeping) rememberLayers(ctx context.Context, b *Branch, number uint64) error {
	frozen := b
	if !s.params.DryRun {
		frozen = upTo(b, number)
		frozen.Token = ""
	}
	v, err := s.g.viewOf(ctx, s.repo, frozen)
	if err != nil {
		return err
	}
	if err := s.remember(rightSides{s.g.trees.Diff(ctx, s.repo.Namespace, v.head.Tree, v.tree)}); err != nil {
		return err
	}
	changes, err := v.changes(ctx, nil, nil)
	if err == nil {
		err = s.remember(changes)
	}
	if err != nil {
		return err
	}
	for _, token := range unlisted(b, frozen) {
		staged, err := s.g.staging.Scan(ctx, token, nil, nil)
		if err == nil {
			err = s.remember(staged)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *sweeping) remember(entries Iterator[Entry]) error {
	for entries.Next() {
		if e := entries.Item(); e.Value != nil {
			s.staged[s.valueID(e.Value)] = true
		}
	}
	return entries.Close()
}

// release tells of the values in the files that go which no file has that stays. Files that cannot be read stay.
func (s *sweeping) release(ctx context.Context) error {
	found := map[valueID]bool{} // in files that go; false once it was found elsewhere, or told of
	var from []string           // the files of found
	var readable []string
	s.lost = map[string]bool{}
	for _, id := range s.going {
		err := s.read(ctx, id, func(e Entry) error {
			if v := s.valueID(e.Value); !s.staged[v] {
				found[v] = true
			}
			return nil
		})
		if unreadable(err) {
			s.report.FilesUnreadable++
			continue
		}
		if err != nil {
			return err
		}
		readable, from = append(readable, id), append(from, id)
		if len(found) >= releasedAtOnce {
			if err := s.releaseFrom(ctx, from, found); err != nil {
				return err
			}
			clear(found)
			from = from[:0]
		}
	}
	if err := s.releaseFrom(ctx, from, found); err != nil {
		return err
	}
	s.going = slices.DeleteFunc(readable, func(id string) bool { return s.lost[id] })
	if s.params.DryRun {
		// What is unreadable was counted as removed.
		s.report.FilesRemoved, s.report.BytesRemoved = 0, 0
		s.count(s.going)
	}
	return nil
}

func (s *sweeping) releaseFrom(ctx context.Context, going []string, found map[valueID]bool) error {
	if len(found) == 0 {
		return nil
	}
	for id, f := range s.kept {
		if err := s.cross(ctx, id, found); err != nil && (f.needed || !unreadable(err)) {
			return err
		}
	}
	for _, id := range s.others {
		// It may be removed by another run that began later.
		if err := s.cross(ctx, id, found); err != nil && !unreadable(err) {
			return err
		}
	}
	for _, id := range going {
		var told error
		err := s.read(ctx, id, func(e Entry) error {
			v := s.valueID(e.Value)
			if !found[v] {
				return nil
			}
			found[v] = false
			s.report.Released++
			told = s.params.Release(e.Clone())
			return told
		})
		if told == nil && unreadable(err) { // since it was read before: another run has told of it and removed it
			s.report.FilesUnreadable++
			s.lost[id] = true
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cross takes out what one file has.
func (s *sweeping) cross(ctx context.Context, id string, found map[valueID]bool) error {
	return s.read(ctx, id, func(e Entry) error {
		if v := s.valueID(e.Value); found[v] {
			found[v] = false
		}
		return nil
	})
}

func (s *sweeping) read(ctx context.Context, id string, do func(Entry) error) error {
	for e, err := range s.g.trees.ScanFile(ctx, s.repo.Namespace, id) {
		if err == nil {
			err = do(e)
		}
		if err != nil {
			return fmt.Errorf("file %s: %w", id, err)
		}
	}
	return nil
}
