// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

// The key schema. Branch and tag names may hold slashes, and stand last or before a colon, which they
// cannot hold; repository names, UIDs, commit IDs and names of settings hold neither. The rest of the
// partitions, repositories' and tokens', are named by package graveler.
const (
	repositoriesPartition = "graveler"
	cleanupsPartition     = "cleanup-tokens"
	clockPartition        = kv.SchemaPartition

	repositoriesPrefix = "repos/"

	// In the partition of a repository.
	branchesPrefix = "branches/"
	commitsPrefix  = "commits/"
	tagsPrefix     = "tags/"
	logPrefix      = "log/"
	logNamesPrefix = "log-names/"
	logStartPrefix = "log-start/"
	pinsPrefix     = "pins/"
	expiryPrefix   = "expirations/"
	settingsPrefix = "settings/"
	chunksPrefix   = "setting-chunks/"

	watermarkKey = "clock/watermark"
)

// BranchKey is the key of a branch's record in the partition of its repository: the fence of staged writes.
func BranchKey(id graveler.BranchID) []byte { return []byte(branchesPrefix + string(id)) }

func logOf(branchUID string) string { return logPrefix + branchUID + "/" }

func logNamesOf(branch graveler.BranchID) string { return logNamesPrefix + string(branch) + ":" }

// hexDigits writes n so that byte order is the order of numbers.
func hexDigits(n uint64) string { return fmt.Sprintf("%016x", n) }

// location is where a record is.
type location struct{ partition, key []byte }

func locate(partition, key string) location { return location{[]byte(partition), []byte(key)} }

// corrupt says what is wrong with what is stored here.
func (at location) corrupt(problem error) error {
	return fmt.Errorf("%w: partition %q, key %q: %w", graveler.ErrCorrupt, at.partition, at.key, problem)
}

// undecodable says that a value is not the message that it should be. What protobuf says of it differs from build to build by
// intent, and helps nobody.
func undecodable(m proto.Message) error {
	return fmt.Errorf("holds no %s", m.ProtoReflect().Descriptor().Name())
}

// decode reads the message that is stored here; key is the one that belongs to such a message.
func (at location) decode(value []byte, m proto.Message, key func() string) error {
	if proto.Unmarshal(value, m) != nil {
		return at.corrupt(undecodable(m))
	}
	if belongs := key(); belongs != string(at.key) {
		return at.corrupt(fmt.Errorf("holds the record of key %q", belongs))
	}
	return nil
}
