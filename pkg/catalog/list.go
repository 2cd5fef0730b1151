// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// MaxListed is the largest page of a listing, and the one that is returned where no size is given.
const MaxListed = 1000

// ListParams says what to list.
type ListParams struct {
	Prefix string
	// Delimiter, if it is not empty, groups the keys that have it after the prefix: all that agree up to its first occurrence
	// there are one common prefix, which counts as one result.
	Delimiter string
	// StartAfter, of ListObjectsV2, leaves out the keys that are not greater. A common prefix that has greater keys is listed,
	// though StartAfter may be among its keys.
	StartAfter string
	// ContinuationToken, of ListObjectsV2, is that of the page before; StartAfter is not looked at then.
	ContinuationToken string
	// Marker, of ListObjects, leaves out the results that are not greater: keys, and common prefixes too, be it that Marker is
	// one or that it is among the keys of one. It does not go together with the two above.
	Marker string
	// MaxKeys is the size of the page; nil: MaxListed, which is also what a greater one means.
	MaxKeys *int
}

// ListedObject is an object in a listing.
type ListedObject struct {
	Key string
	Object
}

// ListPage is a page of a listing: its objects and its common prefixes, each by key in the order of their bytes.
type ListPage struct {
	Objects        []ListedObject
	CommonPrefixes []string
	// Truncated: there is more. The other two say where then: the token for ListObjectsV2, the marker, which is the last result, for ListObjects.
	Truncated             bool
	NextContinuationToken string
	NextMarker            string
}

// List returns a page of the objects that are current, as ListObjectsV2 and ListObjects do. A negative MaxKeys and a token that
// List has not returned are InvalidArgument. A page of no keys is never truncated.
//
// That a common prefix with keys behind StartAfter is listed, but none that begins Marker, is what S3 does, by the tests that
// LocalStack has run against it (test_s3_list_operations.py).
//
// What lies below a common prefix is skipped, not read. For what is put or deleted meanwhile see graveler.List.
func (c *Catalog) List(ctx context.Context, b Bucket, p ListParams) (ListPage, error) {
	page, err := c.list(ctx, b, p)
	if err != nil {
		return ListPage{}, fmt.Errorf("list %s:%q: %w", b, p.Prefix, err)
	}
	return page, nil
}

func (c *Catalog) list(ctx context.Context, b Bucket, p ListParams) (page ListPage, err error) {
	size, err := pageSize(p.MaxKeys)
	if err != nil {
		return ListPage{}, err
	}
	after, err := p.after()
	if err != nil {
		return ListPage{}, err
	}
	last, n := "", 0
	for r, err := range c.listing(ctx, b, p, after, size+1) {
		if err != nil {
			return ListPage{}, err
		}
		if n == size {
			page.Truncated = size > 0
			break
		}
		n++
		if last = string(r.Key); r.CommonPrefix {
			page.CommonPrefixes = append(page.CommonPrefixes, last)
			continue
		}
		o, err := decodeAt(r.Key, *r.Value)
		if err != nil {
			return ListPage{}, err
		}
		page.Objects = append(page.Objects, ListedObject{last, *o})
	}
	if page.Truncated {
		page.NextMarker, page.NextContinuationToken = last, continuationToken(last)
	}
	return page, nil
}

// pageSize returns how many results a page has at most.
func pageSize(given *int) (int, error) {
	switch {
	case given == nil:
		return MaxListed, nil
	case *given < 0:
		return 0, fmt.Errorf("%w: a page of %d results", InvalidArgument, *given)
	}
	return min(*given, MaxListed), nil
}

// after returns the result after which a page begins.
func (p ListParams) after() (string, error) {
	switch {
	case p.Marker != "" && (p.StartAfter != "" || p.ContinuationToken != ""):
		return "", fmt.Errorf("%w: a marker and a start of the other form", InvalidArgument)
	case p.ContinuationToken != "":
		return parseContinuationToken(p.ContinuationToken)
	}
	return p.Marker, nil
}

// listing yields at most limit objects and common prefixes that are greater than after.
func (c *Catalog) listing(ctx context.Context, b Bucket, p ListParams, after string, limit int) iter.Seq2[graveler.Listing, error] {
	return func(yield func(graveler.Listing, error) bool) {
		ref, err := c.ref(ctx, b)
		if err != nil {
			yield(graveler.Listing{}, err)
			return
		}
		o := graveler.ListOptions{Prefix: graveler.Key(p.Prefix), Delimiter: p.Delimiter, After: graveler.Key(max(after, afterReserved)), Limit: limit}
		if after == "" && p.StartAfter != "" {
			o.After = graveler.Key(max(p.StartAfter, afterReserved))
			// The common prefix that StartAfter is in is the first result, if it has a greater key, and List, which compares results, leaves it out.
			if common, ok := commonPrefix(p.StartAfter, p.Prefix, p.Delimiter); ok {
				for _, err := range c.store.List(ctx, b.Repository, ref, graveler.ListOptions{Prefix: graveler.Key(common), After: o.After, Limit: 1}) {
					if !yield(graveler.Listing{Key: graveler.Key(common), CommonPrefix: true}, err) || err != nil {
						return
					}
				}
			}
		}
		for l, err := range c.store.List(ctx, b.Repository, ref, o) {
			if !yield(l, err) {
				return
			}
		}
	}
}

// commonPrefix returns the common prefix that a key belongs to, if there is one.
func commonPrefix(key, prefix, delimiter string) (string, bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok || delimiter == "" {
		return "", false
	}
	i := strings.Index(rest, delimiter)
	if i < 0 {
		return "", false
	}
	return key[:len(prefix)+i+len(delimiter)], true
}

// Objects yields the objects that are current and whose keys start with prefix and are greater than after, by key. An error ends it.
func (c *Catalog) Objects(ctx context.Context, b Bucket, prefix, after string) iter.Seq2[ListedObject, error] {
	return func(yield func(ListedObject, error) bool) {
		for l, err := range c.listing(ctx, b, ListParams{Prefix: prefix}, after, 0) {
			o := ListedObject{Key: string(l.Key)}
			if err == nil {
				var decoded *Object
				if decoded, err = decodeAt(l.Key, *l.Value); err == nil {
					o.Object = *decoded
				}
			}
			if err != nil {
				yield(ListedObject{}, fmt.Errorf("list %s:%q: %w", b, prefix, err))
				return
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}
