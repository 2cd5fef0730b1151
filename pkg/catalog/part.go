// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/catalog/catalogpb"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// Sizes of parts, in bytes; the last part of an object may be smaller.
const (
	MinPartBytes = 5 << 20
	MaxPartBytes = 5 << 30
)

// partsAtOnce is how many parts one transaction removes.
const partsAtOnce = 900

// Part is a part of a multipart upload.
type Part struct {
	Number          int // 1 to MaxParts
	PhysicalAddress string
	Size            int64
	Checksum        string
	ModifiedAt      time.Time
}

func (p *Part) check() error {
	switch {
	case p.Number < 1 || p.Number > MaxParts:
		return fmt.Errorf("%w: part number %d is not between 1 and %d", InvalidArgument, p.Number, MaxParts)
	case p.Size > MaxPartBytes:
		return fmt.Errorf("%w: a part of %d bytes, at most %d are allowed", EntityTooLarge, p.Size, int64(MaxPartBytes))
	}
	o := Object{PhysicalAddress: p.PhysicalAddress, Size: p.Size, Checksum: p.Checksum, ModifiedAt: p.ModifiedAt}
	return o.check()
}

// value returns the value of the part's entry. Its identity is SHA-256 of a tag and all that it holds, in the form of Object.identity.
func (p *Part) value(key string) (graveler.Value, error) {
	o := Object{PhysicalAddress: p.PhysicalAddress, Size: p.Size, Checksum: p.Checksum, ModifiedAt: p.ModifiedAt}
	f := fields(nil).text("moraine part 1").text(key).content(&o)
	return encodeRecord(&catalogpb.PartData{Key: []byte(key), PhysicalAddress: p.PhysicalAddress, Size: p.Size, Checksum: p.Checksum, ModifiedAt: nanoseconds(p.ModifiedAt)}, f)
}

// decodePart returns a part, and the key of its upload.
func decodePart(number int, v graveler.Value) (Part, string, error) {
	m := &catalogpb.PartData{}
	if err := proto.Unmarshal(v.Data, m); err != nil {
		return Part{}, "", fmt.Errorf("decode part %d: %w: %w", number, graveler.ErrInvalidValue, err)
	}
	return Part{number, m.PhysicalAddress, m.Size, m.Checksum, timeOf(m.ModifiedAt)}, string(m.Key), nil
}

// PutPart adds a part to an upload, or replaces the one that has its number, which it returns then: nobody needs its bytes any
// more. ModifiedAt is now where it is zero.
func (c *Catalog) PutPart(ctx context.Context, b Bucket, key, uploadID string, p Part) (put Part, replaced *Part, err error) {
	if p.ModifiedAt.IsZero() {
		p.ModifiedAt = c.now().UTC()
	}
	if err = checkUpload(key, uploadID); err == nil {
		err = p.check()
	}
	if err == nil {
		err = c.change(ctx, b, func(ctx context.Context, tx *graveler.Transaction, _ settings) (int, error) {
			replaced, err = putPart(ctx, tx, key, uploadID, p)
			return 1, err
		})
	}
	if err != nil {
		return Part{}, nil, describe(err, fmt.Sprintf("put part %d of upload %s of", p.Number, uploadID), b, key)
	}
	return p, replaced, nil
}

func putPart(ctx context.Context, tx *graveler.Transaction, key, uploadID string, p Part) (*Part, error) {
	place := partKey(uploadID, p.Number)
	before, err := tx.Get(ctx, place, uploadKey(key, uploadID))
	if err != nil {
		return nil, err
	}
	u, err := loadUpload(ctx, tx, key, uploadID)
	if err != nil {
		return nil, err
	}
	v, err := p.value(key)
	if err != nil {
		return nil, err
	}
	tx.Set(place, v)
	if before[0] == nil {
		return nil, nil
	}
	old, _, err := decodePart(p.Number, *before[0])
	if err != nil {
		return nil, err
	}
	u.replaced++
	changed, err := u.value()
	if err == nil {
		tx.Set(u.place(), changed)
	}
	return &old, err
}

// parts yields the parts of an upload whose numbers are greater than after.
func parts(ctx context.Context, r Reader, uploadID string, after, limit int) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		for l, err := range r.List(ctx, graveler.ListOptions{Prefix: graveler.Key(partsPrefix(uploadID)), After: partKey(uploadID, after), Limit: limit}) {
			var at Place
			var p Part
			if err == nil {
				at, err = ParseKey(l.Key)
			}
			if err == nil {
				p, _, err = decodePart(at.Part, *l.Value)
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// ListPartsParams says which parts to list.
type ListPartsParams struct {
	PartNumberMarker int // leaves out those that are not greater
	MaxParts         int // 0: MaxListed, which is also what a greater one means
}

// PartPage is a page of the parts of an upload.
type PartPage struct {
	Upload               Upload
	Parts                []Part
	Truncated            bool // there are parts behind NextPartNumberMarker, the last number of the page
	NextPartNumberMarker int
}

// ListParts returns a page of the parts of an upload, by number.
func (c *Catalog) ListParts(ctx context.Context, b Bucket, key, uploadID string, p ListPartsParams) (PartPage, error) {
	page, err := c.listParts(ctx, b, key, uploadID, p)
	return page, describe(err, "list parts of upload "+uploadID+" of", b, key)
}

func (c *Catalog) listParts(ctx context.Context, b Bucket, key, uploadID string, p ListPartsParams) (page PartPage, err error) {
	size, err := pageSize(given(p.MaxParts))
	switch {
	case err != nil:
		return PartPage{}, err
	case p.PartNumberMarker < 0:
		return PartPage{}, fmt.Errorf("%w: part number marker %d", InvalidArgument, p.PartNumberMarker)
	}
	if err := checkUpload(key, uploadID); err != nil {
		return PartPage{}, err
	}
	ref, err := c.ref(ctx, b)
	if err != nil {
		return PartPage{}, err
	}
	r := reader{c.store, b.Repository, ref}
	if page.Upload, err = loadUpload(ctx, r, key, uploadID); err != nil {
		return PartPage{}, err
	}
	for part, err := range parts(ctx, r, uploadID, min(p.PartNumberMarker, MaxParts), size+1) {
		if err != nil {
			return PartPage{}, err
		}
		if len(page.Parts) == size {
			page.Truncated, page.NextPartNumberMarker = true, page.Parts[size-1].Number
			break
		}
		page.Parts = append(page.Parts, part)
	}
	return page, nil
}

// given returns the size of a page of which 0 says nothing.
func given(size int) *int {
	if size == 0 {
		return nil
	}
	return &size
}

// removeParts removes the parts that an upload has left behind that is no more, and returns them.
func (c *Catalog) removeParts(ctx context.Context, b Bucket, key, uploadID string) (removed []Part, err error) {
	ref, err := c.ref(ctx, b)
	if err != nil {
		return nil, err
	}
	for {
		var batch []Part
		for p, err := range parts(ctx, reader{c.store, b.Repository, ref}, uploadID, 0, partsAtOnce) {
			if err != nil {
				return removed, err
			}
			batch = append(batch, p)
		}
		if len(batch) == 0 {
			return removed, nil
		}
		back := false // by a reset
		err := c.change(ctx, b, func(ctx context.Context, tx *graveler.Transaction, _ settings) (int, error) {
			found, err := tx.Get(ctx, uploadKey(key, uploadID))
			if back = err == nil && found[0] != nil; err != nil || back {
				return 0, err
			}
			for _, p := range batch {
				tx.Delete(partKey(uploadID, p.Number))
			}
			return len(batch), nil
		})
		if err != nil || back {
			return removed, err
		}
		removed = append(removed, batch...)
	}
}
