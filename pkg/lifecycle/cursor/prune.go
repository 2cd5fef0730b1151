// SPDX-License-Identifier: Apache-2.0

package cursor

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// pruneBatch is how many records are removed at a time.
const pruneBatch = 1000

// Prune removes the positions and deferred objects that some shards have of sources that live says are gone, and all walks over
// such sources, and returns how many that were. live must know every source that may have got a record before Prune was called,
// or else an object that another pass defers meanwhile can be lost, while its position is saved: the shards are to be those that
// nobody else works on. A record that does not tell its source stays and is an error, after all others have been looked at. It
// reads all deferred objects, and of the rest the keys.
func (s *Store) Prune(ctx context.Context, shards []int, live func(repositoryUID, branchUID string) bool) (removed int, err error) {
	type records struct {
		prefix string
		source func(key string, value []byte) (repositoryUID, branchUID string, err error)
	}
	kinds := []records{{walksPrefix, sourceOfWalk}}
	for _, shard := range shards {
		if err := checkShard(shard); err != nil {
			return 0, invalid("%v", err)
		}
		kinds = append(kinds, records{positionsIn(shard), sourceOfPosition}, records{deferredIn(shard), sourceOfDeferred})
	}
	var errs []error
	for _, kind := range kinds {
		n, err := s.prune(ctx, kind.prefix, func(key string, value []byte) (bool, error) {
			repositoryUID, branchUID, err := kind.source(key, value)
			return err == nil && !live(repositoryUID, branchUID), err
		})
		removed += n
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return removed, fmt.Errorf("prune lifecycle records: %w", err)
	}
	return removed, nil
}

// prune removes the records below prefix that are gone.
func (s *Store) prune(ctx context.Context, prefix string, gone func(key string, value []byte) (bool, error)) (removed int, err error) {
	var keys []string
	var errs []error
	flush := func() {
		if err := s.remove(ctx, "what is gone", keys...); err != nil {
			errs = append(errs, err)
		} else {
			removed += len(keys)
		}
		keys = keys[:0]
	}
	err = s.each(ctx, prefix, func(key string, value []byte) bool {
		isGone, err := gone(key, value)
		if err != nil {
			errs = append(errs, err)
		}
		if isGone {
			keys = append(keys, key)
		}
		if len(keys) == pruneBatch {
			flush()
		}
		return true
	})
	flush()
	return removed, errors.Join(append(errs, err)...)
}

func sourceOfPosition(key string, _ []byte) (repositoryUID, branchUID string, err error) {
	_, source, _ := strings.Cut(strings.TrimPrefix(key, positionsPrefix), "/")
	return splitSource(key, source)
}

func sourceOfWalk(key string, _ []byte) (repositoryUID, branchUID string, err error) {
	source := strings.TrimPrefix(key, walksPrefix)
	if parts := strings.Split(source, "/"); len(parts) == 3 && shardsPattern.MatchString(parts[2]) {
		source = parts[0] + "/" + parts[1]
	}
	return splitSource(key, source)
}

func sourceOfDeferred(key string, value []byte) (repositoryUID, branchUID string, err error) {
	d, err := decodeDeferred(key, value)
	return d.RepositoryUID, d.BranchUID, err
}

func splitSource(key, source string) (repositoryUID, branchUID string, err error) {
	repositoryUID, branchUID, _ = strings.Cut(source, "/")
	if err := checkSource(repositoryUID, branchUID); err != nil {
		return "", "", Malformed(key, err)
	}
	return repositoryUID, branchUID, nil
}
