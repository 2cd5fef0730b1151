// SPDX-License-Identifier: Apache-2.0

package walker

import (
	"context"
	"iter"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// Walker lists the trees of a store. It keeps nothing and is safe for concurrent use.
type Walker struct{ store Store }

// New returns a walker of a store.
func New(s Store) *Walker { return &Walker{s} }

// Walk yields the groups of a tree whose keys are greater than after, by key.
func (w *Walker) Walk(ctx context.Context, repo graveler.RepositoryID, tree graveler.MetaRangeID, v catalog.Versioning, after string) iter.Seq2[*Group, error] {
	return func(yield func(*Group, error) bool) {
		t, err := Open(ctx, w.store, repo, tree, v)
		if err != nil {
			yield(nil, err)
			return
		}
		stopped := false
		for g, err := range t.Groups(after) {
			if stopped = !yield(g, err); stopped || err != nil {
				stopped = true
				break
			}
		}
		if err := t.Close(); err != nil && !stopped {
			yield(nil, err)
		}
	}
}
