// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"

	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// nobody holds a shard that is free.
const nobody = ""

// plan says who is to hold each shard, given which shards each worker would take, and who holds what. A shard stays where it is
// if it can; a free one goes to the worker with the fewest that would take it; then single shards move, the highest first, as
// long as that makes two workers more equal. So where all would take all, no two differ by more than one. It is a function of
// what it is given alone, so that workers who see the same state agree without a word, and it changes nothing that it has planned
// before.
func plan(takes map[string][]int, holders [lifecycle.Shards]string) [lifecycle.Shards]string {
	ids := slices.Sorted(maps.Keys(takes))
	load := map[string]int{}
	planned := holders
	for shard, id := range holders {
		if !slices.Contains(takes[id], shard) {
			planned[shard] = nobody
			continue
		}
		load[id]++
	}
	// least returns the worker with the fewest shards among those that would take this one.
	least := func(shard int) string {
		best := nobody
		for _, id := range ids {
			if slices.Contains(takes[id], shard) && (best == nobody || load[id] < load[best]) {
				best = id
			}
		}
		return best
	}
	for shard, id := range planned {
		if id == nobody {
			planned[shard] = least(shard)
			load[planned[shard]]++
		}
	}
	for {
		shard, gain := -1, 1
		for s := len(planned) - 1; s >= 0; s-- {
			if planned[s] == nobody {
				continue
			}
			if g := load[planned[s]] - load[least(s)]; g > gain {
				shard, gain = s, g
			}
		}
		if shard < 0 {
			return planned
		}
		to := least(shard)
		load[planned[shard]]--
		load[to]++
		planned[shard] = to
	}
}
