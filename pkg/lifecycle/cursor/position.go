// SPDX-License-Identifier: Apache-2.0

package cursor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor/cursorpb"
)

const positionsPrefix = "positions/"

// maxReason is how much is kept of a block's reason, in bytes.
const maxReason = 512

// Position is how far the lanes of a source branch have come in a shard.
type Position struct {
	Shard                    int
	RepositoryUID, BranchUID string
	Lanes                    []Lane // by delay, each once
}

// Lane is the progress of the actions of one delay. What is due by a step, and what a step covers, is the pass's to say; here it is only kept.
type Lane struct {
	Delay int // in days; 0: the lane of what has no delay, which is fed by events alone
	// Horizon and Head are those of the last step that was finished; both are zero before the first. The time of Head is that of
	// its move; that of Horizon is never later.
	Horizon, Head Point
	Judged        int64    // likewise
	RulesHash     [32]byte // of the rules that this was done under
	Step          *Step    // the step under way; nil: none
	Blocked       *Block   // nil: it is not
	WaitingUntil  int64    // when the lane has something to do again, as far as is known
}

// Point is a head of the branch: the tree and the commit as of a time. Both IDs are "" where nothing was there; a tree may have no commit.
type Point struct {
	Time   int64
	Tree   graveler.MetaRangeID
	Commit graveler.CommitID
}

// Step is a step of a lane that is not finished: the next pass finishes this one, with the same trees, before it takes the next.
type Step struct {
	Horizon, Head Point
	Judged        int64 // the time of the latest horizon by which passes have judged what is due since the step was begun; 0: none was later than Horizon
	RulesHash     [32]byte
	KeyDone       graveler.Key // the last key of whose candidates every match is settled; nil: none yet
	Started       bool         // something of the step may have been dispatched
}

// Block says what a lane is stopped by, for those who look after the store.
type Block struct {
	Key    graveler.Key
	Since  int64
	Reason string // at most 512 bytes are kept
}

// Equal reports whether p and q are stored as the same record, so that saving one over the other changes nothing.
func (p Position) Equal(q Position) bool {
	a, aErr := p.message()
	b, bErr := q.message()
	return aErr == nil && bErr == nil && proto.Equal(a, b)
}

// Position returns the position of a source in a shard; false means that there is none, which is a cold start of all lanes.
func (s *Store) Position(ctx context.Context, shard int, repositoryUID, branchUID string) (Position, bool, error) {
	p := Position{Shard: shard, RepositoryUID: repositoryUID, BranchUID: branchUID}
	if err := p.checkKey(); err != nil {
		return Position{}, false, invalid("%v", err)
	}
	return get(ctx, s, p.key(), decodePosition)
}

// Positions yields the positions of a shard by the UIDs of repository and branch. One that is malformed is yielded as its error,
// and does not end the sequence; any other error does.
func (s *Store) Positions(ctx context.Context, shard int) iter.Seq2[Position, error] {
	if err := checkShard(shard); err != nil {
		return failed[Position](invalid("%v", err))
	}
	return scan(ctx, s, positionsIn(shard), decodePosition)
}

// SavePositions writes positions, and removes those that have no lanes. A record has room for a thousand lanes at rest; steps and
// blocks take more, by the lengths of their keys, and a record of more than the engine takes is kv.ErrTooLarge.
func (s *Store) SavePositions(ctx context.Context, positions ...Position) error {
	return save(ctx, s, "position", positions)
}

func positionsIn(shard int) string { return fmt.Sprintf("%s%02d/", positionsPrefix, shard) }

func (p Position) key() string { return positionsIn(p.Shard) + p.RepositoryUID + "/" + p.BranchUID }

func (p Position) checkKey() error {
	return cmp.Or(checkShard(p.Shard), checkSource(p.RepositoryUID, p.BranchUID))
}

// encode returns nil, which removes the record, where there is no lane.
func (p Position) encode() ([]byte, error) {
	m, err := p.message()
	if err != nil || len(p.Lanes) == 0 {
		return nil, err
	}
	return seal(m)
}

// message is the stored form. It fails for what decoding would refuse.
func (p Position) message() (*cursorpb.PositionData, error) {
	if err := cmp.Or(p.checkKey(), p.check()); err != nil {
		return nil, invalid("%v", err)
	}
	m := &cursorpb.PositionData{Version: version, Shard: uint32(p.Shard), RepositoryUid: p.RepositoryUID, BranchUid: p.BranchUID}
	for _, l := range p.Lanes {
		lane, err := l.message()
		if err != nil {
			return nil, invalid("lane of %d days: %v", l.Delay, err)
		}
		m.Lanes = append(m.Lanes, lane)
	}
	return m, nil
}

func decodePosition(key string, value []byte) (Position, error) {
	p, err := parsePosition(value)
	if err == nil && p.key() != key {
		err = fmt.Errorf("holds the record of key %q", p.key())
	}
	if err != nil {
		return Position{}, Malformed(key, err)
	}
	return p, nil
}

func parsePosition(value []byte) (Position, error) {
	m := &cursorpb.PositionData{}
	if err := unseal(value, m); err != nil {
		return Position{}, err
	}
	p := Position{Shard: int(m.Shard), RepositoryUID: m.RepositoryUid, BranchUID: m.BranchUid}
	if len(m.Lanes) == 0 {
		return Position{}, errors.New("has no lanes")
	}
	for _, lane := range m.Lanes {
		l, err := parseLane(lane)
		if err != nil {
			return Position{}, fmt.Errorf("lane of %d days: %w", lane.Delay, err)
		}
		p.Lanes = append(p.Lanes, l)
	}
	return p, cmp.Or(p.checkKey(), p.check())
}
