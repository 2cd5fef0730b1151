// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"encoding/base64"
	"strconv"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
)

// Item is an object of a listing. What a listing does not say is not known of the object, the time included.
type Item struct {
	Line   int // in the listing, from 1
	Key    []byte
	Object catalog.Object
}

// field is something that a line can say, by one of its names.
type field int

const (
	keyField field = iota + 1
	exactKeyField
	addressField
	sizeField
	checksumField
	modifiedField
	contentTypeField
	storageClassField
	metadataField
	tagsField
)

// fieldOf returns 0 for a name that is none.
func fieldOf(name string) field {
	switch name {
	case "key":
		return keyField
	case "key_base64":
		return exactKeyField
	case "address", "physical_address":
		return addressField
	case "size":
		return sizeField
	case "checksum", "etag":
		return checksumField
	case "modified_at", "mtime", "last_modified":
		return modifiedField
	case "content_type":
		return contentTypeField
	case "storage_class":
		return storageClassField
	case "metadata":
		return metadataField
	case "tags":
		return tagsField
	}
	return 0
}

// draft is an item that is being put together.
type draft struct {
	item  Item
	exact bool // the key is from key_base64
	said  uint // fields, as bits
}

// mark notes that a field is there. It may be there once, by whatever name.
func (d *draft) mark(f field, name string) error {
	if d.said&(1<<f) != 0 {
		return invalid("%s: it is given twice", name)
	}
	d.said |= 1 << f
	return nil
}

// set takes a text. The empty text says nothing.
func (d *draft) set(f field, name, text string) (err error) {
	if text == "" {
		return nil
	}
	o := &d.item.Object
	switch f {
	case keyField:
		if !d.exact {
			d.item.Key = []byte(text)
		}
	case exactKeyField:
		d.exact = true
		d.item.Key, err = base64.StdEncoding.Strict().DecodeString(text)
	case addressField:
		o.PhysicalAddress = text
	case sizeField:
		o.Size, err = parseSize(text)
	case checksumField:
		o.Checksum = text
	case modifiedField:
		o.ModifiedAt, err = time.Parse(time.RFC3339Nano, text)
	case contentTypeField:
		o.ContentType = text
	case storageClassField:
		o.StorageClass = text
	}
	if err != nil {
		return invalid("%s %q: expected %s", name, text, expected(f))
	}
	return nil
}

// expected says what a field has to look like.
func expected(f field) string {
	switch f {
	case exactKeyField:
		return "base64"
	case sizeField:
		return "a number of bytes"
	case modifiedField:
		return "a time such as 2026-01-31T23:59:59Z"
	case metadataField, tagsField:
		return "an object of texts"
	default:
		return "a text"
	}
}

func parseSize(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err
}

// pair adds to metadata or tags.
func (d *draft) pair(f field, name, value string) error {
	pairs := &d.item.Object.Metadata
	if f == tagsField {
		pairs = &d.item.Object.Tags
	}
	if _, twice := (*pairs)[name]; twice {
		return invalid("%q is given twice", name)
	}
	if *pairs == nil {
		*pairs = map[string]string{}
	}
	(*pairs)[name] = value
	return nil
}

// done returns the item, which must have a key.
func (d *draft) done() (Item, error) {
	if len(d.item.Key) == 0 {
		return Item{}, invalid("it has no key")
	}
	return d.item, nil
}
