// SPDX-License-Identifier: Apache-2.0

package lakefs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strconv"

	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// table is a range or metarange file that was read.
type table struct {
	records []Record
	kind    string // as the file says: ranges, metaranges
	id      string // computed from the records and the kind
}

// readTable reads an SSTable. The records share memory with each other, but not with data.
func readTable(data []byte) (t table, err error) {
	// The reader panics at some files whose parts contradict each other. Checksums keep it from most, but whoever can write a
	// file can make them right.
	defer func() {
		if p := recover(); p != nil {
			t, err = table{}, fmt.Errorf("it makes no sense as an SSTable: %v", p)
		}
	}()
	if err := checkSize(int64(len(data))); err != nil {
		return table{}, err
	}
	var file objstorage.MemObj
	if err := file.Write(data); err != nil {
		return table{}, err
	}
	reader, err := sstable.NewReader(context.Background(), &file, sstable.ReaderOptions{})
	if err != nil {
		return table{}, noTable(err)
	}
	defer func() { err = firstOf(err, reader.Close()) }()
	t.kind = reader.UserProperties["type"]
	id := newFileID()
	if t.records, err = readRecords(reader, id); err != nil {
		return table{}, noTable(err)
	}
	t.id = id.sum(t.kind)
	return t, nil
}

// minTableBytes is what the shortest footer of an SSTable takes.
const minTableBytes = 48

// checkSize returns an error for a size that no SSTable has.
func checkSize(bytes int64) error {
	switch {
	case bytes == 0:
		return errors.New("it is empty (0 bytes)")
	case bytes < minTableBytes:
		return fmt.Errorf("it is cut short, to %d bytes", bytes)
	}
	return nil
}

// noTable introduces what the library says, which takes the file for one of a database.
func noTable(err error) error { return fmt.Errorf("it is not a whole SSTable: %w", err) }

// firstOf returns the first error: closing repeats what reading said.
func firstOf(err, closing error) error {
	if err != nil {
		return err
	}
	return closing
}

// readRecords reads all records, and adds them to the ID.
func readRecords(reader *sstable.Reader, id *fileID) (records []Record, err error) {
	it, err := reader.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, err
	}
	defer func() { err = firstOf(err, it.Close()) }()
	var memory arena
	for kv := it.First(); kv != nil; kv = it.Next() {
		stored, _, err := kv.Value(nil)
		if err != nil {
			return nil, err
		}
		if kv.Kind() != sstable.InternalKeyKindSet {
			return nil, fmt.Errorf("record %q is of kind %s", kv.K.UserKey, kv.Kind())
		}
		if n := len(records); n > 0 && bytes.Compare(records[n-1].Key, kv.K.UserKey) >= 0 {
			return nil, fmt.Errorf("record %q comes behind %q", kv.K.UserKey, records[n-1].Key)
		}
		id.add(kv.K.UserKey)
		id.add(stored)
		value := memory.keep(stored)
		r := Record{Key: memory.keep(kv.K.UserKey)}
		var ok bool
		if r.Identity, value, ok = cutBytes(value); ok {
			r.Data, _, ok = cutBytes(value) // what may follow is for later versions
		}
		if !ok {
			return nil, fmt.Errorf("the value of record %q is cut short", r.Key)
		}
		records = append(records, r)
	}
	return records, it.Error()
}

// cutBytes cuts a string of bytes off that has its length before it, as a signed varint.
func cutBytes(b []byte) (s, rest []byte, ok bool) {
	length, n := binary.Varint(b)
	if n <= 0 || length < 0 || length > int64(len(b)-n) {
		return nil, nil, false
	}
	end := n + int(length)
	return b[n:end:end], b[end:], true
}

// arena keeps copies of many small strings in few pieces of memory.
type arena []byte

const arenaPiece = 256 << 10

func (a *arena) keep(b []byte) []byte {
	if cap(*a)-len(*a) < len(b) {
		*a = make([]byte, 0, max(arenaPiece, len(b)))
	}
	start := len(*a)
	*a = append(*a, b...)
	return (*a)[start:len(*a):len(*a)]
}

// fileID computes the ID of a file: SHA-256 of the key and the stored value of each record, each with its length in decimal
// digits before and a '|' behind it, and then of the pair type=<kind> in the encoding that lakeFS has for identities.
//
// Source: lakeFS, format of v0.80 and v1.84.
type fileID struct {
	hash.Hash
	memory []byte // for what is written
}

func newFileID() *fileID { return &fileID{Hash: sha256.New()} }

func (h *fileID) add(b []byte) {
	h.memory = strconv.AppendInt(h.memory[:0], int64(len(b)), 10)
	h.memory = append(h.memory, b...)
	h.memory = append(h.memory, '|')
	h.Write(h.memory)
}

// sum ends the ID. In that encoding a map is 4, the number of its pairs, and its keys and values; a number is 2, 8 and 8 bytes,
// the most significant first; a string is 1, its length and its bytes.
func (h *fileID) sum(kind string) string {
	h.Write([]byte{4})
	h.number(1)
	h.text("type")
	h.text(kind)
	return hex.EncodeToString(h.Sum(nil))
}

func (h *fileID) number(n int) {
	h.Write(binary.BigEndian.AppendUint64([]byte{2, 8}, uint64(n)))
}

func (h *fileID) text(s string) {
	h.Write([]byte{1})
	h.number(len(s))
	h.Write([]byte(s))
}
