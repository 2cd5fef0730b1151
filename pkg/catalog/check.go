// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Limits of an object, in bytes. An object within them fits into the value of an entry.
const (
	MaxAddressBytes  = 16 << 10
	MaxTextBytes     = 1 << 10  // of checksum, content type, storage class and version ID each
	MaxMetadataBytes = 64 << 10 // keys and values together
	MaxTagsBytes     = 64 << 10 // keys and values together
)

// Limits that S3 has for what a user says about an object, which the operations of a Catalog hold it to.
const (
	MaxUserMetadataBytes  = 2 << 10 // keys and values together
	MaxTags               = 10
	MaxTagKeyCharacters   = 128
	MaxTagValueCharacters = 256
)

// maxPairs bounds the number of pairs in a map, since each takes some bytes beside its key and value.
const maxPairs = 1000

func (o *Object) check() error {
	for _, f := range []struct {
		name, text string
		limit      int
	}{
		{"physical address", o.PhysicalAddress, MaxAddressBytes},
		{"checksum", o.Checksum, MaxTextBytes},
		{"content type", o.ContentType, MaxTextBytes},
		{"storage class", o.StorageClass, MaxTextBytes},
		{"version ID", o.VersionID, MaxTextBytes},
	} {
		if err := checkText(f.name, f.text, f.limit); err != nil {
			return err
		}
	}
	if err := checkPairs("metadata", o.Metadata, MaxMetadataBytes); err != nil {
		return err
	}
	if err := checkPairs("tags", o.Tags, MaxTagsBytes); err != nil {
		return err
	}
	if o.Size < 0 {
		return fmt.Errorf("%w: size %d is negative", graveler.ErrInvalidValue, o.Size)
	}
	for name, t := range map[string]time.Time{
		"modification time": o.ModifiedAt, "retain until": o.Lock.RetainUntil, "noncurrent since": o.NoncurrentSince,
	} {
		if !t.IsZero() && !time.Unix(0, t.UnixNano()).Equal(t) {
			return fmt.Errorf("%w: %s: the year %d is out of range", graveler.ErrInvalidValue, name, t.Year())
		}
	}
	return o.Lock.check()
}

func (l Lock) check() error {
	switch {
	case l.Mode < LockNone || l.Mode > LockCompliance:
		return fmt.Errorf("%w: this program does not know lock mode %d", graveler.ErrInvalidValue, l.Mode)
	case (l.Mode == LockNone) != l.RetainUntil.IsZero():
		return fmt.Errorf("%w: a lock needs both a mode and a time until which it holds", graveler.ErrInvalidValue)
	}
	return nil
}

func checkText(name, text string, limit int) error {
	switch {
	case len(text) > limit:
		return fmt.Errorf("%w: %s of %d bytes, at most %d are allowed", graveler.ErrTooLarge, name, len(text), limit)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: %s is not UTF-8: %q", graveler.ErrInvalidValue, name, text)
	}
	return nil
}

func checkPairs(name string, pairs map[string]string, limit int) error {
	if len(pairs) > maxPairs {
		return fmt.Errorf("%w: %s of %d pairs, at most %d are allowed", graveler.ErrTooLarge, name, len(pairs), maxPairs)
	}
	size := 0
	for k, v := range pairs {
		switch size += len(k) + len(v); {
		case k == "":
			return fmt.Errorf("%w: %s: an empty key", graveler.ErrInvalidValue, name)
		case size > limit:
			return fmt.Errorf("%w: %s of more than %d bytes", graveler.ErrTooLarge, name, limit)
		case !utf8.ValidString(k) || !utf8.ValidString(v):
			return fmt.Errorf("%w: %s is not UTF-8: %q=%q", graveler.ErrInvalidValue, name, k, v)
		}
	}
	return nil
}

// checkUser holds metadata and tags to the limits of S3.
func (o *Object) checkUser() error {
	size := 0
	for k, v := range o.Metadata {
		size += len(k) + len(v)
	}
	if size > MaxUserMetadataBytes {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", MetadataTooLarge, size, MaxUserMetadataBytes)
	}
	return checkTags(o.Tags)
}

// tagText are the characters that S3 allows in tags.
var tagText = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`)

func checkTags(tags map[string]string) error {
	if len(tags) > MaxTags {
		return fmt.Errorf("%w: %d tags, at most %d are allowed", InvalidTag, len(tags), MaxTags)
	}
	for k, v := range tags {
		switch {
		case k == "" || utf8.RuneCountInString(k) > MaxTagKeyCharacters:
			return fmt.Errorf("%w: the key %q has not 1 to %d characters", InvalidTag, k, MaxTagKeyCharacters)
		case utf8.RuneCountInString(v) > MaxTagValueCharacters:
			return fmt.Errorf("%w: the value of %q has more than %d characters", InvalidTag, k, MaxTagValueCharacters)
		case !tagText.MatchString(k) || !tagText.MatchString(v):
			return fmt.Errorf("%w: %q=%q: only letters, digits, spaces and _ . : / = + - @ are allowed", InvalidTag, k, v)
		case strings.HasPrefix(k, "aws:"):
			return fmt.Errorf("%w: the key %q: aws: is reserved", InvalidTag, k)
		}
	}
	return nil
}

// checkVersionID refuses what is the ID of no version; "" stands for the current one.
func checkVersionID(id string) error {
	if isNull(id) || isVersionID(id) {
		return nil
	}
	return fmt.Errorf("%w: version ID %q", InvalidArgument, id)
}
