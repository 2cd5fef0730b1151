// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"context"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

// walk takes the walks that are due or under way, each source apart from all others. A repository is walked by whoever holds the
// shard of its name, for all shards.
func (p *pass) walk(ctx context.Context) {
	if p.Walker == nil {
		return
	}
	oldest := map[*shard]int64{}
	for _, sh := range p.shards {
		oldest[sh] = p.now.UnixNano() // where there is nothing to be walked
	}
	for _, s := range p.rotated() {
		sh := p.walkerOf(s.target.Repository)
		if sh == nil || s.report.Skipped != "" || s.ready && !s.needsWalks() {
			continue
		}
		last := int64(0)
		if s.ready && !p.cut(ctx) {
			last = s.walk(ctx)
		}
		oldest[sh] = min(oldest[sh], last)
	}
	for sh, last := range oldest {
		if p.unknown != nil {
			sh.walked(last, p.now.UnixNano())
		}
	}
}

// needsWalks reports whether walks find something: what the lane without a delay does, they do.
func (s *source) needsWalks() bool {
	_, ok := s.needed()[0]
	return ok
}

// walkerOf returns the shard whose holder walks a repository: that of its name, or one that stands for it where the pass is about
// some shards only; nil where this process does not hold it. That its records are malformed is no obstacle.
func (p *pass) walkerOf(repo graveler.RepositoryID) *shard {
	sh := p.byNumber[p.Shards[lifecycle.ShardOf(repo, "")%len(p.Shards)]]
	if sh == nil || sh.work.Err() != nil {
		return nil
	}
	return sh
}

// walked takes note of when the oldest of the last walks began. It goes back only where it was ahead of the clock.
func (s *shard) walked(last, now int64) {
	if last > s.cursor.LastWalked || s.cursor.LastWalked > now && last > 0 {
		s.cursor.LastWalked = last
	}
}

// walkedShards returns those that the walks of this pass are over, as records have them.
func (p *pass) walkedShards() (set uint16) {
	if len(p.Shards) == lifecycle.Shards {
		return 0
	}
	for _, n := range p.Shards {
		set |= 1 << n
	}
	return set
}

// walk goes on with the walk over the source, or takes the next one if that is due, and returns when the last one that has ended
// began, 0 where that is not known. As long as a walk has not ended, or the last one could not do something, things may be due in
// any shard.
func (s *source) walk(ctx context.Context) int64 {
	record, _, err := s.records.Walk(ctx, s.id.repository, s.id.branch, s.walkedShards())
	if err != nil {
		s.behindAll()
		s.fail(ctx, fmt.Errorf("walk: %w", err))
		return 0
	}
	w := &walk{source: s, record: record}
	if record.Began != 0 || walkerDue(timeOf(record.Last), s.now, s.WalkerInterval) {
		if w.failed(ctx, w.run(ctx), s.close()) {
			return record.Last
		}
	}
	if w.record.Blocked != nil {
		s.report.Blocked++
	}
	if w.record.Blocked != nil || w.record.Began != 0 {
		s.behindAll()
	}
	return w.record.Last
}

// failed takes note of errors, each by itself, and reports whether there was any: beside one that says only that the pass has to
// end another must not be lost.
func (w *walk) failed(ctx context.Context, errs ...error) bool {
	any := false
	for _, err := range errs {
		if err != nil {
			any = true
			w.behindAll()
			w.fail(ctx, fmt.Errorf("walk: %w", err))
		}
	}
	return any
}

// begin begins a walk, unless one is under way.
func (w *walk) begin() {
	if r := &w.record; r.Began == 0 {
		r.RepositoryUID, r.BranchUID, r.Shards = w.id.repository, w.id.branch, w.walkedShards()
		r.Began, r.Head = max(0, w.now.UnixNano()), w.head
	}
}

// advance takes note that the walk is done with the keys up to one, and of the first of these that could not be done. What an
// earlier walk could not do is in the way until this one has come to it.
func (w *walk) advance(to string, first *cursor.Block) {
	r := &w.record
	if b := r.Blocked; first != nil && (b == nil || string(b.Key) > r.After) || b != nil && string(b.Key) > r.After && string(b.Key) <= to {
		r.Blocked = first
	}
	r.After = to
}

// end ends the walk, which has been done with all keys.
func (w *walk) end() {
	r := &w.record
	if b := r.Blocked; b != nil && string(b.Key) > r.After {
		r.Blocked = nil
	}
	r.Last, r.Began, r.Head, r.After = r.Began, 0, cursor.Point{}, ""
	w.report.Walked = true
}

// save saves how far the walk has come, or that it has ended.
func (w *walk) save(ctx context.Context) error {
	if w.DryRun != nil {
		return nil
	}
	ctx, cancel := saver(ctx)
	defer cancel()
	err := w.records.SaveWalk(ctx, w.record)
	w.unsaved = w.unsaved || err != nil
	return unsaved(err)
}
