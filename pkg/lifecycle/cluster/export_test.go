// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"maps"
	"slices"

	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// Round is what the loop does every so often.
func (w *Worker) Round(ctx context.Context) error { return w.round(ctx) }

// Held are the shards whose leases are good, whatever is planned for them.
func (w *Worker) Held() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var shards []int
	for _, shard := range slices.Sorted(maps.Keys(w.leases)) {
		if w.left(w.leases[shard]) > 0 {
			shards = append(shards, shard)
		}
	}
	return shards
}

// Lapse is what the loop does when a lease is over.
func (w *Worker) Lapse() { w.lapse() }

func Plan(takes map[string][]int, holders [lifecycle.Shards]string) [lifecycle.Shards]string {
	return plan(takes, holders)
}

func (l *Limiter) Share(shards int) { l.share(shards) }
