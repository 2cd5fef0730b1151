// SPDX-License-Identifier: Apache-2.0

package cursor

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/lifecycle/cursor/cursorpb"
)

// Decode returns a stored value as the message that it is, going by partition and key. It is for tools that show raw records, and
// checks nothing but that the bytes are such a message; false means that they are not, or that the record is JSON or none of this
// package.
func Decode(partition string, key, value []byte) (proto.Message, bool) {
	if partition != Partition {
		return nil, false
	}
	var m proto.Message
	switch kind, _, _ := strings.Cut(string(key), "/"); kind + "/" {
	case positionsPrefix:
		m = &cursorpb.PositionData{}
	case deferredPrefix:
		m = &cursorpb.DeferredData{}
	case walksPrefix:
		m = &cursorpb.WalkData{}
	default:
		return nil, false
	}
	return m, proto.Unmarshal(value, m) == nil
}
