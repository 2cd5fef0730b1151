// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"crypto/sha256"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Shards is the number of shards that the objects of all repositories are dealt out to.
const Shards = 16

// ShardOf returns the shard, in [0, Shards), of a logical key and so of all its versions, markers and uploads: the top 4 bits of SHA-256 of
// the repository's name, "/" and the key. It never changes, since positions are kept by shard.
func ShardOf(repository graveler.RepositoryID, key string) int {
	var buf [2048]byte // any key and name, so that nothing is allocated
	b := append(buf[:0], repository...)
	b = append(b, '/')
	b = append(b, key...)
	sum := sha256.Sum256(b)
	return int(sum[0] >> 4)
}
