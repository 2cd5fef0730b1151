// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler/staging/stagingpb"
)

// Decode returns a stored value as the message that it is, if the partition is a staging token. It is
// for tools that show raw records, and checks nothing but that the bytes are such a message.
func Decode(partition string, value []byte) (proto.Message, bool) {
	// A token is <repository>-<branch>:<UUID>; no other partition has a colon.
	if !strings.Contains(partition, ":") {
		return nil, false
	}
	m := &stagingpb.StagedEntryData{}
	if proto.Unmarshal(value, m) != nil {
		return nil, false
	}
	return m, true
}
