// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// DeletePrefix deletes every object whose key starts with prefix, as Delete of each key does, in batches: it makes delete markers
// where the bucket keeps versions, and touches neither noncurrent versions nor uploads. It returns how many were deleted, also
// with an error: repeating it goes on. What is put meanwhile may stay.
//
// It goes key by key also where nothing is kept: each deletion holds to the settings of the bucket at its time. (DeletePrefix of
// package graveler takes the same time whatever is below the prefix, and knows neither settings nor locks.)
func (c *Catalog) DeletePrefix(ctx context.Context, b Bucket, prefix string) (deleted int, err error) {
	if err := c.deletePrefix(ctx, b, prefix, &deleted); err != nil {
		return deleted, fmt.Errorf("delete prefix %s:%q: %w", b, prefix, err)
	}
	return deleted, nil
}

func (c *Catalog) deletePrefix(ctx context.Context, b Bucket, prefix string, deleted *int) error {
	if prefix != "" {
		if err := checkKey(prefix); err != nil {
			return err
		}
	}
	ref, err := c.ref(ctx, b)
	if err != nil {
		return err
	}
	list := c.store.List(ctx, b.Repository, ref, graveler.ListOptions{Prefix: graveler.Key(prefix), After: graveler.Key(afterReserved)})
	var batch []ObjectID
	flush := func() error {
		results := make([]Deleted, len(batch))
		err := c.deleteMany(ctx, b, batch, results, false)
		for _, r := range results {
			switch {
			case r.Err == nil:
				*deleted++
			case err == nil:
				err = r.Err
			}
		}
		batch = batch[:0]
		return err
	}
	for l, err := range list {
		if err != nil {
			return err
		}
		batch = append(batch, ObjectID{Key: string(l.Key)})
		if len(batch) == MaxDeletes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
