// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

// ForgetMalformed removes the leases and workers' records that are malformed, which nobody renews or takes over, and returns how
// many there were. Those that are in order stay, whoever has them. It may run beside workers; one whose own record it has removed
// writes it anew.
func ForgetMalformed(ctx context.Context, store kv.Store) (removed int, err error) {
	leases, err := malformed(ctx, store, leasesPrefix, decodeLease)
	if err != nil {
		return 0, err
	}
	members, err := malformed(ctx, store, workersPrefix, decodeMember)
	if err != nil {
		return 0, err
	}
	for _, r := range append(leases, members...) {
		err := store.DeleteIf(ctx, []byte(cursor.Partition), r.key, kv.Equals(r.value))
		switch {
		case err == nil:
			removed++
		case !errors.Is(err, kv.ErrPredicateFailed): // else somebody has written it meanwhile
			return removed, fmt.Errorf("remove malformed %s: %w", r.key, err)
		}
	}
	return removed, nil
}

type rawRecord struct{ key, value []byte }

func malformed[T any](ctx context.Context, store kv.Store, prefix string, decode func(key string, value []byte) (T, error)) (all []rawRecord, err error) {
	it, err := store.Scan(ctx, []byte(cursor.Partition), kv.ScanOptions{Prefix: []byte(prefix)})
	if err != nil {
		return nil, fmt.Errorf("scan %s: %w", prefix, err)
	}
	for it.Next() {
		if _, err := decode(string(it.Key()), it.Value()); err != nil {
			all = append(all, rawRecord{bytes.Clone(it.Key()), bytes.Clone(it.Value())})
		}
	}
	if err := it.Close(); err != nil {
		return nil, fmt.Errorf("scan %s: %w", prefix, err)
	}
	return all, nil
}
