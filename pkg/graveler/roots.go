// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// window is a commit that is kept, with the part of its history that is not before a time.
type window struct {
	head  CommitID
	since int64 // nanoseconds since the epoch; math.MaxInt64: the commit alone
	// named: a branch or a tag has the head, or had it until it was reset or deleted, here or before it was carried over, so that it may be merged.
	named bool
}

// readRoots reads what keeps commits.
func (r *retaining) readRoots(ctx context.Context) error {
	for p, err := range r.g.refs.ScanPins(ctx, r.repo) {
		if err != nil {
			return err
		}
		r.pins = append(r.pins, p)
	}
	for t, err := range r.g.refs.ScanTags(ctx, r.repo, "") {
		if err != nil {
			return err
		}
		// A tag is treated like a branch that no pattern matches but the one that matches all.
		r.windows = append(r.windows, window{head: t.Commit, since: r.rules.horizon("", r.now), named: true})
	}
	live := map[string]*Branch{}
	for b, err := range r.g.refs.ScanBranches(ctx, r.repo, "") {
		if err != nil {
			return err
		}
		live[b.UID] = b
		if b.Base != "" {
			r.bases = append(r.bases, b)
		}
		r.windows = append(r.windows, window{head: b.Head, since: r.rules.horizon(b.ID, r.now), named: true})
	}
	for log, err := range r.g.refs.ScanLogNames(ctx, r.repo, "") {
		if err == nil {
			err = r.readMoves(ctx, log, live[log.UID])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readMoves reads the commits that a log names. Of one that was left by a reset or by the deletion of the branch its history is
// kept too, as it was before.
func (r *retaining) readMoves(ctx context.Context, log LogName, b *Branch) error {
	horizon := r.rules.horizon(log.Branch, r.now)
	start := horizon
	if !r.params.DryRun { // which has recorded what is kept
		var err error
		if start, err = r.g.refs.LogStart(ctx, r.repo, log.UID); err != nil {
			return err
		}
	}
	for _, p := range r.pins {
		if from, ok := p.Logs[log.UID]; ok {
			start = min(start, from)
		}
	}
	note := func(m Move) {
		if m.Time < start {
			r.report.MovesRemoved++ // in a dry run; else they have gone
			return
		}
		left := window{head: m.Old, since: math.MaxInt64}
		if m.Op == OpReset || m.Op == OpDelete {
			left.since, left.named = horizon, true // so that what is restored can be merged as before
		}
		r.windows = append(r.windows, left, window{head: m.New, since: math.MaxInt64})
	}
	if b != nil && b.LastMove.Time >= start {
		note(b.LastMove)
	}
	from := start
	if r.params.DryRun {
		from = 0
	}
	for m, err := range r.g.refs.ScanMoves(ctx, r.repo, log.UID, from, math.MaxInt64) {
		if err != nil {
			return err
		}
		note(m)
	}
	return nil
}

// readExpirations reads what earlier runs have done.
func (r *retaining) readExpirations(ctx context.Context) error {
	r.expired = map[CommitID]Expiration{}
	for e, err := range r.g.refs.ScanExpirations(ctx, r.repo) {
		if err != nil {
			return err
		}
		r.expired[e.Commit] = e
	}
	return nil
}

// readHistory reads the commits.
func (r *retaining) readHistory(ctx context.Context) error {
	r.history = &history{byID: map[CommitID]int{}}
	var parents [][]CommitID
	add := func(c *Commit) {
		r.history.byID[c.ID] = len(r.history.commits)
		r.history.commits = append(r.history.commits, pastCommit{id: c.ID, tree: c.Tree, generation: c.Generation, logTime: c.LogTime, carried: c.Carried()})
		parents = append(parents, c.Parents)
	}
	for c, err := range r.g.refs.ScanCommits(ctx, r.repo, "") {
		if err != nil {
			return err
		}
		add(c)
	}
	for i := 0; i < len(r.history.commits); i++ {
		for _, id := range parents[i] {
			if _, ok := r.history.byID[id]; !ok { // the scan may have seen one that was made meanwhile, and missed its parent
				c, err := r.g.refs.GetCommit(ctx, r.repo, id)
				if err == nil {
					add(c)
				} else if !errors.Is(err, ErrCommitNotFound) {
					return err
				}
			}
			p, err := r.find(id)
			if err != nil {
				return fmt.Errorf("parent of commit %s: %w", r.history.commits[i].id, err)
			}
			if p >= 0 {
				r.history.commits[i].parents = append(r.history.commits[i].parents, p)
			}
		}
	}
	return nil
}

// find returns where a commit is in the history, -1 where there is none, which only one that has expired may be missing from.
func (r *retaining) find(id CommitID) (int, error) {
	if i, ok := r.history.byID[id]; ok {
		return i, nil
	}
	if e, ok := r.expired[id]; id == "" || ok && !e.Pending {
		return -1, nil
	}
	return -1, fmt.Errorf("%w: commit %s is referred to but does not exist", ErrCorrupt, id)
}

// keepCarried makes roots of the carried commits that nothing leads to. They are treated like branches that were deleted when
// these commits were made, and that no pattern matches but the one that matches all.
//
// Other commits that nothing leads to are those whose making was cut off, and those that only moves led to which have gone: the
// rule of their log has had its say.
func (r *retaining) keepCarried(context.Context) error {
	heads := make([]int, 0, len(r.windows))
	for _, w := range r.windows {
		head, err := r.find(w.head)
		if err != nil {
			return err
		}
		if head >= 0 {
			heads = append(heads, head)
		}
	}
	horizon := r.rules.horizon("", r.now)
	for _, tip := range r.history.carriedBeside(heads) {
		if c := r.history.commits[tip]; c.logTime >= horizon {
			r.windows = append(r.windows, window{head: c.id, since: horizon, named: true})
		}
	}
	return nil
}

// keep finds out which commits are kept.
func (r *retaining) keep(context.Context) error {
	slices.SortFunc(r.windows, func(a, b window) int { return cmp.Compare(a.since, b.since) })
	var named []int
	for _, w := range r.windows {
		head, err := r.find(w.head)
		if err != nil {
			return err
		}
		if head < 0 {
			continue
		}
		r.history.keepSince(head, w.since)
		if w.named {
			named = append(named, head)
		}
	}
	r.history.keepPartings(named)
	pinned := map[MetaRangeID]bool{}
	for _, p := range r.pins {
		for _, tree := range p.Trees {
			pinned[tree] = true
		}
	}
	for i := range r.history.commits {
		if c := &r.history.commits[i]; pinned[c.tree] {
			c.kept = true
		}
	}
	return nil
}
