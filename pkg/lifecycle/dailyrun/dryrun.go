// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// plannedOnly tells what would be dispatched, each entry once, though several lanes may come to it. Of what counts newer versions
// it is what has enough of them when everything that was named before has gone, as the dispatcher would have it.
func (s *source) plannedOnly(ctx context.Context, items []pending, results []dispatch.Result) error {
	goes := make([]bool, len(items))
	counted := map[string]map[string]int{} // items by logical key and entry
	for i, p := range items {
		switch key := p.item.LogicalKey; {
		case p.refusal != "":
			continue
		case p.item.Action.NewerNoncurrent == 0:
			goes[i] = s.plans(p.item.Key)
		case counted[key] == nil:
			counted[key] = map[string]int{string(p.item.Key): i}
		default:
			counted[key][string(p.item.Key)] = i
		}
		results[i].Outcome = lifecycle.Done
	}
	if err := s.planCounted(ctx, items, counted, goes); err != nil {
		return err
	}
	for i, p := range items {
		if goes[i] {
			s.DryRun(s.target, p.item)
			s.count(p.item.Action.Kind, lifecycle.Done)
		}
	}
	return nil
}

// plans takes note that an entry would go, and reports whether that is new.
func (s *source) plans(entry []byte) bool {
	h := xxhash.Sum64(entry)
	known := s.planned[h]
	s.planned[h] = true
	return !known
}

// planCounted decides about items that count newer versions, from the newest on.
func (s *source) planCounted(ctx context.Context, items []pending, counted map[string]map[string]int, goes []bool) (err error) {
	if len(counted) == 0 {
		return nil
	}
	t, err := s.open(ctx, s.head.Tree) // another one than that by which is judged, which may be in the middle of a key
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for _, key := range slices.Sorted(maps.Keys(counted)) {
		if err := s.planVersions(ctx, t.Group(key), items, counted[key], goes); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) planVersions(ctx context.Context, g *walker.Group, items []pending, of map[string]int, goes []bool) error {
	newer := 0
	for o, err := range g.Objects(ctx) {
		if err != nil {
			return err
		}
		if o.Kind != lifecycle.Noncurrent {
			continue
		}
		if i, ok := of[string(o.Entry)]; ok {
			goes[i] = newer >= items[i].item.Action.NewerNoncurrent && s.plans(o.Entry)
			if delete(of, string(o.Entry)); len(of) == 0 {
				break
			}
		}
		if !s.planned[xxhash.Sum64(o.Entry)] {
			newer++
		}
	}
	return nil
}
