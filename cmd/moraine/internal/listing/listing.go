// SPDX-License-Identifier: Apache-2.0

// Package listing reads listings of objects: files with one object per line.
//
// There are three formats. JSONL (jsonl.go) has one JSON object per line; CSV (csv.go) has a header that names its columns;
// S3Inventory (inventory.go) is a data file of Amazon S3 Inventory in CSV, whose columns the inventory's manifest names. The
// first two say the same things by the same names (item.go). Any of them may be compressed with gzip (lines.go).
//
// A [Reader] reads a line at a time and is strict: what it does not understand is an error that matches graveler.ErrInvalidValue
// and names the line, never a line left out. Lines have a limit, so that memory is bounded whatever the file holds, and no file
// makes it panic.
package listing

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Format is the format of a listing.
type Format string

const (
	JSONL       Format = "jsonl"
	CSV         Format = "csv"
	S3Inventory Format = "s3-inventory"
)

// FormatOf tells the format of a file by how its name ends, where that is clear: .csv.gz is not, since the data files of inventories end so.
func FormatOf(name string) (Format, bool) {
	switch path.Ext(strings.TrimSuffix(name, ".gz")) {
	case ".jsonl", ".ndjson":
		return JSONL, true
	case ".csv":
		return CSV, !strings.HasSuffix(name, ".gz")
	}
	return "", false
}

// Options say how to read a listing.
type Options struct {
	Format Format
	// Schema names the columns of an inventory, as the fileSchema of its manifest does; "": DefaultSchema.
	Schema string
}

// Reader reads the objects of a listing. It belongs to one goroutine.
type Reader struct {
	// Of an inventory: what was left out so far. Noncurrent versions may be delete markers too.
	DeleteMarkers, Noncurrent int

	lines *lines
	parse func(line []byte) (Item, error)
}

// NewReader returns a reader of a listing, of which it reads the header if the format has one.
func NewReader(r io.Reader, o Options) (*Reader, error) {
	l, err := newLines(r)
	if err != nil {
		return nil, err
	}
	reader := &Reader{lines: l}
	switch o.Format {
	case JSONL:
		reader.parse = parseJSON
	case CSV:
		columns, err := readHeader(l)
		if err != nil {
			return nil, err
		}
		reader.parse = columns.parse
	case S3Inventory:
		s, err := parseSchema(o.Schema)
		if err != nil {
			return nil, err
		}
		reader.parse = s.parse
	default:
		return nil, fmt.Errorf("%w: format %q", graveler.ErrInvalidValue, o.Format)
	}
	return reader, nil
}

// Next returns the next object. io.EOF is the proper end; after an error there is no more.
func (r *Reader) Next() (Item, error) {
	for {
		line, err := r.lines.next()
		if err != nil {
			return Item{}, err
		}
		item, err := r.parse(line)
		switch {
		case err == errDeleteMarker:
			r.DeleteMarkers++
		case err == errNoncurrent:
			r.Noncurrent++
		case err != nil:
			return Item{}, r.lines.failed(err)
		default:
			item.Line = r.lines.number
			return item, nil
		}
	}
}

// invalid is an error of what a line says.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{graveler.ErrInvalidValue}, args...)...)
}
