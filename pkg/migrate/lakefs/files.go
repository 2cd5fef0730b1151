// SPDX-License-Identifier: Apache-2.0

package lakefs

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// What can be wrong with a file. The error names it.
var (
	// ErrMissing is returned for a file that is not there; the error is block.ErrNotFound too.
	ErrMissing = errors.New("file of lakeFS is missing")

	// ErrDamaged is returned for a file that is not what its ID or its metarange says, and for an ID that cannot be one.
	ErrDamaged = errors.New("file of lakeFS is damaged")

	// ErrIntact is returned, beside ErrDamaged, for a file whose contents have its ID, so that no other copy of it says anything else.
	ErrIntact = errors.New("it has its ID, and cannot be understood")
)

// folder is where ranges and metaranges are, below the namespace of their repository.
const folder = "_lakefs/"

// Files reads the ranges and metaranges of one repository. It is safe for concurrent use. Each call reads one file whole.
type Files struct {
	storage block.Storage // nil: there is no such folder, and so nothing in it
	name    string        // of the folder, such as its URL, for errors
	at      string        // where that is looked for; "": where the name says
}

// NewFiles reads from a storage that is the folder of a repository: its files are named _lakefs/<ID>. Closing the Files closes
// it. Name is for errors.
func NewFiles(storage block.Storage, name string) *Files { return &Files{storage: storage, name: name} }

// Folder is where the files are looked for, for people.
func (f *Files) Folder() string {
	at := f.at
	if at == "" {
		at = f.name
	}
	at, query, _ := strings.Cut(at, "?")
	if query != "" {
		query = "?" + query
	}
	return strings.TrimRight(at, "/") + "/" + strings.TrimRight(folder, "/") + query
}

// Range is what a metarange says of a range.
type Range struct {
	ID          string
	First, Last []byte // keys
	Count       int64  // of records, at least 1
}

// Record is an entry of a range.
type Record struct {
	Key      []byte
	Identity []byte // which lakeFS computed
	Data     []byte // see Value
}

// Metarange returns the ranges of a tree, ascending; "" is the empty tree. Memory: about 250 bytes a range.
func (f *Files) Metarange(ctx context.Context, id string) ([]Range, error) {
	if id == "" {
		return nil, nil
	}
	records, err := f.read(ctx, "metarange", id)
	if err != nil {
		return nil, err
	}
	ranges := make([]Range, len(records))
	for i, r := range records {
		if ranges[i], err = parseRange(r); err == nil && i > 0 && bytes.Compare(ranges[i-1].Last, ranges[i].First) >= 0 {
			err = fmt.Errorf("it begins at %q, where the one before ends at %q", ranges[i].First, ranges[i-1].Last)
		}
		if err != nil {
			return nil, f.intact("metarange", id, fmt.Errorf("range %q: %w", r.Key, err))
		}
	}
	return ranges, nil
}

// parseRange reads the record of a range: its key is that of the last record, its identity is the ID.
func parseRange(r Record) (Range, error) {
	m := &lakefspb.RangeData{}
	if err := unmarshal(r.Data, m); err != nil {
		return Range{}, err
	}
	switch {
	case !isID(string(r.Identity)):
		return Range{}, fmt.Errorf("ID %q", r.Identity)
	case !bytes.Equal(m.Last, r.Key):
		return Range{}, fmt.Errorf("its last key is said to be %q", m.Last)
	case bytes.Compare(m.First, m.Last) > 0:
		return Range{}, fmt.Errorf("its first key %q is behind its last", m.First)
	case m.Count < 1:
		return Range{}, fmt.Errorf("it is said to have %d records", m.Count)
	}
	return Range{ID: string(r.Identity), First: m.First, Last: m.Last, Count: m.Count}, nil
}

// Range returns the records of a range, ascending, after making sure that it is the one that r describes. They share memory:
// about the size of the file without compression.
func (f *Files) Range(ctx context.Context, r Range) ([]Record, error) {
	records, err := f.read(ctx, "range", r.ID)
	if err != nil {
		return nil, err
	}
	var first, last []byte
	if n := len(records); n > 0 {
		first, last = records[0].Key, records[n-1].Key
	}
	if int64(len(records)) != r.Count || !bytes.Equal(first, r.First) || !bytes.Equal(last, r.Last) {
		return nil, f.intact("range", r.ID, fmt.Errorf("it has %d records from %q to %q, while a metarange that names it says %d from %q to %q",
			len(records), first, last, r.Count, r.First, r.Last))
	}
	return records, nil
}

// File is one that there is.
type File struct {
	Name string // below _lakefs/
	ID   string // of a range or metarange, "" of what lakeFS keeps beside them, such as settings
	// Damage is ErrDamaged where the size says already that the file of that ID is not whole. Other damage is found by reading it.
	Damage error
}

// List yields the files that there are, ascending. Names that no block.Storage has are left out.
func (f *Files) List(ctx context.Context) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		if f.storage == nil {
			return
		}
		for info, err := range f.storage.List(ctx, folder) {
			if err != nil {
				yield(File{}, fmt.Errorf("list the files of %s: %w", f.name, err))
				return
			}
			file := File{Name: strings.TrimPrefix(info.Name, folder)}
			if isID(file.Name) {
				file.ID = file.Name
				if err := checkSize(info.Size); err != nil {
					file.Damage = f.damaged("file", file.ID, err)
				}
			}
			if !yield(file, nil) {
				return
			}
		}
	}
}

// Close closes the storage.
func (f *Files) Close() error {
	if f.storage == nil {
		return nil
	}
	return f.storage.Close()
}

// read returns the records of a file of a kind, "range" or "metarange", after computing its ID.
func (f *Files) read(ctx context.Context, kind, id string) ([]Record, error) {
	if !isID(id) {
		return nil, f.damaged(kind, id, errors.New("this is no ID: 64 lower-case hexadecimal digits are"))
	}
	data, err := f.get(ctx, folder+id)
	if errors.Is(err, block.ErrNotFound) {
		return nil, &missingError{fmt.Sprintf("%s: %v: it is not in %s", f.place(kind, id), ErrMissing, f.Folder()), err}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.place(kind, id), err)
	}
	t, err := readTable(data)
	if err != nil {
		return nil, f.damaged(kind, id, err)
	}
	if t.kind != kind+"s" {
		return nil, f.damaged(kind, id, fmt.Errorf("it is of type %q", t.kind))
	}
	if t.id != id {
		return nil, f.damaged(kind, id, fmt.Errorf("its contents have the ID %s", t.id))
	}
	return t.records, nil
}

func (f *Files) get(ctx context.Context, name string) ([]byte, error) {
	if f.storage == nil {
		return nil, block.ErrNotFound
	}
	return f.storage.Get(ctx, name)
}

// damaged says what is wrong with which file.
func (f *Files) damaged(kind, id string, reason error) error {
	return fmt.Errorf("%s: %w: %w", f.place(kind, id), ErrDamaged, reason)
}

// intact says what is wrong with a file that has its ID.
func (f *Files) intact(kind, id string, reason error) error {
	return f.damaged(kind, id, fmt.Errorf("%w: %w", ErrIntact, reason))
}

// missingError is ErrMissing with what the storage said, whose text would name the file once more.
type missingError struct {
	text string
	err  error
}

func (e *missingError) Error() string   { return e.text }
func (e *missingError) Unwrap() []error { return []error{ErrMissing, e.err} }

// place names a file.
func (f *Files) place(kind, id string) string {
	if !isID(id) {
		id = fmt.Sprintf("%q", id)
	}
	return kind + " " + strings.TrimRight(f.name, "/") + "/" + folder + id
}

func isID(id string) bool {
	return len(id) == hex.EncodedLen(32) && strings.Trim(id, "0123456789abcdef") == ""
}
