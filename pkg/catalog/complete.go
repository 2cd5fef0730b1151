// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// CompletedPart names a part that an object is made of.
type CompletedPart struct {
	Number int
	ETag   string // the checksum of the part, with or without quotes
}

// Content is the bytes of an object that was put together.
type Content struct {
	PhysicalAddress string
	Checksum        string // "": MultipartETag of the parts
}

// Completed is what an upload has become.
type Completed struct {
	Object Object
	// Unused are the parts that were not among those that the object is made of.
	Unused []Part
}

// CompleteUpload makes the object of an upload out of some of its parts, in the order of their numbers (InvalidPartOrder), each
// as it was last put (InvalidPart), all but the last of MinPartBytes or more (EntityTooSmall). The conditions are those of Put.
// Its size is the sum of the parts' sizes, and its time of modification that of the initiation, as in S3, unless an older version
// stands in the way; where versions are kept it is the newest one.
//
// assemble puts the bytes together; it is called again where a part was replaced meanwhile, and what it has made is not needed
// where CompleteUpload returns an error. The object appears and the upload goes in one step; of several completions and aborts at
// the same time one takes place, and the others are NoSuchUpload. The records of many parts are removed after that: those that an
// interruption leaves, and those of parts that were added at that very moment, are removed by Mend.
func (c *Catalog) CompleteUpload(ctx context.Context, b Bucket, key, uploadID string, list []CompletedPart, assemble func(ctx context.Context, u Upload, parts []Part) (Content, error), conditions Conditions) (Completed, error) {
	done, err := c.complete(ctx, b, key, uploadID, list, assemble, conditions)
	return done, describe(err, "complete upload "+uploadID+" of", b, key)
}

// errPartReplaced: a part of an upload was replaced after the parts were read.
var errPartReplaced = errors.New("a part was replaced")

func (c *Catalog) complete(ctx context.Context, b Bucket, key, uploadID string, list []CompletedPart, assemble func(ctx context.Context, u Upload, parts []Part) (Content, error), conditions Conditions) (Completed, error) {
	if err := checkUpload(key, uploadID); err != nil {
		return Completed{}, err
	}
	for {
		u, chosen, unused, err := c.choose(ctx, b, key, uploadID, list)
		if err != nil {
			return Completed{}, err
		}
		content, err := assemble(ctx, u, chosen)
		if err != nil {
			return Completed{}, err
		}
		o, err := u.completed(content, chosen)
		if err != nil {
			return Completed{}, err
		}
		together := append(unused[:len(unused):len(unused)], chosen...)
		if len(together) > partsAtOnce {
			together = nil
		}
		put, err := c.completeWith(ctx, b, u, o, together, conditions)
		if errors.Is(err, graveler.ErrTooLarge) && together != nil {
			together = nil
			put, err = c.completeWith(ctx, b, u, o, nil, conditions)
		}
		if errors.Is(err, errPartReplaced) {
			continue
		}
		if err != nil {
			return Completed{}, err
		}
		if together == nil {
			_, _ = c.removeParts(ctx, b, key, uploadID) // the object is there: what is left is for Mend
		}
		return Completed{put, unused}, nil
	}
}

// choose returns an upload, the parts that are listed, and the others.
func (c *Catalog) choose(ctx context.Context, b Bucket, key, uploadID string, list []CompletedPart) (u Upload, chosen, unused []Part, err error) {
	ref, err := c.ref(ctx, b)
	if err != nil {
		return Upload{}, nil, nil, err
	}
	r := reader{c.store, b.Repository, ref}
	if u, err = loadUpload(ctx, r, key, uploadID); err != nil {
		return Upload{}, nil, nil, err
	}
	chosen, unused, err = chooseParts(ctx, r, uploadID, list)
	if errors.Is(err, InvalidPart) { // or the upload has ended, and its parts have gone with it
		if _, ended := loadUpload(ctx, r, key, uploadID); ended != nil {
			err = ended
		}
	}
	return u, chosen, unused, err
}

func chooseParts(ctx context.Context, r reader, uploadID string, list []CompletedPart) (chosen, unused []Part, err error) {
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("%w: a completion needs at least one part", MalformedXML)
	}
	for i := range list[1:] {
		if list[i].Number >= list[i+1].Number {
			return nil, nil, fmt.Errorf("%w: part %d before part %d", InvalidPartOrder, list[i].Number, list[i+1].Number)
		}
	}
	rest := list
	for p, err := range parts(ctx, r, uploadID, 0, 0) {
		if err != nil {
			return nil, nil, err
		}
		switch {
		case len(rest) == 0 || rest[0].Number > p.Number:
			unused = append(unused, p)
			continue
		case rest[0].Number < p.Number:
			return nil, nil, fmt.Errorf("%w: there is no part %d", InvalidPart, rest[0].Number)
		case strings.Trim(rest[0].ETag, `"`) != strings.Trim(p.Checksum, `"`):
			return nil, nil, fmt.Errorf("%w: part %d is %q, not %q", InvalidPart, p.Number, p.Checksum, rest[0].ETag)
		}
		chosen, rest = append(chosen, p), rest[1:]
	}
	if len(rest) > 0 {
		return nil, nil, fmt.Errorf("%w: there is no part %d", InvalidPart, rest[0].Number)
	}
	for _, p := range chosen[:len(chosen)-1] {
		if p.Size < MinPartBytes {
			return nil, nil, fmt.Errorf("%w: part %d has %d bytes, at least %d are needed before the last", EntityTooSmall, p.Number, p.Size, MinPartBytes)
		}
	}
	return chosen, unused, nil
}

// completed returns the object that the upload becomes.
func (u *Upload) completed(content Content, parts []Part) (Object, error) {
	o := u.Object
	o.PhysicalAddress, o.Checksum, o.ModifiedAt = content.PhysicalAddress, content.Checksum, u.Initiated
	for _, p := range parts {
		o.Size += p.Size
	}
	if o.Checksum != "" {
		return o, nil
	}
	etag, err := MultipartETag(parts)
	o.Checksum = etag
	return o, err
}

// completeWith puts the object in the place of the upload and of some of its parts.
func (c *Catalog) completeWith(ctx context.Context, b Bucket, u Upload, o Object, parts []Part, conditions Conditions) (put Object, err error) {
	err = c.change(ctx, b, func(ctx context.Context, tx *graveler.Transaction, s settings) (int, error) {
		now, err := loadUpload(ctx, tx, u.Key, u.UploadID)
		if err != nil {
			return 0, err
		}
		if now.replaced != u.replaced {
			return 0, errPartReplaced
		}
		if put, err = putIn(ctx, tx, s, c.now(), u.Key, o, conditions); err != nil {
			return 0, err
		}
		tx.Delete(u.place())
		for _, p := range parts {
			tx.Delete(partKey(u.UploadID, p.Number))
		}
		return 2 + len(parts), nil
	})
	return put, err
}

// MultipartETag returns the ETag that S3 gives to an object of parts whose checksums are MD5 sums in hexadecimal digits: the MD5
// sum of these sums, and the number of parts. Other checksums are graveler.ErrInvalidValue.
func MultipartETag(parts []Part) (string, error) {
	h := md5.New()
	for _, p := range parts {
		sum, err := hex.DecodeString(strings.Trim(p.Checksum, `"`))
		if err != nil || len(sum) != md5.Size {
			return "", fmt.Errorf("%w: the checksum %q of part %d is no MD5 sum", graveler.ErrInvalidValue, p.Checksum, p.Number)
		}
		h.Write(sum)
	}
	return fmt.Sprintf("%x-%d", h.Sum(nil), len(parts)), nil
}
