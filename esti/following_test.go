// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"context"
	"errors"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/facade"
)

// following is a side of a facade whose writes the other side follows, so that it has the same. Records of repositories are the
// facade's own concern. Registrations of partitions and the clock are each side's own.
func following(side, other facade.Backend) facade.Backend {
	return facade.Backend{Refs: followedRefs{side.Refs, other.Refs}, Staging: followedStaging{side.Staging, other.Staging}}
}

type followedRefs struct {
	graveler.Refs
	other graveler.Refs
}

// and makes a write on the other side, after it was made here.
func and(err error, other func() error) error {
	if err != nil {
		return err
	}
	return other()
}

// now makes a conditional write on the other side, with the stamp of what is there, until nobody comes between.
func now(write func() error) error {
	for {
		if err := write(); !errors.Is(err, graveler.ErrChanged) {
			return err
		}
	}
}

// unlessNotFound is the error of a read of what need not be there.
func unlessNotFound(err error) error {
	if errors.Is(err, graveler.ErrNotFound) {
		return nil
	}
	return err
}

func (f followedRefs) PutBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch) (graveler.Stamp, error) {
	return f.PublishBranch(ctx, repo, b, graveler.Preceding{})
}

func (f followedRefs) PublishBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (graveler.Stamp, error) {
	stamp, err := f.Refs.PublishBranch(ctx, repo, b, before)
	before.Cleanups = nil
	return stamp, and(err, func() error {
		return now(func() error {
			there, err := f.other.GetBranch(ctx, repo, b.ID)
			if unlessNotFound(err) != nil {
				return err
			}
			next := b.Clone()
			if next.Stamp = nil; err == nil {
				next.Stamp = there.Stamp
			}
			_, err = f.other.PublishBranch(ctx, repo, next, before)
			return err
		})
	})
}

func (f followedRefs) RemoveBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch) error {
	return and(f.Refs.RemoveBranch(ctx, repo, b), func() error {
		return now(func() error {
			there, err := f.other.GetBranch(ctx, repo, b.ID)
			if err == nil {
				err = f.other.RemoveBranch(ctx, repo, there)
			}
			return unlessNotFound(err)
		})
	})
}

func (f followedRefs) PutCommit(ctx context.Context, repo *graveler.Repository, c *graveler.Commit) error {
	return and(f.Refs.PutCommit(ctx, repo, c), func() error { return f.other.PutCommit(ctx, repo, c) })
}

func (f followedRefs) CreateTag(ctx context.Context, repo *graveler.Repository, t *graveler.Tag) error {
	return and(f.Refs.CreateTag(ctx, repo, t), func() error { return f.other.CreateTag(ctx, repo, t) })
}

func (f followedRefs) RemoveTag(ctx context.Context, repo *graveler.Repository, t *graveler.Tag) error {
	return and(f.Refs.RemoveTag(ctx, repo, t), func() error {
		there, err := f.other.GetTag(ctx, repo, t.ID)
		if err == nil {
			err = f.other.RemoveTag(ctx, repo, there)
		}
		return unlessNotFound(err)
	})
}

func (f followedRefs) PutMove(ctx context.Context, repo *graveler.Repository, uid string, m graveler.Move) error {
	return and(f.Refs.PutMove(ctx, repo, uid, m), func() error { return f.other.PutMove(ctx, repo, uid, m) })
}

func (f followedRefs) RemoveMove(ctx context.Context, repo *graveler.Repository, uid string, at int64) error {
	return and(f.Refs.RemoveMove(ctx, repo, uid, at), func() error { return f.other.RemoveMove(ctx, repo, uid, at) })
}

func (f followedRefs) PutLogName(ctx context.Context, repo *graveler.Repository, branch graveler.BranchID, uid string) error {
	return and(f.Refs.PutLogName(ctx, repo, branch, uid), func() error { return f.other.PutLogName(ctx, repo, branch, uid) })
}

func (f followedRefs) RemoveLogName(ctx context.Context, repo *graveler.Repository, name graveler.LogName) error {
	return and(f.Refs.RemoveLogName(ctx, repo, name), func() error { return f.other.RemoveLogName(ctx, repo, name) })
}

func (f followedRefs) PutLogStart(ctx context.Context, repo *graveler.Repository, uid string, at int64) error {
	return and(f.Refs.PutLogStart(ctx, repo, uid, at), func() error { return f.other.PutLogStart(ctx, repo, uid, at) })
}

func (f followedRefs) PutLogBounds(ctx context.Context, repo *graveler.Repository, uid string, b graveler.LogBounds) error {
	return and(f.Refs.PutLogBounds(ctx, repo, uid, b), func() error {
		return now(func() error {
			there, err := f.other.LogBounds(ctx, repo, uid)
			if err != nil {
				return err
			}
			b.Stamp = there.Stamp
			return f.other.PutLogBounds(ctx, repo, uid, b)
		})
	})
}

func (f followedRefs) PutPin(ctx context.Context, repo *graveler.Repository, p graveler.Pin) error {
	return and(f.Refs.PutPin(ctx, repo, p), func() error { return f.other.PutPin(ctx, repo, p) })
}

func (f followedRefs) RemovePin(ctx context.Context, repo *graveler.Repository, owner string) error {
	return and(f.Refs.RemovePin(ctx, repo, owner), func() error { return f.other.RemovePin(ctx, repo, owner) })
}

func (f followedRefs) PutExpiration(ctx context.Context, repo *graveler.Repository, e graveler.Expiration) error {
	return and(f.Refs.PutExpiration(ctx, repo, e), func() error {
		return now(func() error {
			there, err := f.other.GetExpiration(ctx, repo, e.Commit)
			if unlessNotFound(err) != nil {
				return err
			}
			e.Stamp = there.Stamp
			return f.other.PutExpiration(ctx, repo, e)
		})
	})
}

func (f followedRefs) RemoveExpiration(ctx context.Context, repo *graveler.Repository, e graveler.Expiration) error {
	return and(f.Refs.RemoveExpiration(ctx, repo, e), func() error {
		return now(func() error {
			there, err := f.other.GetExpiration(ctx, repo, e.Commit)
			if err == nil {
				err = f.other.RemoveExpiration(ctx, repo, there)
			}
			return unlessNotFound(err)
		})
	})
}

func (f followedRefs) PutSetting(ctx context.Context, repo *graveler.Repository, name string, data []byte, s graveler.Stamp) (graveler.Stamp, error) {
	stamp, err := f.Refs.PutSetting(ctx, repo, name, data, s)
	return stamp, and(err, func() error {
		return now(func() error {
			_, there, err := f.other.GetSetting(ctx, repo, name)
			if unlessNotFound(err) != nil {
				return err
			}
			_, err = f.other.PutSetting(ctx, repo, name, data, there)
			return err
		})
	})
}

func (f followedRefs) RemoveSetting(ctx context.Context, repo *graveler.Repository, name string, s graveler.Stamp) error {
	return and(f.Refs.RemoveSetting(ctx, repo, name, s), func() error {
		return now(func() error {
			_, there, err := f.other.GetSetting(ctx, repo, name)
			if err == nil {
				err = f.other.RemoveSetting(ctx, repo, name, there)
			}
			return unlessNotFound(err)
		})
	})
}

type followedStaging struct {
	graveler.Staging
	other graveler.Staging
}

// Limits are those of both.
func (f followedStaging) Limits() graveler.StagingLimits {
	a, b := f.Staging.Limits(), f.other.Limits()
	return graveler.StagingLimits{Writes: min(a.Writes, b.Writes), Bytes: min(a.Bytes, b.Bytes), CheapFences: a.CheapFences}
}

func (f followedStaging) Apply(ctx context.Context, fence *graveler.Fence, token graveler.StagingToken, writes []graveler.StagedWrite) error {
	return and(f.Staging.Apply(ctx, fence, token, writes), func() error {
		var all []graveler.StagedWrite
		for _, w := range writes {
			if !w.Check {
				all = append(all, graveler.StagedWrite{Key: w.Key, Value: w.Value})
			}
		}
		if len(all) == 0 {
			return nil
		}
		return f.other.Apply(ctx, nil, token, all)
	})
}
