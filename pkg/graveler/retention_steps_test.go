// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// take performs a step of a program on a store with a past. The step's key is the number of a commit, its text one of hours.
func (x *agedRun) take(ctx context.Context, actor int, s step) (err error) {
	g := x.processes[actor%2]
	i, _ := strconv.Atoi(s.key)
	hours, _ := strconv.Atoi(s.text)
	old := string(x.commits[i])
	mine := fmt.Sprint("new", actor)
	switch s.do {
	case "retain":
		_, err = g.Retain(ctx, "lake", graveler.RetainParams{})
	case "release":
		_, err = g.Retain(ctx, "lake", graveler.RetainParams{Release: x.release(context.Background(), x.open(nil))})
	case "jump":
		err = x.jump(ctx, time.Duration(hours)*time.Hour)
	case "commit", "compact":
		if err = g.Set(ctx, "lake", "dev", key("k"), value(mine)); err != nil {
			return err
		}
		if s.do == "compact" {
			return g.Compact(ctx, "lake", "dev")
		}
		_, err = g.Commit(ctx, "lake", "dev", graveler.CommitParams{})
	case "reset", "reset-dirty":
		_, err = g.Reset(ctx, "lake", "dev", old, graveler.ResetParams{AllowDirty: s.do == "reset-dirty"})
	case "undo-move":
		err = x.undoMove(ctx, g, time.Duration(hours)*time.Hour)
	case "tag":
		_, err = g.CreateTag(ctx, "lake", graveler.TagID("t"+mine), old)
	case "branch":
		_, err = g.CreateBranch(ctx, "lake", graveler.BranchID(mine), old)
	case "delete":
		err = g.DeleteBranch(ctx, "lake", "side", true)
	case "restore":
		_, err = g.RestoreBranch(ctx, "lake", "side", "")
	case "restore-gone":
		_, err = g.RestoreBranch(ctx, "lake", "gone", "")
	case "pin":
		err = x.pin(ctx, g, mine, graveler.PinParams{Commits: []graveler.CommitID{graveler.CommitID(old)}})
	case "pin-log":
		err = x.pin(ctx, g, mine, graveler.PinParams{Logs: map[string]int64{x.dev.UID: x.now.Load() - int64(hours)*int64(time.Hour)}})
	case "unpin":
		delete(x.pins, mine)
		err = g.RemovePin(ctx, "lake", mine)
	case "import":
		v := value("imported")
		var entries iter.Seq2[graveler.Entry, error] = func(yield func(graveler.Entry, error) bool) { yield(graveler.Entry{Key: key("i"), Value: &v}, nil) }
		_, err = g.Import(ctx, "lake", "dev", entries, graveler.ImportParams{AllowDirty: true})
	case "merge":
		_, err = g.Merge(ctx, "lake", "side", "dev", graveler.MergeParams{Strategy: graveler.SourceWins, AllowDirty: true})
	case "get":
		_, err = listed(ctx, g, "lake", old)
	case "log":
		err = x.readLog(ctx, g)
	default:
		panic("no such step: " + s.do)
	}
	return err
}

// jump lets time pass, but not while somebody writes the record of a branch.
func (x *agedRun) jump(ctx context.Context, d time.Duration) error {
	for range 50 {
		if _, err := x.store.Get(ctx, []byte("clock"), []byte("now")); err == nil || expectedOfAged(err, "jump") && x.scheduler.Crashed(0) && x.scheduler.Crashed(1) {
			return err
		}
		if x.publishing == 0 {
			x.pass(d)
			return nil
		}
	}
	return nil
}

// undoMove resets the branch dev to the head that it had, which is known.
func (x *agedRun) undoMove(ctx context.Context, g *graveler.Graveler, ago time.Duration) error {
	at := x.now.Load() - int64(ago)
	c, err := g.ResetToMove(ctx, "lake", "dev", at, graveler.ResetParams{AllowDirty: true})
	if err != nil {
		return err
	}
	var head graveler.CommitID
	for _, m := range x.moves[x.dev] {
		if m.Time <= at {
			head = m.New
		}
	}
	if c.ID != head {
		return fmt.Errorf("reset to %s, but the head at %d was %s", c.ID, at, head)
	}
	return nil
}

// pin puts a pin. Those of before are relied on no longer.
func (x *agedRun) pin(ctx context.Context, g *graveler.Graveler, owner string, p graveler.PinParams) error {
	delete(x.pins, owner)
	err := g.PutPin(ctx, "lake", owner, p)
	if err == nil {
		x.pins[owner] = p
	}
	return err
}

// readLog reads what there is of a log, from the start that it says it has.
func (x *agedRun) readLog(ctx context.Context, g *graveler.Graveler) error {
	start, err := g.LogStart(ctx, "lake", x.dev)
	if err != nil {
		return err
	}
	var previous int64
	for m, err := range g.MoveLog(ctx, "lake", x.dev, start, math.MaxInt64) {
		if err != nil {
			return err
		}
		if previous != 0 && m.Previous != previous {
			return fmt.Errorf("after the move at %d comes one that follows the one at %d", previous, m.Previous)
		}
		previous = m.Time
	}
	return nil
}

// release removes what it is told of, and notes a problem where that is still held: by a commit that has not expired, or by a branch.
func (x *agedRun) release(ctx context.Context, g *graveler.Graveler) func(graveler.Entry) error {
	return func(e graveler.Entry) error {
		text := string(e.Value.Data)
		commits, err := allCommits(ctx, g)
		if err != nil {
			return err
		}
		refs := []string{}
		for id := range commits {
			refs = append(refs, string(id))
		}
		for b, err := range g.ListAllBranches(ctx, "lake", "") {
			if err != nil {
				return err
			}
			refs = append(refs, string(b.ID))
		}
		for _, ref := range refs {
			for l, err := range g.List(ctx, "lake", ref, graveler.ListOptions{}) {
				switch {
				case errors.Is(err, graveler.ErrExpired):
				case err != nil:
					return err
				case string(l.Value.Data) == text:
					x.problem = fmt.Sprintf("%s was released, but %s has it", text, ref)
				}
			}
		}
		return nil
	}
}
