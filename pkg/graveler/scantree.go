// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"fmt"
)

// ScanTree returns an iterator over the entries of a tree of a repository, by key. The tree must be kept by something that refers
// to it. Nothing is read before the first call of Next, and a step or a seek to a key soon after the last one costs next to
// nothing. Reading ends when ctx does; the iterator must be closed.
func (g *Graveler) ScanTree(ctx context.Context, repo RepositoryID, tree MetaRangeID) (Iterator[Entry], error) {
	r, err := g.repository(ctx, repo)
	if err != nil {
		return nil, fmt.Errorf("scan tree %s of %s: %w", tree, repo, err)
	}
	return g.trees.Scan(ctx, r.Namespace, tree), nil
}
