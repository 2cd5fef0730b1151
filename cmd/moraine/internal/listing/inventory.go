// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// DefaultSchema is the schema of an inventory where nobody says otherwise.
const DefaultSchema = "Bucket, Key, Size, LastModifiedDate, ETag"

// What Reader counts, and leaves out.
var (
	errDeleteMarker = errors.New("delete marker")
	errNoncurrent   = errors.New("noncurrent version")
)

// etag is the form of ETags in S3, of objects uploaded in parts too. It keeps a column of another kind from being taken for one.
var etag = regexp.MustCompile(`^[0-9a-fA-F]{32}(-[0-9]+)?$`)

// schema names the columns of an S3 Inventory data file in CSV, which has no header. Keys are URL-encoded in it, with "+" for a space.
type schema struct {
	names []string
	cells []string // memory for the cells of a line
}

// parseSchema reads a list of names of columns.
func parseSchema(text string) (*schema, error) {
	if text == "" {
		text = DefaultSchema
	}
	s := &schema{}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		switch {
		case !isColumn(name):
			return nil, invalid("schema: unknown column %q (a dash stands for a column that is not read)", name)
		case name != "-" && slices.Contains(s.names, name):
			return nil, invalid("schema: %s is given twice", name)
		}
		s.names = append(s.names, name)
	}
	for _, need := range []string{"Bucket", "Key"} {
		if !slices.Contains(s.names, need) {
			return nil, invalid("schema: %s is missing", need)
		}
	}
	if slices.Contains(s.names, "VersionId") && !slices.Contains(s.names, "IsLatest") {
		return nil, invalid("schema: VersionId without IsLatest does not tell which versions are current")
	}
	return s, nil
}

// isColumn knows the fields of S3 Inventory. A dash stands for a field that is not among them.
func isColumn(name string) bool {
	switch name {
	case "Bucket", "Key", "IsLatest", "IsDeleteMarker", "Size", "LastModifiedDate", "ETag", "StorageClass":
		return true
	case "VersionId", "IsMultipartUploaded", "ReplicationStatus", "EncryptionStatus", "ObjectLockRetainUntilDate", "ObjectLockMode", "ObjectLockLegalHoldStatus",
		"IntelligentTieringAccessTier", "BucketKeyStatus", "ChecksumAlgorithm", "ObjectAccessControlList", "ObjectOwner", "-":
		return true // and not read
	}
	return false
}

func (s *schema) parse(line []byte) (item Item, err error) {
	if s.cells, err = splitCells(string(line), s.cells[:0]); err != nil {
		return Item{}, err
	}
	if len(s.cells) != len(s.names) {
		return Item{}, invalid("%d cells, and the schema names %d columns (the fileSchema of the manifest goes into --schema)", len(s.cells), len(s.names))
	}
	latest, err := s.flag("IsLatest", true)
	if err != nil {
		return Item{}, err
	}
	marker, err := s.flag("IsDeleteMarker", false)
	switch {
	case err != nil:
		return Item{}, err
	case !latest:
		return Item{}, errNoncurrent
	case marker:
		return Item{}, errDeleteMarker
	}
	return s.item()
}

// flag reads a column of truth values; without the column it is what it is otherwise.
func (s *schema) flag(name string, otherwise bool) (bool, error) {
	i := slices.Index(s.names, name)
	if i < 0 {
		return otherwise, nil
	}
	if s.cells[i] != "true" && s.cells[i] != "false" {
		return false, invalid("%s %q: expected true or false", name, s.cells[i])
	}
	return s.cells[i] == "true", nil
}

func (s *schema) item() (item Item, err error) {
	o, bucket := &item.Object, ""
	for i, name := range s.names {
		cell, wrong := s.cells[i], ""
		switch name {
		case "Bucket":
			if bucket = cell; bucket == "" {
				wrong = "a name"
			}
		case "Key":
			key, err := url.QueryUnescape(cell)
			if item.Key = []byte(key); err != nil || key == "" {
				wrong = "a URL-encoded key"
			}
		case "Size":
			if o.Size, err = parseSize(cell); err != nil {
				wrong = expected(sizeField)
			}
		case "LastModifiedDate":
			if o.ModifiedAt, err = time.Parse(time.RFC3339Nano, cell); err != nil {
				wrong = expected(modifiedField)
			}
		case "ETag":
			if o.Checksum = cell; cell != "" && !etag.MatchString(cell) {
				wrong = "an ETag"
			}
		case "StorageClass":
			o.StorageClass = cell
		}
		if wrong != "" {
			return Item{}, invalid("%s %q: expected %s", name, cell, wrong)
		}
	}
	o.PhysicalAddress = "s3://" + bucket + "/" + string(item.Key)
	return item, nil
}
