// SPDX-License-Identifier: Apache-2.0

package cursor

import (
	"context"
	"fmt"
)

// Forget removes the cursor, the positions and the deferred objects of a shard, and what is remembered of walks, which are over
// other shards too; whatever is in the records. It returns how many there were. The next pass starts cold there: it looks at
// everything, and so comes to what was deferred, too; and it walks. It costs the reading of these records.
func (s *Store) Forget(ctx context.Context, shard int) (removed int, err error) {
	if err := checkShard(shard); err != nil {
		return 0, invalid("%v", err)
	}
	// The cursor vouches for all, and positions that stay would not come to what was deferred again.
	for _, prefix := range []string{Cursor{Shard: shard}.key(), fmt.Sprintf("%s%02d/", positionsPrefix, shard), deferredIn(shard), walksPrefix} {
		n, err := s.prune(ctx, prefix, func(string, []byte) (bool, error) { return true, nil })
		removed += n
		if err != nil {
			return removed, fmt.Errorf("forget shard %d: %w", shard, err)
		}
	}
	return removed, nil
}
