// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// SchemaVersion is the layout of keys and values that this program reads and writes. It is stored in
// ASCII decimal under [SchemaPartition] and [SchemaKey].
const SchemaVersion = 1

const (
	SchemaPartition = "kv-internal-metadata"
	SchemaKey       = "kv/schema/version"
)

// checkSchema refuses a store that this program does not understand, and marks a new one. A store
// that is read only and has no mark yet is an empty one.
func checkSchema(ctx context.Context, s Store, readOnly bool) error {
	partition, key := []byte(SchemaPartition), []byte(SchemaKey)
	item, err := s.Get(ctx, partition, key)
	if errors.Is(err, ErrNotFound) {
		if readOnly {
			return nil
		}
		err = s.SetIf(ctx, partition, key, strconv.AppendInt(nil, SchemaVersion, 10), Absent)
		if !errors.Is(err, ErrPredicateFailed) {
			return err
		}
		// Somebody else, perhaps a newer program, opened the new store at the same moment.
		item, err = s.Get(ctx, partition, key)
	}
	if err != nil {
		return err
	}
	return checkVersion(item.Value)
}

func checkVersion(stored []byte) error {
	version, err := strconv.ParseUint(string(stored), 10, 31)
	if err != nil || version == 0 {
		return fmt.Errorf("%w: schema version is %s, not a number", ErrNotAStore, strconv.Quote(string(stored)))
	}
	if version > SchemaVersion {
		return fmt.Errorf("%w: store has version %d, this program knows up to %d", ErrSchemaNewer, version, SchemaVersion)
	}
	return nil
}
