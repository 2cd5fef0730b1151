// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// CreateBucketParams says how to create a bucket. The zero value will do.
type CreateBucketParams struct {
	graveler.CreateRepositoryParams
	// ObjectLock enables versioning and object lock from the start.
	ObjectLock bool
}

// BucketInfo is a bucket in a list of them.
type BucketInfo struct {
	Name      graveler.RepositoryID
	CreatedAt time.Time
}

// CreateBucket makes a repository for a bucket. A name that is taken is BucketAlreadyExists, one that no repository can have InvalidBucketName.
func (c *Catalog) CreateBucket(ctx context.Context, name graveler.RepositoryID, p CreateBucketParams) error {
	err := graveler.ValidateRepositoryID(name)
	if err != nil {
		err = fmt.Errorf("%w: %w", InvalidBucketName, err)
	} else {
		_, err = c.store.CreateRepository(ctx, name, p.CreateRepositoryParams)
	}
	if err == nil && p.ObjectLock {
		err = c.changeSettings(ctx, name, func(s *settings) error {
			s.Versioning, s.ObjectLock = VersioningEnabled, &ObjectLockConfig{Enabled: true}
			return nil
		})
		if err != nil {
			err = fmt.Errorf("it was created, but object lock is not enabled: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("create bucket %s: %w", name, err)
	}
	return nil
}

// HeadBucket returns NoSuchBucket where there is none.
func (c *Catalog) HeadBucket(ctx context.Context, name graveler.RepositoryID) (BucketInfo, error) {
	r, err := c.store.GetRepository(ctx, name)
	if errors.Is(err, graveler.ErrNotFound) || errors.Is(err, graveler.ErrRepositoryInDeletion) {
		err = fmt.Errorf("%w: %w", NoSuchBucket, err)
	}
	if err != nil {
		return BucketInfo{}, fmt.Errorf("bucket %s: %w", name, err)
	}
	return BucketInfo{Name: r.ID, CreatedAt: r.CreatedAt}, nil
}

// ListBuckets yields the buckets whose names are greater than after, by name.
func (c *Catalog) ListBuckets(ctx context.Context, after graveler.RepositoryID) iter.Seq2[BucketInfo, error] {
	return func(yield func(BucketInfo, error) bool) {
		for r, err := range c.store.ListRepositories(ctx, after) {
			if err == nil && r.State != graveler.RepositoryActive {
				continue
			}
			if !yield(BucketInfo{Name: r.ID, CreatedAt: r.CreatedAt}, err) || err != nil {
				return
			}
		}
	}
}

// undoTime is how long DeleteBucket may take to take back what it began, whatever becomes of its context.
const undoTime = 10 * time.Second

// DeleteBucket deletes a bucket, with its history, of which no branch shows anything: no object, version or upload. Otherwise it
// is BucketNotEmpty, and nothing changes. (To delete one that is not empty is DeleteRepository of package graveler.)
//
// It makes the repository read-only before it looks for the last time, so that nothing acknowledged is lost; a process that ends
// in the middle may leave it so.
func (c *Catalog) DeleteBucket(ctx context.Context, name graveler.RepositoryID) error {
	if err := c.deleteBucket(ctx, name); err != nil {
		return fmt.Errorf("delete bucket %s: %w", name, err)
	}
	return nil
}

func (c *Catalog) deleteBucket(ctx context.Context, name graveler.RepositoryID) error {
	r, err := c.store.GetRepository(ctx, name)
	if err != nil {
		return err
	}
	if err := c.checkEmpty(ctx, name); err != nil {
		return err
	}
	err = c.store.SetReadOnly(ctx, name, true)
	if err == nil {
		err = c.checkEmpty(ctx, name)
	}
	if err == nil {
		return c.store.DeleteRepository(ctx, name)
	}
	if !r.ReadOnly {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		err = errors.Join(err, c.store.SetReadOnly(ctx, name, false))
	}
	return err
}

// checkEmpty returns BucketNotEmpty where a branch shows anything.
func (c *Catalog) checkEmpty(ctx context.Context, name graveler.RepositoryID) error {
	for b, err := range c.store.ListAllBranches(ctx, name, "") {
		if err != nil {
			return err
		}
		for l, err := range c.store.List(ctx, name, string(b.ID), graveler.ListOptions{}) {
			if err != nil {
				return err
			}
			return fmt.Errorf("%w: branch %s has %q", BucketNotEmpty, b.ID, l.Key)
		}
	}
	return nil
}
