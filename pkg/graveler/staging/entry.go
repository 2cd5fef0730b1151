// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// The wire form of stagingpb.StagedEntryData is written and read by hand: a staged entry is what the
// store handles most, and this costs one allocation to write and none to read.

// Field numbers, as in staging.proto.
const (
	keyField = iota + 1
	identityField
	dataField
)

// entry is a decoded record. It shares the memory of the stored bytes.
type entry struct {
	key   []byte
	value graveler.Value
}

func (e *entry) tombstone() bool { return len(e.value.Identity) == 0 }

// encode returns the record of an entry, of a tombstone where the value is nil.
func encode(key graveler.Key, v *graveler.Value) []byte {
	b := make([]byte, 0, encodedSize(key, v))
	b = appendField(b, keyField, key)
	if v != nil {
		b = appendField(b, identityField, v.Identity)
		b = appendField(b, dataField, v.Data)
	}
	return b
}

// encodedSize is the exact length of what encode returns.
func encodedSize(key graveler.Key, v *graveler.Value) int {
	n := fieldSize(key)
	if v != nil {
		n += fieldSize(v.Identity) + fieldSize(v.Data)
	}
	return n
}

func appendField(b []byte, field protowire.Number, content []byte) []byte {
	if len(content) == 0 {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, content)
}

func fieldSize(content []byte) int {
	if len(content) == 0 {
		return 0
	}
	return 1 + protowire.SizeBytes(len(content)) // a tag below 16 is one byte
}

// decode reads the record that is stored under token and key. Fields that it does not know are skipped.
func decode(token graveler.StagingToken, key, record []byte) (entry, error) {
	var e entry
	for rest := record; len(rest) > 0; {
		field, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return entry{}, corrupt(token, key, protowire.ParseError(n))
		}
		rest = rest[n:]
		if known := field >= keyField && field <= dataField; !known || kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(field, kind, rest); n < 0 {
				return entry{}, corrupt(token, key, protowire.ParseError(n))
			}
			rest = rest[n:]
			continue
		}
		content, n := protowire.ConsumeBytes(rest)
		if n < 0 {
			return entry{}, corrupt(token, key, protowire.ParseError(n))
		}
		rest = rest[n:]
		e.set(field, content[:len(content):len(content)])
	}
	if !bytes.Equal(e.key, key) {
		return entry{}, corrupt(token, key, fmt.Errorf("holds the record of key %q", e.key))
	}
	if e.tombstone() && len(e.value.Data) > 0 {
		return entry{}, corrupt(token, key, fmt.Errorf("holds data without identity"))
	}
	return e, nil
}

func (e *entry) set(field protowire.Number, content []byte) {
	switch field {
	case keyField:
		e.key = content
	case identityField:
		e.value.Identity = content
	case dataField:
		e.value.Data = content
	}
}

func corrupt(token graveler.StagingToken, key []byte, problem error) error {
	return fmt.Errorf("%w: partition %q, key %q: %w", graveler.ErrCorrupt, token, key, problem)
}
