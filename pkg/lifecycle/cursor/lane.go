// SPDX-License-Identifier: Apache-2.0

package cursor

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor/cursorpb"
)

// check says what is wrong with the lanes, as far as their stored form does not show it by itself.
func (p Position) check() error {
	for i, l := range p.Lanes {
		if i > 0 && l.Delay <= p.Lanes[i-1].Delay {
			return fmt.Errorf("lane of %d days follows that of %d", l.Delay, p.Lanes[i-1].Delay)
		}
		if err := l.check(); err != nil {
			return fmt.Errorf("lane of %d days: %w", l.Delay, err)
		}
	}
	return nil
}

func (l Lane) check() error {
	if l.Delay < 0 || l.Delay > math.MaxInt32 {
		return errors.New("no delay is like that")
	}
	err := cmp.Or(checkTime("waiting until", l.WaitingUntil), checkTime("judged", l.Judged), checkStep(l.Horizon, l.Head))
	if b := l.Blocked; b != nil {
		err = cmp.Or(err, checkTime("blocked since", b.Since))
	}
	if s := l.Step; s != nil {
		err = cmp.Or(err, checkTime("judged", s.Judged), checkStep(s.Horizon, s.Head), s.checkAfter(l))
	}
	return err
}

func checkStep(horizon, head Point) error {
	if horizon.Time > head.Time {
		return fmt.Errorf("horizon %d is later than head %d", horizon.Time, head.Time)
	}
	return cmp.Or(horizon.check("horizon"), head.check("head"))
}

func (p Point) check(what string) error {
	if p.Commit != "" && p.Tree == "" {
		return fmt.Errorf("%s has a commit and no tree", what)
	}
	return checkTime(what, p.Time)
}

// checkAfter makes sure that a lane goes forward.
func (s *Step) checkAfter(l Lane) error {
	switch {
	case s.Horizon.Time < l.Horizon.Time:
		return fmt.Errorf("step to horizon %d, before %d", s.Horizon.Time, l.Horizon.Time)
	case s.Head.Time < l.Head.Time:
		return fmt.Errorf("step to head %d, before %d", s.Head.Time, l.Head.Time)
	case len(s.KeyDone) > 0 && !s.Started:
		return errors.New("step has done a key and not started")
	}
	return nil
}

func (l Lane) message() (*cursorpb.LaneData, error) {
	m := &cursorpb.LaneData{Delay: uint32(l.Delay), RulesHash: l.RulesHash[:], WaitingUntil: l.WaitingUntil, Judged: l.Judged}
	var err error
	if m.Horizon, m.Head, err = points(l.Horizon, l.Head); err != nil {
		return nil, err
	}
	if s := l.Step; s != nil {
		m.Step = &cursorpb.StepData{RulesHash: s.RulesHash[:], KeyDone: s.KeyDone, Started: s.Started, Judged: s.Judged}
		if m.Step.Horizon, m.Step.Head, err = points(s.Horizon, s.Head); err != nil {
			return nil, fmt.Errorf("step: %w", err)
		}
	}
	m.Blocked = l.Blocked.message()
	return m, nil
}

// message returns nil for no block.
func (b *Block) message() *cursorpb.BlockData {
	if b == nil {
		return nil
	}
	return &cursorpb.BlockData{Key: b.Key, Since: b.Since, Reason: shortened(b.Reason)}
}

func parseBlock(m *cursorpb.BlockData) *Block {
	if m == nil {
		return nil
	}
	return &Block{Key: keyOf(m.Key), Since: m.Since, Reason: m.Reason}
}

// shortened makes any text one that a message can hold: a reason must not be what keeps a record from being saved.
func shortened(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
}

func parseLane(m *cursorpb.LaneData) (Lane, error) {
	if m.Delay > math.MaxInt32 {
		return Lane{}, errors.New("no delay is like that")
	}
	l := Lane{Delay: int(m.Delay), WaitingUntil: m.WaitingUntil, Judged: m.Judged}
	var err error
	if l.Horizon, l.Head, l.RulesHash, err = parsePoints(m.Horizon, m.Head, m.RulesHash); err != nil {
		return Lane{}, err
	}
	if s := m.Step; s != nil {
		l.Step = &Step{KeyDone: keyOf(s.KeyDone), Started: s.Started, Judged: s.Judged}
		if l.Step.Horizon, l.Step.Head, l.Step.RulesHash, err = parsePoints(s.Horizon, s.Head, s.RulesHash); err != nil {
			return Lane{}, fmt.Errorf("step: %w", err)
		}
	}
	l.Blocked = parseBlock(m.Blocked)
	return l, nil
}

// keyOf makes no difference between no key and an empty one, which nothing has.
func keyOf(b []byte) graveler.Key {
	if len(b) == 0 {
		return nil
	}
	return bytes.Clone(b)
}

func points(horizon, head Point) (h, m *cursorpb.PointData, err error) {
	h, hErr := horizon.message("horizon")
	m, mErr := head.message("head")
	return h, m, cmp.Or(hErr, mErr)
}

// message returns nil for the zero Point.
func (p Point) message(what string) (*cursorpb.PointData, error) {
	if p == (Point{}) {
		return nil, nil
	}
	tree, treeErr := idBytes(what+" tree", string(p.Tree))
	commit, commitErr := idBytes(what+" commit", string(p.Commit))
	return &cursorpb.PointData{Time: p.Time, Tree: tree, Commit: commit}, cmp.Or(treeErr, commitErr)
}

func parsePoints(horizon, head *cursorpb.PointData, rulesHash []byte) (h, m Point, rules [32]byte, err error) {
	h, hErr := parsePoint("horizon", horizon)
	m, mErr := parsePoint("head", head)
	rules, rulesErr := hash("hash of rules", rulesHash)
	return h, m, rules, cmp.Or(hErr, mErr, rulesErr)
}

func parsePoint(what string, m *cursorpb.PointData) (Point, error) {
	tree, treeErr := idDigits(what+" tree", m.GetTree())
	commit, commitErr := idDigits(what+" commit", m.GetCommit())
	return Point{m.GetTime(), graveler.MetaRangeID(tree), graveler.CommitID(commit)}, cmp.Or(treeErr, commitErr)
}
