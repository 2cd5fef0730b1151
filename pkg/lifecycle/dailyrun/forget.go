// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

// Pins is where passes have pinned what their positions stand at; *graveler.Graveler has it.
type Pins interface {
	ListRepositories(ctx context.Context, after graveler.RepositoryID) iter.Seq2[graveler.Repository, error]
	ListPins(ctx context.Context, repo graveler.RepositoryID) iter.Seq2[graveler.Pin, error]
	RemovePin(ctx context.Context, repo graveler.RepositoryID, owner string) error
}

// Forget removes what passes remember of a shard, as cursor.Store.Forget does, and then what that has pinned in any repository,
// and returns how many records there were. No pass may be under way there. After an error it may be repeated. It costs the
// reading of these records, and of all pins.
func Forget(ctx context.Context, s Pins, records kv.Store, shard int) (removed int, err error) {
	removed, err = cursor.New(records).Forget(ctx, shard)
	if err != nil {
		return removed, err
	}
	var errs []error
	for r, err := range s.ListRepositories(ctx, "") {
		if err == nil {
			err = unpinAll(ctx, s, r.ID, shard)
		}
		if err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("forget what shard %d has pinned: %w", shard, err))
		}
	}
	return removed, errors.Join(errs...)
}

// unpinAll removes the pins that a shard has in a repository, whatever branches they are of.
func unpinAll(ctx context.Context, s Pins, repo graveler.RepositoryID, shard int) error {
	var owners []string
	for p, err := range s.ListPins(ctx, repo) {
		if err != nil {
			return fmt.Errorf("repository %s: %w", repo, err)
		}
		if strings.HasPrefix(p.Owner, pinsOf(shard)) {
			owners = append(owners, p.Owner)
		}
	}
	for _, owner := range owners {
		if err := s.RemovePin(ctx, repo, owner); err != nil {
			return fmt.Errorf("repository %s: pin of %q: %w", repo, owner, err)
		}
	}
	return nil
}
