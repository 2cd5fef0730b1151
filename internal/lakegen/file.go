// SPDX-License-Identifier: Apache-2.0

package lakegen

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"

	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// The types that a file says it is of.
const (
	ranges     = "ranges"
	metaranges = "metaranges"
)

// RangeFile returns the ID and the bytes of a range with records in ascending order.
func RangeFile(records []lakefs.Record) (id string, data []byte, err error) {
	return file(ranges, records)
}

// MetarangeFile returns the ID and the bytes of a metarange; a record stands for a range.
func MetarangeFile(records []lakefs.Record) (id string, data []byte, err error) {
	return file(metaranges, records)
}

func file(kind string, records []lakefs.Record) (id string, data []byte, err error) {
	var first, last []byte
	if len(records) > 0 {
		first, last = records[0].Key, records[len(records)-1].Key
	}
	size := 0
	for _, r := range records {
		size += len(r.Key) + len(r.Identity) + len(r.Data)
	}
	var memory objstorage.MemObj
	w := sstable.NewWriter(&memory, sstable.WriterOptions{
		TableFormat: sstable.TableFormatPebblev1,
		Compression: block.SnappyCompression,
		MergerName:  "pebble.concatenate",
		BlockPropertyCollectors: properties([]property{
			{"type", kind}, {"min_key", string(first)}, {"max_key", string(last)}, {"count", strconv.Itoa(len(records))}, {"estimated_size_bytes", strconv.Itoa(size)},
		}),
	})
	hash := sha256.New()
	var stored []byte
	for _, r := range records {
		stored = appendBytes(appendBytes(stored[:0], r.Identity), r.Data)
		if err := w.Set(r.Key, stored); err != nil {
			return "", nil, errors.Join(fmt.Errorf("record %q: %w", r.Key, err), w.Close())
		}
		fmt.Fprintf(hash, "%d%s|%d%s|", len(r.Key), r.Key, len(stored), stored)
	}
	if err := w.Close(); err != nil {
		return "", nil, err
	}
	fmt.Fprintf(hash, "\x04%s%s%s", number(1), text("type"), text(kind))
	data, err = asRocksDB(memory.Data())
	return fmt.Sprintf("%x", hash.Sum(nil)), data, err
}

func appendBytes(to, b []byte) []byte {
	return append(binary.AppendVarint(to, int64(len(b))), b...)
}

// The encoding that lakeFS has for what it computes IDs of.
func number(n int) string  { return "\x02\x08" + string(binary.BigEndian.AppendUint64(nil, uint64(n))) }
func text(s string) string { return "\x01" + number(len(s)) + s }

// What a file ends with: the version of its format, and a name for the format.
const (
	pebbleEnd = "\x01\x00\x00\x00\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3"
	rocksEnd  = "\x02\x00\x00\x00\xf7\xcf\xf4\x85\xb7\x41\xe2\x88"
)

// asRocksDB makes of a file in the first format of Pebble one in the second of RocksDB, which the writer does not give
// properties. Without properties of blocks the two differ in their end.
func asRocksDB(data []byte) ([]byte, error) {
	body, ok := bytes.CutSuffix(data, []byte(pebbleEnd))
	if !ok {
		return nil, errors.New("the writer of SSTables has another format now")
	}
	return append(bytes.Clone(body), rocksEnd...), nil
}

// properties makes collectors that give a file these properties.
func properties(all []property) (collectors []func() sstable.BlockPropertyCollector) {
	for _, p := range all {
		collectors = append(collectors, func() sstable.BlockPropertyCollector { return p })
	}
	return collectors
}

// property is a property of a file, and none of its blocks.
type property struct{ name, value string }

func (p property) Name() string                                { return p.name }
func (property) AddPointKey(sstable.InternalKey, []byte) error { return nil }
func (property) AddRangeKeys(sstable.Span) error               { return nil }
func (property) SupportsSuffixReplacement() bool               { return false }
func (property) FinishDataBlock(buf []byte) ([]byte, error)    { return buf, nil }
func (property) AddPrevDataBlockToIndexBlock()                 {}
func (property) FinishIndexBlock(buf []byte) ([]byte, error)   { return buf, nil }
func (p property) FinishTable([]byte) ([]byte, error)          { return []byte(p.value), nil }
func (property) AddCollectedWithSuffixReplacement(_, _, _ []byte) error {
	return errors.ErrUnsupported
}
