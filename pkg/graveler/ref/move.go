// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
)

// PutMove implements [graveler.Moves].
func (s *Store) PutMove(ctx context.Context, repo *graveler.Repository, branchUID string, m graveler.Move) error {
	return wrap(s.putMove(ctx, repo, branchUID, m), "put move %d of branch %s of %s", m.Time, branchUID, repo.ID)
}

func (s *Store) putMove(ctx context.Context, repo *graveler.Repository, branchUID string, move graveler.Move) error {
	at, m, err := moveRecord(repo, branchUID, move)
	if err != nil {
		return err
	}
	return s.set(ctx, at, m)
}

// moveRecord is the stored form of a move in a log, and where it is.
func moveRecord(repo *graveler.Repository, branchUID string, move graveler.Move) (location, *refpb.MoveData, error) {
	m := &refpb.MoveData{}
	setMove(m, move)
	if err := checkUID(branchUID); err != nil {
		return location{}, nil, err
	}
	if err := checkMove(m); err != nil {
		return location{}, nil, invalid("%v", err)
	}
	return locate(repo.Partition(), logOf(branchUID)+hexDigits(uint64(move.Time))), m, nil
}

// ScanMoves implements [graveler.Moves].
func (s *Store) ScanMoves(ctx context.Context, repo *graveler.Repository, branchUID string, from, through int64) iter.Seq2[graveler.Move, error] {
	what := "moves of branch " + branchUID + " of " + string(repo.ID)
	start := hexDigits(uint64(max(from, 0)))
	moves := scan(ctx, s, what, repo.Partition(), logOf(branchUID), start, decodeMove)
	return func(yield func(graveler.Move, error) bool) {
		if through < from {
			return
		}
		for m, err := range moves {
			if err == nil && m.Time > through {
				return
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// PutLogName implements [graveler.Moves].
func (s *Store) PutLogName(ctx context.Context, repo *graveler.Repository, branch graveler.BranchID, branchUID string) error {
	return wrap(s.putLogName(ctx, repo, branch, branchUID), "put log name %s/%s of branch %s", repo.ID, branch, branchUID)
}

func (s *Store) putLogName(ctx context.Context, repo *graveler.Repository, branch graveler.BranchID, branchUID string) error {
	if err := checkUID(branchUID); err != nil {
		return err
	}
	if branch == "" || strings.Contains(string(branch), ":") {
		return fmt.Errorf("%w: branch %q is empty or has a colon", graveler.ErrInvalidName, branch)
	}
	m := &refpb.LogNameData{Branch: string(branch), BranchUid: branchUID}
	return s.set(ctx, locate(repo.Partition(), logNamesOf(branch)+branchUID), m)
}

// ScanLogNames implements [graveler.Moves]. UIDs sort by the second in which they were made; two
// branches of one second are in no particular order.
func (s *Store) ScanLogNames(ctx context.Context, repo *graveler.Repository, branch graveler.BranchID) iter.Seq2[graveler.LogName, error] {
	prefix := logNamesPrefix
	if branch != "" {
		prefix = logNamesOf(branch)
	}
	return scan(ctx, s, "log names of "+string(repo.ID)+"/"+string(branch), repo.Partition(), prefix, "", decodeLogName)
}

// RemoveLogName implements [graveler.Moves].
func (s *Store) RemoveLogName(ctx context.Context, repo *graveler.Repository, name graveler.LogName) error {
	err := s.delete(ctx, locate(repo.Partition(), logNamesOf(name.Branch)+name.UID))
	if err == nil {
		err = s.delete(ctx, locateLogStart(repo, name.UID))
	}
	return wrap(err, "remove log name %s/%s of branch %s", repo.ID, name.Branch, name.UID)
}

// RemoveMove implements [graveler.Moves].
func (s *Store) RemoveMove(ctx context.Context, repo *graveler.Repository, branchUID string, at int64) error {
	err := s.delete(ctx, locate(repo.Partition(), logOf(branchUID)+hexDigits(uint64(at))))
	return wrap(err, "remove move %d of branch %s of %s", at, branchUID, repo.ID)
}

// LogStart implements [graveler.Moves].
func (s *Store) LogStart(ctx context.Context, repo *graveler.Repository, branchUID string) (int64, error) {
	b, err := s.LogBounds(ctx, repo, branchUID)
	return b.Start, err
}

// LogBounds implements [graveler.Moves].
func (s *Store) LogBounds(ctx context.Context, repo *graveler.Repository, branchUID string) (graveler.LogBounds, error) {
	b, err := get(ctx, s, locateLogStart(repo, branchUID), graveler.ErrNotFound, decodeLogBounds)
	if errors.Is(err, graveler.ErrNotFound) {
		return graveler.LogBounds{}, nil
	}
	return b, wrap(err, "get log start of branch %s of %s", branchUID, repo.ID)
}

// PutLogBounds implements [graveler.Moves].
func (s *Store) PutLogBounds(ctx context.Context, repo *graveler.Repository, branchUID string, b graveler.LogBounds) error {
	err := checkUID(branchUID)
	if err == nil && b.Intent < b.Start {
		err = invalid("intent %d before start %d", b.Intent, b.Start)
	}
	if err == nil {
		m := &refpb.LogStartData{BranchUid: branchUID, Time: b.Start}
		if b.Intent > b.Start {
			m.Intent = b.Intent
		}
		_, err = s.put(ctx, locateLogStart(repo, branchUID), m, b.Stamp)
	}
	return wrap(err, "put log start of branch %s of %s", branchUID, repo.ID)
}

// PutLogStart implements [graveler.Moves].
func (s *Store) PutLogStart(ctx context.Context, repo *graveler.Repository, branchUID string, at int64) error {
	err := checkUID(branchUID)
	if err == nil {
		err = s.set(ctx, locateLogStart(repo, branchUID), &refpb.LogStartData{BranchUid: branchUID, Time: at})
	}
	return wrap(err, "put log start of branch %s of %s", branchUID, repo.ID)
}

func locateLogStart(repo *graveler.Repository, branchUID string) location {
	return locate(repo.Partition(), logStartPrefix+branchUID)
}

func decodeLogBounds(at location, value []byte) (graveler.LogBounds, error) {
	m := &refpb.LogStartData{}
	err := at.decode(value, m, func() string { return logStartPrefix + m.BranchUid })
	return graveler.LogBounds{Start: m.Time, Intent: max(m.Intent, m.Time), Stamp: value}, err
}

// decodeMove takes everything but the time from the value: the rest of the key is what the scan asked for.
func decodeMove(at location, value []byte) (graveler.Move, error) {
	m := &refpb.MoveData{}
	log := string(at.key[:max(0, len(at.key)-16)])
	if err := at.decode(value, m, func() string { return log + hexDigits(uint64(m.Time)) }); err != nil {
		return graveler.Move{}, err
	}
	if err := checkMove(m); err != nil {
		return graveler.Move{}, at.corrupt(err)
	}
	return moveOf(m), nil
}

func decodeLogName(at location, value []byte) (graveler.LogName, error) {
	m := &refpb.LogNameData{}
	err := at.decode(value, m, func() string { return logNamesOf(graveler.BranchID(m.Branch)) + m.BranchUid })
	return graveler.LogName{Branch: graveler.BranchID(m.Branch), UID: m.BranchUid}, err
}

func setMove(m *refpb.MoveData, move graveler.Move) {
	m.Time = move.Time
	m.Previous = move.Previous
	m.Op = refpb.Op(move.Op)
	m.Old = string(move.Old)
	m.New = string(move.New)
	m.CommittedThrough = move.CommittedThrough
	m.Actor = move.Actor
}

func moveOf(m *refpb.MoveData) graveler.Move {
	return graveler.Move{
		Time:             m.Time,
		Previous:         m.Previous,
		Op:               graveler.Op(m.Op),
		Old:              graveler.CommitID(m.Old),
		New:              graveler.CommitID(m.New),
		CommittedThrough: m.CommittedThrough,
		Actor:            m.Actor,
	}
}

// checkMove says why a move cannot be one, whether it was read or is to be written. An operation that
// this program does not know is fine: a head moved, whatever the reason is called.
func checkMove(m *refpb.MoveData) error {
	if m.Op <= 0 {
		return fmt.Errorf("move has operation %d", m.Op)
	}
	if m.Previous < 0 || m.Time <= m.Previous {
		return fmt.Errorf("move at %d follows one at %d", m.Time, m.Previous)
	}
	return nil
}

// checkUID keeps a log's keys from running into another's.
func checkUID(uid string) error {
	if uid == "" || strings.ContainsAny(uid, "/:") {
		return invalid("branch UID %q", uid)
	}
	return nil
}
