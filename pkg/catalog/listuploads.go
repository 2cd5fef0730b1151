// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// ListUploadsParams says which uploads to list. Prefix and Delimiter are as in ListParams.
type ListUploadsParams struct {
	Prefix, Delimiter string
	// KeyMarker leaves out the keys and common prefixes that are not greater, and the common prefix that it is in. With
	// UploadIDMarker the uploads of KeyMarker come first whose IDs are greater; without KeyMarker it is not looked at.
	KeyMarker      string
	UploadIDMarker string
	MaxUploads     int // 0: MaxListed, which is also what a greater one means
}

// UploadPage is a page of uploads: by key, those of a key in the order of their initiation; and common prefixes.
type UploadPage struct {
	Uploads        []Upload
	CommonPrefixes []string
	// Truncated: there is more, behind these two markers, which are the last result.
	Truncated          bool
	NextKeyMarker      string
	NextUploadIDMarker string
}

// ListUploads returns a page of the multipart uploads that are neither completed nor aborted. What lies below a common prefix is
// skipped, not read, and so are the parts.
func (c *Catalog) ListUploads(ctx context.Context, b Bucket, p ListUploadsParams) (UploadPage, error) {
	page, err := c.listUploads(ctx, b, p)
	if err != nil {
		return UploadPage{}, fmt.Errorf("list uploads %s:%q: %w", b, p.Prefix, err)
	}
	return page, nil
}

func (c *Catalog) listUploads(ctx context.Context, b Bucket, p ListUploadsParams) (page UploadPage, err error) {
	size, err := pageSize(given(p.MaxUploads))
	if err != nil {
		return UploadPage{}, err
	}
	ref, err := c.ref(ctx, b)
	if err != nil {
		return UploadPage{}, err
	}
	at, err := newCursor(ctx, reader{c.store, b.Repository, ref}, uploadsArea, p.Prefix, p.from(), size+1)
	defer at.close()
	for n := 0; err == nil && at.valid; n++ {
		if n == size {
			page.Truncated = true
			return page, nil
		}
		common, ok := commonPrefix(at.place.Key, p.Prefix, p.Delimiter)
		if ok {
			page.CommonPrefixes = append(page.CommonPrefixes, common)
			page.NextKeyMarker, page.NextUploadIDMarker = common, ""
			err = at.skip(common)
			continue
		}
		u, failed := DecodeUpload(at.place, *at.item.Value)
		if failed != nil {
			return UploadPage{}, failed
		}
		page.Uploads = append(page.Uploads, u)
		page.NextKeyMarker, page.NextUploadIDMarker = u.Key, u.UploadID
		err = at.advance()
	}
	page.NextKeyMarker, page.NextUploadIDMarker = "", ""
	return page, err
}

// from returns the record behind which the page begins.
func (p ListUploadsParams) from() graveler.Key {
	if _, inCommon := commonPrefix(p.KeyMarker, p.Prefix, p.Delimiter); p.KeyMarker != "" && p.UploadIDMarker != "" && !inCommon {
		return uploadKey(p.KeyMarker, p.UploadIDMarker)
	}
	return startAfter(uploadsArea, p.KeyMarker, p.Prefix, p.Delimiter)
}
