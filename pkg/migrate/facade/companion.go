// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// ErrOtherRepository: the two sides have different repositories of one name, or only one of them has it.
var ErrOtherRepository = errors.New("the other side does not have this repository, or another of this name")

// companions are the records of repositories where some kinds within repositories are on the other side. That may keep what is
// within a repository only beside a record of it, as SQL tables do, and drops only what belongs to one. So it has each record,
// too: the companion, which says nothing but follows the record here.
//
// A record and its companion have one UID. A repository that was carried over does not: registrations of partitions name the UID,
// so that upkeep would take what belongs to one for a remnant of the other. Such a one is refused.
type companions struct {
	graveler.Repositories
	other graveler.Refs
	known sync.Map // the UIDs that both sides have
}

// GetRepository returns [ErrOtherRepository] for an active repository without companion.
func (c *companions) GetRepository(ctx context.Context, id graveler.RepositoryID) (*graveler.Repository, error) {
	r, err := c.Repositories.GetRepository(ctx, id)
	if err != nil || r.State != graveler.RepositoryActive {
		return r, err
	}
	if _, ok := c.known.Load(r.UID); ok {
		return r, nil
	}
	there, err := found(ctx, c.other, id)
	if err == nil && (there == nil || there.UID != r.UID) {
		err = ErrOtherRepository
	}
	if err != nil {
		return nil, fmt.Errorf("get repository %s: %w", id, err)
	}
	c.known.Store(r.UID, nil)
	return r, nil
}

// PutRepository makes the companion follow.
func (c *companions) PutRepository(ctx context.Context, r *graveler.Repository) (graveler.Stamp, error) {
	if r.Stamp == nil {
		there, err := found(ctx, c.other, r.ID)
		if err == nil && there != nil && there.UID != r.UID && !isRemnant(there) {
			err = ErrOtherRepository
		}
		if err != nil {
			return nil, fmt.Errorf("put repository %s: %w", r.ID, err)
		}
	}
	stamp, err := c.Repositories.PutRepository(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := c.follow(ctx, r.ID); err != nil {
		return nil, fmt.Errorf("put repository %s: %w", r.ID, err)
	}
	return stamp, nil
}

// RemoveRepository removes the companion first: as long as the record is there, whoever goes on with the deletion comes by here again.
func (c *companions) RemoveRepository(ctx context.Context, r *graveler.Repository) error {
	now, err := found(ctx, c.Repositories, r.ID)
	if err == nil && now != nil && string(now.Stamp) == string(r.Stamp) {
		err = c.removeCompanion(ctx, r)
	}
	if err != nil {
		return fmt.Errorf("remove repository %s: %w", r.ID, err)
	}
	return c.Repositories.RemoveRepository(ctx, r)
}

func (c *companions) removeCompanion(ctx context.Context, r *graveler.Repository) error {
	for {
		there, err := found(ctx, c.other, r.ID)
		if err != nil || there == nil || there.UID != r.UID {
			return err
		}
		if err := c.other.RemoveRepository(ctx, there); !errors.Is(err, graveler.ErrChanged) {
			return err
		}
	}
}

// follow makes the companion what the record of a name is now. Everyone who has written the record does so afterwards, and writes
// only over what he read before he read the record: so whatever the order, the last one leaves both the same.
func (c *companions) follow(ctx context.Context, id graveler.RepositoryID) error {
	for {
		there, err := found(ctx, c.other, id)
		if err != nil {
			return err
		}
		now, err := found(ctx, c.Repositories, id)
		if err != nil {
			return err
		}
		switch {
		case there == nil && now == nil, there != nil && now != nil && reflect.DeepEqual(plainRepository(there, false), plainRepository(now, false)):
			return nil
		case there != nil && (now == nil || now.UID != there.UID):
			if !isRemnant(there) {
				return ErrOtherRepository
			}
			err = c.other.RemoveRepository(ctx, there)
		default:
			next := *now
			if next.Stamp = nil; there != nil {
				next.Stamp = there.Stamp
			}
			_, err = c.other.PutRepository(ctx, &next)
		}
		if err != nil && !errors.Is(err, graveler.ErrChanged) {
			return err
		}
	}
}

// isRemnant: whoever deletes the repository has dropped what it had before he removed its record here, and was late with the companion.
func isRemnant(r *graveler.Repository) bool { return r.State == graveler.RepositoryInDeletion }

// found is GetRepository that returns nil where there is none.
func found(ctx context.Context, side graveler.Repositories, id graveler.RepositoryID) (*graveler.Repository, error) {
	r, err := side.GetRepository(ctx, id)
	if errors.Is(err, graveler.ErrRepositoryNotFound) {
		return nil, nil
	}
	return r, err
}
