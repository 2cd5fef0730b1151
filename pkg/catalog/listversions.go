// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"iter"
)

// ListVersionsParams says which versions to list. Prefix, Delimiter and MaxKeys are as in ListParams.
type ListVersionsParams struct {
	Prefix, Delimiter string
	// KeyMarker leaves out the keys and common prefixes that are not greater, and the common prefix that it is in. With
	// VersionIDMarker, which needs it, the versions of KeyMarker come first that follow that one.
	KeyMarker       string
	VersionIDMarker string
	MaxKeys         *int
}

// ListedVersion is a version in a listing. Its VersionID is never empty.
type ListedVersion struct {
	Key string
	// Latest: it is the current version. Without one, where someone has removed the entry of an object and knew nothing of
	// versions, no version of the key is.
	Latest bool
	Object
}

// VersionPage is a page of versions: objects and delete markers by key, of each key the current one and then the others, newest
// first; and common prefixes.
type VersionPage struct {
	Versions       []ListedVersion
	CommonPrefixes []string
	// Truncated: there is more, behind these two markers, which are the last result.
	Truncated           bool
	NextKeyMarker       string
	NextVersionIDMarker string
}

// ListVersions returns a page of the versions of all keys, as ListObjectVersions does, in buckets that keep no versions too. A
// VersionIDMarker that is not the ID of a version, or has no KeyMarker, is InvalidArgument; the version may have gone. What lies
// below a common prefix is skipped, not read.
//
// What was there before the page was begun, and is not removed until it is done, is in it once, though it may go from one place
// to another: where a key was changed meanwhile its versions are read again. It costs two readings of the page.
func (c *Catalog) ListVersions(ctx context.Context, b Bucket, p ListVersionsParams) (VersionPage, error) {
	page, err := c.listVersions(ctx, b, p)
	if err != nil {
		return VersionPage{}, fmt.Errorf("list versions %s:%q: %w", b, p.Prefix, err)
	}
	return page, nil
}

func (c *Catalog) listVersions(ctx context.Context, b Bucket, p ListVersionsParams) (page VersionPage, err error) {
	size, err := pageSize(p.MaxKeys)
	if err != nil {
		return VersionPage{}, err
	}
	q, err := p.query()
	if err != nil {
		return VersionPage{}, err
	}
	n, last := 0, ListedVersion{}
	for r, err := range c.versions(ctx, b, q, size+1) {
		if err != nil {
			return VersionPage{}, err
		}
		if n == size {
			page.Truncated = size > 0
			break
		}
		n++
		if last = r.ListedVersion; r.common {
			page.CommonPrefixes = append(page.CommonPrefixes, r.Key)
		} else {
			page.Versions = append(page.Versions, last)
		}
	}
	if page.Truncated {
		page.NextKeyMarker, page.NextVersionIDMarker = last.Key, last.VersionID
	}
	return page, nil
}

func (p ListVersionsParams) query() (versionQuery, error) {
	switch {
	case p.VersionIDMarker == "":
	case p.KeyMarker == "":
		return versionQuery{}, fmt.Errorf("%w: a version ID marker without a key marker", InvalidArgument)
	case checkVersionID(p.VersionIDMarker) != nil:
		return versionQuery{}, fmt.Errorf("%w: version ID marker %q", InvalidArgument, p.VersionIDMarker)
	}
	return versionQuery{p.Prefix, p.Delimiter, p.KeyMarker, p.VersionIDMarker}, nil
}

// Versions yields the versions of the keys that start with prefix and are greater than after, in the order of ListVersions. An error ends it.
func (c *Catalog) Versions(ctx context.Context, b Bucket, prefix, after string) iter.Seq2[ListedVersion, error] {
	return func(yield func(ListedVersion, error) bool) {
		for r, err := range c.versions(ctx, b, versionQuery{prefix: prefix, key: after}, MaxListed) {
			if err != nil {
				err = fmt.Errorf("list versions %s:%q: %w", b, prefix, err)
			}
			if !yield(r.ListedVersion, err) || err != nil {
				return
			}
		}
	}
}
