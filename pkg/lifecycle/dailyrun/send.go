// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// itemOf returns what is dispatched.
func itemOf(d walker.Due) dispatch.Item {
	return dispatch.Item{
		Action: &d.Action.Action, Key: d.Object.Entry, LogicalKey: d.Object.Key, VersionID: d.Object.VersionID, Due: d.At, ContentIdentity: d.Object.ContentIdentity,
		Object: &d.Object.Object, Value: d.Object.Value,
	}
}

// lockOf tells whether a lock bars what is due, and until when.
func (s *source) lockOf(d walker.Due) (until time.Time, locked bool) {
	until, locked = d.Object.Locked(s.now)
	return until, locked && d.Action.Permanent(&d.Object.Object)
}

// most returns how many items are gathered to be dispatched together. With a limiter it is what that lets pass at once, so that
// nothing that was done waits for what may not be done yet, and a pass that ends has kept what it did.
func (p *pass) most() int {
	if p.Limiter != nil && p.DryRun == nil {
		if _, burst := p.Limiter.Rate(); burst > 0 {
			return min(burst, p.chunk)
		}
	}
	return p.chunk
}

// sliceOver reports whether gathering since a time has taken so long that what was gathered is to be dispatched: a pass that ends
// meanwhile keeps what it has dispatched, and nothing else.
func (p *pass) sliceOver(ctx context.Context, since time.Time) bool {
	slice := p.MaxRuntime / 10
	if end, ok := ctx.Deadline(); ok {
		slice = min(slice, end.Sub(since)/2)
	}
	return time.Since(since) >= slice
}

// send has items dispatched, one batch for each shard, and returns their results. Nothing is known of what was done where it returns an error.
func (s *source) send(ctx context.Context, items []pending) ([]dispatch.Result, error) {
	results := make([]dispatch.Result, len(items))
	by := map[int][]int{}
	n := 0
	for i, p := range items {
		if p.refusal != "" {
			results[i] = dispatch.Result{Outcome: lifecycle.Blocked, Reason: p.refusal}
			continue
		}
		by[p.shard.number] = append(by[p.shard.number], i)
		n++
	}
	if n == 0 {
		return results, nil
	}
	if s.DryRun != nil {
		return results, s.plannedOnly(ctx, items, results)
	}
	if s.Limiter != nil {
		waited, err := s.Limiter.Wait(ctx, n)
		s.pass.report.Waited += waited
		switch {
		case err != nil && s.lostAll():
			return nil, errLostAll // and with them the part of the rate
		case err != nil:
			return nil, err
		}
	}
	shards := slices.Sorted(maps.Keys(by))
	var batches []dispatch.Batch
	for _, n := range shards {
		slices.SortFunc(by[n], func(i, j int) int { return cmp.Or(bytes.Compare(items[i].item.Key, items[j].item.Key), i-j) })
		b := dispatch.Batch{Shard: n, Items: make([]dispatch.Item, 0, len(by[n]))}
		for _, i := range by[n] {
			b.Items = append(b.Items, items[i].item)
		}
		batches = append(batches, b)
	}
	answers, err := s.dispatcher.Dispatch(ctx, s.target, batches)
	if err != nil {
		return nil, err
	}
	for b, n := range shards {
		for k, i := range by[n] {
			results[i] = answers[b][k]
			s.count(items[i].item.Action.Kind, results[i].Outcome)
		}
	}
	s.sent = true
	return results, nil
}

func (s *source) count(kind lifecycle.ActionKind, o lifecycle.Outcome) {
	s.pass.report.Outcomes[Dispatched{s.target.Repository, kind, o}]++
}
