// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// MaxDeletes is how many objects one DeleteMany takes.
const MaxDeletes = 1000

const (
	// firstBatch is how many deletions go into one transaction at first: as many as fit, at three entries each, into what most
	// engines write at once. Where it is too many it is halved.
	firstBatch = 333
	// maxOvertaken is how often a transaction of many is repeated because others write to the same keys, before it is split.
	maxOvertaken = 3
)

var errOvertaken = errors.New("overtaken by other writes")

// DeleteMany is Delete for up to 1,000 objects (more is MalformedXML), in few transactions. The result has one element for each
// of the objects, in their order, with its own error where it was not deleted. An error of the whole means that of the rest of
// the objects, which have it too, it is not known whether they were deleted; repeating it is safe.
func (c *Catalog) DeleteMany(ctx context.Context, b Bucket, objects []ObjectID, bypassGovernance bool) ([]Deleted, error) {
	if len(objects) > MaxDeletes {
		return nil, fmt.Errorf("delete many in %s: %w: %d objects, at most %d are allowed", b, MalformedXML, len(objects), MaxDeletes)
	}
	results := make([]Deleted, len(objects))
	if err := c.deleteMany(ctx, b, objects, results, bypassGovernance); err != nil {
		return results, fmt.Errorf("delete many in %s: %w", b, err)
	}
	return results, nil
}

// deleteMany deletes objects batch by batch.
func (c *Catalog) deleteMany(ctx context.Context, b Bucket, objects []ObjectID, results []Deleted, bypass bool) error {
	for limit := firstBatch; len(objects) > 0; {
		n := batch(objects, limit)
		err := c.deleteBatch(ctx, b, objects[:n], results, bypass)
		switch {
		case n > 1 && (errors.Is(err, graveler.ErrTooLarge) || errors.Is(err, errOvertaken)):
			limit = n / 2
			continue
		case err != nil:
			for i, o := range objects {
				results[i] = Deleted{Key: o.Key, VersionID: o.VersionID, Err: err}
			}
			return err
		}
		objects, results = objects[n:], results[n:]
	}
	return nil
}

// batch returns how many of the objects go into one transaction: up to a limit, and no key twice, since a list of its versions
// would not show what the transaction has done to it.
func batch(objects []ObjectID, limit int) int {
	seen := map[string]bool{}
	for i, o := range objects {
		if i == limit || seen[o.Key] {
			return i
		}
		seen[o.Key] = true
	}
	return len(objects)
}

// deleteBatch deletes objects in one transaction.
func (c *Catalog) deleteBatch(ctx context.Context, b Bucket, objects []ObjectID, results []Deleted, bypass bool) error {
	attempts := 0
	return c.change(ctx, b, func(ctx context.Context, tx *graveler.Transaction, s settings) (int, error) {
		if attempts++; attempts > maxOvertaken && len(objects) > 1 {
			return 0, errOvertaken
		}
		// All at once, so that they are not read one after the other below.
		var places []graveler.Key
		for _, o := range objects {
			if o.check() == nil {
				places = append(places, o.places(s.Versioning)...)
			}
		}
		if _, err := tx.Get(ctx, places...); err != nil {
			return 0, err
		}
		changes := 0
		for i, o := range objects {
			n := 0
			err := o.check()
			if err == nil {
				results[i], n, err = c.deleteIn(ctx, tx, s, o, bypass)
			}
			if err != nil { // one of a read ends the transaction besides
				results[i] = Deleted{Key: o.Key, VersionID: o.VersionID, Err: describe(err, "delete", b, o.Key)}
			}
			changes += n
		}
		return changes, nil
	})
}

// places are those that a deletion looks at in any case.
func (id ObjectID) places(v Versioning) []graveler.Key {
	switch {
	case id.VersionID != "":
		return []graveler.Key{currentKey(id.Key), markerKey(id.Key), versionKey(id.Key, id.VersionID)}
	case v == VersioningOff:
		return []graveler.Key{currentKey(id.Key)}
	case v == VersioningSuspended:
		return []graveler.Key{currentKey(id.Key), markerKey(id.Key), nullKey(id.Key)}
	}
	return []graveler.Key{currentKey(id.Key), markerKey(id.Key)}
}
