// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"fmt"
	"math"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// root is a commit that something keeps, with its history back to a time.
type root struct {
	commit graveler.CommitID
	since  int64
	named  bool // it must stay possible to merge it with others that are
}

// keptByDefinition says which commits retention must keep, in the plainest way.
func keptByDefinition(commits map[graveler.CommitID]*graveler.Commit, roots []root, pinned map[graveler.MetaRangeID]bool) map[graveler.CommitID]bool {
	kept := map[graveler.CommitID]bool{}
	ancestors := map[graveler.CommitID]map[graveler.CommitID]bool{}
	for _, r := range roots {
		if r.commit == "" {
			continue
		}
		kept[r.commit] = true
		all := map[graveler.CommitID]bool{}
		for next := []graveler.CommitID{r.commit}; len(next) > 0; next = next[1:] {
			c := commits[next[0]]
			if all[c.ID] {
				continue
			}
			all[c.ID] = true
			for _, p := range c.Parents {
				if c.LogTime >= r.since { // then so were all on the way here: times decrease along parents
					kept[p] = true
				}
				next = append(next, p)
			}
		}
		if r.named {
			ancestors[r.commit] = all
		}
	}
	for _, one := range ancestors {
		for _, other := range ancestors {
			for id := range bestCommon(commits, one, other) {
				kept[id] = true
			}
		}
	}
	for id, c := range commits {
		if pinned[c.Tree] {
			kept[id] = true
		}
	}
	return kept
}

// carriedRoots are the carried commits that no root reaches, from a time on. Merges are from those of them that have no child among them.
func carriedRoots(commits map[graveler.CommitID]*graveler.Commit, roots []root, since int64) (more []root) {
	reached := map[graveler.CommitID]bool{}
	for _, r := range roots {
		for next := []graveler.CommitID{r.commit}; len(next) > 0; next = next[1:] {
			if id := next[0]; id != "" && !reached[id] {
				reached[id] = true
				next = append(next, commits[id].Parents...)
			}
		}
	}
	followed := map[graveler.CommitID]bool{}
	for id, c := range commits {
		for _, p := range c.Parents {
			followed[p] = followed[p] || c.Carried() && !reached[id]
		}
	}
	for id, c := range commits {
		if c.Carried() && !reached[id] && c.LogTime >= since {
			more = append(more, root{id, since, !followed[id]})
		}
	}
	return more
}

// bestCommon returns the commits of both sets that no other commit of both reaches.
func bestCommon(commits map[graveler.CommitID]*graveler.Commit, one, other map[graveler.CommitID]bool) map[graveler.CommitID]bool {
	best := map[graveler.CommitID]bool{}
	for id := range one {
		best[id] = other[id]
	}
	for id := range one {
		if !other[id] {
			continue
		}
		for _, p := range commits[id].Parents { // an ancestor of a common one, and so are its own
			best[p] = false
		}
	}
	for id, ok := range best {
		if !ok {
			delete(best, id)
		}
	}
	return best
}

// rootsOf returns what keeps commits. moves are all that the logs ever had, horizon what the rules say.
func rootsOf(ctx context.Context, g *graveler.Graveler, moves map[graveler.LogName][]graveler.Move, horizon func(graveler.BranchID) int64) (roots []root, pinned map[graveler.MetaRangeID]bool, err error) {
	for t, err := range g.ListTags(ctx, "lake", "") {
		if err != nil {
			return nil, nil, err
		}
		roots = append(roots, root{t.Commit, horizon(""), true})
	}
	live := map[string]bool{} // UIDs
	for b, err := range g.ListAllBranches(ctx, "lake", "") {
		if err != nil {
			return nil, nil, err
		}
		roots = append(roots, root{b.Head, horizon(b.ID), true})
		live[b.UID] = true
	}
	pinned = map[graveler.MetaRangeID]bool{}
	logs := map[string]int64{}
	for p, err := range g.ListPins(ctx, "lake") {
		if err != nil {
			return nil, nil, err
		}
		for _, tree := range p.Trees {
			pinned[tree] = true
		}
		for uid, from := range p.Logs {
			if least, ok := logs[uid]; !ok || from < least {
				logs[uid] = from
			}
		}
	}
	for log, err := range g.LogNames(ctx, "lake", "") {
		if err != nil {
			return nil, nil, err
		}
		start, err := g.LogStart(ctx, "lake", log)
		if err != nil {
			return nil, nil, err
		}
		all := moves[log]
		for i, m := range all {
			// The last move of a branch that lives is in its record, however old it is: a pin that comes late keeps it.
			from, ok := logs[log.UID]
			if m.Time <= start && !(ok && m.Time >= from && live[log.UID] && i == len(all)-1) {
				continue
			}
			left := root{m.Old, math.MaxInt64, false}
			if m.Op == graveler.OpReset || m.Op == graveler.OpDelete {
				left = root{m.Old, horizon(log.Branch), true}
			}
			roots = append(roots, left, root{m.New, math.MaxInt64, false})
		}
	}
	return roots, pinned, nil
}

// allCommits returns the commits of the repository "lake".
func allCommits(ctx context.Context, g *graveler.Graveler) (map[graveler.CommitID]*graveler.Commit, error) {
	contents, err := g.Contents(ctx, "lake")
	if err != nil {
		return nil, err
	}
	commits := map[graveler.CommitID]*graveler.Commit{}
	for c, err := range contents.Commits(ctx) {
		if err != nil {
			return nil, err
		}
		commits[c.ID] = c
	}
	return commits, nil
}

// keptNow returns the commits of the repository "lake" that retention must keep. named chooses those of the names that count for merges.
func keptNow(ctx context.Context, g *graveler.Graveler, moves map[graveler.LogName][]graveler.Move, horizon func(graveler.BranchID) int64, named func(graveler.CommitID) bool) (map[graveler.CommitID]bool, error) {
	commits, err := allCommits(ctx, g)
	if err != nil {
		return nil, err
	}
	roots, pinned, err := rootsOf(ctx, g, moves, horizon)
	if err != nil {
		return nil, err
	}
	roots = append(roots, carriedRoots(commits, roots, horizon(""))...)
	for i := range roots {
		roots[i].named = roots[i].named && named(roots[i].commit)
	}
	return keptByDefinition(commits, roots, pinned), nil
}

// checkViewsAndLogs returns an error where what branches and tags show cannot be read, or a log is not whole from its start on.
func checkViewsAndLogs(ctx context.Context, g *graveler.Graveler, moves map[graveler.LogName][]graveler.Move, horizon func(graveler.BranchID) int64) error {
	for b, err := range g.ListAllBranches(ctx, "lake", "") {
		if err == nil {
			_, err = listed(ctx, g, "lake", string(b.ID))
		}
		if err != nil {
			return fmt.Errorf("branch %s: %w", b.ID, err)
		}
	}
	for t, err := range g.ListTags(ctx, "lake", "") {
		if err == nil {
			_, err = listed(ctx, g, "lake", string(t.ID))
		}
		if err != nil {
			return fmt.Errorf("tag %s: %w", t.ID, err)
		}
	}
	for log, err := range g.LogNames(ctx, "lake", "") {
		if err == nil {
			err = checkLogIsWhole(ctx, g, log, moves[log], horizon(log.Branch))
		}
		if err != nil {
			return fmt.Errorf("log %v: %w", log, err)
		}
	}
	return nil
}

func checkLogIsWhole(ctx context.Context, g *graveler.Graveler, log graveler.LogName, moves []graveler.Move, horizon int64) error {
	start, err := g.LogStart(ctx, "lake", log)
	if err != nil {
		return err
	}
	if start > max(horizon, 0) {
		return fmt.Errorf("it begins at %d, though moves from %d on are kept", start, horizon)
	}
	var expected []graveler.Move
	for _, m := range moves {
		if m.Time > start {
			expected = append(expected, m)
		}
	}
	for m, err := range g.MoveLog(ctx, "lake", log, start, math.MaxInt64) {
		if err != nil {
			return err
		}
		if len(expected) == 0 || m.Move != expected[0] {
			return fmt.Errorf("move %v instead of %v", m.Move, expected)
		}
		expected = expected[1:]
	}
	if len(expected) > 0 {
		return fmt.Errorf("moves are missing: %v", expected)
	}
	return nil
}
