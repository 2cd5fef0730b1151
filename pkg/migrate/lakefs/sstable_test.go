// SPDX-License-Identifier: Apache-2.0

package lakefs_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// What is in order for an SSTable may make no sense as a range, though its checksums are right.
func TestRecordsThatMakeNoSenseAreDamage(t *testing.T) {
	value := func(lengths ...int64) (stored []byte) {
		for _, n := range lengths {
			stored = append(binary.AppendVarint(stored, n), make([]byte, max(n, 0))...)
		}
		return stored
	}
	type record struct {
		key   sstable.InternalKey
		value []byte
	}
	set := func(key string, value []byte) record {
		return record{sstable.InternalKey{UserKey: []byte(key), Trailer: 1}, value}
	}
	again := func(key string, value []byte) record { // of a higher number, which comes first
		return record{sstable.InternalKey{UserKey: []byte(key), Trailer: 1<<8 | 1}, value}
	}
	deleted := record{key: sstable.InternalKey{UserKey: []byte("b")}}
	for name, c := range map[string]struct {
		records []record
		says    string
	}{
		"a deletion":                  {[]record{set("a", value(1, 1)), deleted}, `record "b" is of kind DEL`},
		"a key twice":                 {[]record{again("a", value(1, 1)), set("a", value(1, 1))}, `record "a" comes behind "a"`},
		"no value":                    {[]record{set("a", nil)}, `record "a" is cut short`},
		"no data":                     {[]record{set("a", value(1))}, `record "a" is cut short`},
		"a negative length":           {[]record{set("a", value(1, -1))}, `record "a" is cut short`},
		"a length that has no end":    {[]record{set("a", append(value(1), 0x80))}, `record "a" is cut short`},
		"more than there is":          {[]record{set("a", append(value(1), 4, 0))}, `record "a" is cut short`},
		"a length beyond any":         {[]record{set("a", binary.AppendVarint(nil, 1<<62))}, `record "a" is cut short`},
		"no type, and otherwise good": {[]record{set("a", value(1, 1))}, `of type ""`},
	} {
		t.Run(name, func(t *testing.T) {
			var file objstorage.MemObj
			w := sstable.NewRawWriter(&file, sstable.WriterOptions{TableFormat: sstable.TableFormatRocksDBv2})
			for _, r := range c.records {
				require.NoError(t, w.Add(r.key, r.value, false))
			}
			require.NoError(t, w.Close())
			id := strings.Repeat("0", 64)
			storage := mem.New()
			require.NoError(t, storage.Put(t.Context(), lakegen.FileName(id), file.Data()))
			_, err := lakefs.NewFiles(storage, "s3://bucket/path").Range(t.Context(), lakefs.Range{ID: id})
			require.ErrorIs(t, err, lakefs.ErrDamaged)
			require.ErrorContains(t, err, c.says)
		})
	}
}
