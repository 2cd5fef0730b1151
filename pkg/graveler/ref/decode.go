// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
)

// Decode returns a stored value as the message that it is, going by partition and key. It is for
// tools that show raw records, and checks nothing but that the bytes are such a message; false means
// that they are not, or that no record of this package has such a key.
func Decode(partition string, key, value []byte) (proto.Message, bool) {
	m := messageAt(partition, string(key))
	if m == nil || proto.Unmarshal(value, m) != nil {
		return nil, false
	}
	return m, true
}

func messageAt(partition, key string) proto.Message {
	switch partition {
	case repositoriesPartition:
		if strings.HasPrefix(key, repositoriesPrefix) {
			return &refpb.RepositoryData{}
		}
		return nil
	case cleanupsPartition:
		return &refpb.CleanupData{}
	case clockPartition:
		if key == watermarkKey {
			return &refpb.ClockData{}
		}
		return nil
	}
	if strings.Contains(partition, ":") {
		return nil // a staging token; no name of a repository has a colon
	}
	switch key[:strings.Index(key, "/")+1] {
	case branchesPrefix:
		return &refpb.BranchData{}
	case commitsPrefix:
		return &refpb.CommitData{}
	case tagsPrefix:
		return &refpb.TagData{}
	case logPrefix:
		return &refpb.MoveData{}
	case logNamesPrefix:
		return &refpb.LogNameData{}
	case logStartPrefix:
		return &refpb.LogStartData{}
	case pinsPrefix:
		return &refpb.PinData{}
	case expiryPrefix:
		return &refpb.ExpirationData{}
	case settingsPrefix:
		return &refpb.SettingData{}
	case chunksPrefix:
		return &refpb.SettingChunk{}
	default:
		return nil
	}
}
