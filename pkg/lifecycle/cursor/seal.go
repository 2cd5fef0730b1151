// SPDX-License-Identifier: Apache-2.0

package cursor

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/moraine-store/moraine/pkg/kv"
)

// version is that of every record.
const version = 1

// A record ends in the field of its checksum, which covers the bytes before. Whoever knows nothing of that still reads the message that it is.
const (
	checksumField = 15
	checksumBytes = 1 + 8 // the field's tag and the number
)

// sealed is a message that has a version and a checksum.
type sealed interface {
	proto.Message
	GetVersion() uint32
	GetChecksum() uint64
}

// seal encodes m, whose checksum is not set. Equal messages give equal bytes.
func seal(m sealed) ([]byte, error) {
	body, err := kv.MarshalMessage(m)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return append(body, checksumOf(body)...), nil
}

// unseal decodes into m what seal made.
func unseal(value []byte, m sealed) error {
	body := value[:max(0, len(value)-checksumBytes)]
	if !bytes.Equal(value[len(body):], checksumOf(body)) {
		return errors.New("is cut, altered or none of these records: its checksum does not match")
	}
	if err := proto.Unmarshal(body, m); err != nil {
		return fmt.Errorf("holds no %s", m.ProtoReflect().Descriptor().Name())
	}
	if m.GetVersion() != version {
		return fmt.Errorf("has version %d, expected %d", m.GetVersion(), version)
	}
	if hasUnknown(m.ProtoReflect()) || m.GetChecksum() != 0 {
		return errors.New("has fields that this program does not know")
	}
	return nil
}

func checksumOf(body []byte) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, checksumField, protowire.Fixed64Type), xxhash.Sum64(body))
}

// hasUnknown looks for unknown fields in m and in the messages within.
func hasUnknown(m protoreflect.Message) bool {
	if len(m.GetUnknown()) > 0 {
		return true
	}
	found := false
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				found = found || hasUnknown(v.List().Get(i).Message())
			}
		default:
			found = hasUnknown(v.Message())
		}
		return !found
	})
	return found
}
