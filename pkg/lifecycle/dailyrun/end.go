// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

// prune removes what the shards of the pass remember of branches that are gone, or have no rules any more, where the pass has
// come across any. Other shards are for those who work on them. Pins go first: what is pinned by nobody's position would be so
// for ever.
func (p *pass) prune(ctx context.Context) {
	gone := map[sourceID]bool{}
	for _, sh := range p.shards {
		for id := range sh.positions {
			if !p.isLive(id) {
				gone[id] = true
			}
		}
	}
	if len(gone) == 0 && !p.stale || p.DryRun != nil || p.cut(ctx) {
		return
	}
	// A pass that began later may know of rules that were set since, and have deferred something.
	now, err := newPass(p.Config)
	if err != nil {
		p.fail(ctx, err)
		return
	}
	now.findSources(ctx)
	var shards []int
	for _, sh := range p.shards {
		if sh.ours() {
			shards = append(shards, sh.number)
		}
	}
	kept := map[sourceID]bool{}
	for id := range maps.Keys(gone) {
		if now.isLive(id) {
			continue
		}
		if err := p.unpin(ctx, id, shards); err != nil {
			kept[id] = true
			p.fail(ctx, fmt.Errorf("branch %s is gone: %w", id.branch, err))
		}
	}
	_, err = p.records.Prune(ctx, shards, func(repositoryUID, branchUID string) bool {
		id := sourceID{repositoryUID, branchUID}
		return kept[id] || p.isLive(id) || now.isLive(id)
	})
	p.fail(ctx, err)
}

func (p *pass) unpin(ctx context.Context, id sourceID, shards []int) error {
	repo, ok := p.repositories[id.repository]
	if !ok {
		return nil // the pins have gone with it
	}
	for _, shard := range shards {
		err := p.Store.RemovePin(ctx, repo, pinOwner(shard, id.branch))
		if err != nil && !isGone(err) {
			return err
		}
	}
	return nil
}

// saveCursors saves how far the shards have come, and fills in the report. A dry run has come no further.
func (p *pass) saveCursors(ctx context.Context) {
	var changed []cursor.Cursor
	any := false
	for _, sh := range p.shards {
		if !sh.ours() || p.DryRun != nil {
			sh.cursor = sh.stored
			continue
		}
		any = true
		if p.partial() { // a cursor is about all repositories
			sh.cursor = sh.stored
			continue
		}
		switch {
		case sh.behind || p.cut(ctx):
			sh.cursor.Time = min(sh.cursor.Time, p.now.UnixNano()) // a clock that was ahead must not hide for how long nothing works now
		default:
			sh.cursor.Time, sh.cursor.RuleSetHash, sh.cursor.PromotedHash = p.now.UnixNano(), p.snapshot.ReplayContentHash(), p.snapshot.PromotedHash(p.window(p.snapshot))
		}
		if sh.cursor != sh.stored {
			changed = append(changed, sh.cursor)
		}
	}
	saving, cancel := saver(ctx)
	defer cancel()
	if err := p.records.SaveCursors(saving, changed...); err != nil {
		p.unsaved = true
		p.fail(ctx, unsaved(err))
	}
	p.unsaved = p.unsaved || !any
	for _, sh := range p.shards {
		c := sh.cursor
		p.report.Shards = append(p.report.Shards, ShardReport{
			Shard: sh.number, Time: timeOf(c.Time), LastWalked: timeOf(c.LastWalked), Events: sh.events, Took: time.Since(p.began),
		})
	}
}

// timeOf returns a time of a record, where 0 is none.
func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
