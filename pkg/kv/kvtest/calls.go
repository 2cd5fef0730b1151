// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"context"

	"github.com/moraine-store/moraine/pkg/kv"
)

// everyCall makes each call that can fail, by itself, and returns its error under its name. The
// reads come first, and DropPartition last.
func everyCall(ctx context.Context, s kv.Store, partition, key, value []byte, p kv.Predicate) map[string]error {
	errs := map[string]error{"Scan": scanError(ctx, s, partition)}
	_, errs["Get"] = s.Get(ctx, partition, key)
	for name, err := range everyWrite(ctx, s, partition, key, value, p) {
		errs[name] = err
	}
	return errs
}

func everyWrite(ctx context.Context, s kv.Store, partition, key, value []byte, p kv.Predicate) map[string]error {
	return map[string]error{
		"Set":           s.Set(ctx, partition, key, value),
		"SetIf":         s.SetIf(ctx, partition, key, value, p),
		"Delete":        s.Delete(ctx, partition, key),
		"DeleteIf":      s.DeleteIf(ctx, partition, key, p),
		"Apply":         s.Apply(ctx, partition, []kv.Write{{Key: key, Value: value, If: &p}}, nil),
		"SetMany":       kv.SetMany(ctx, s, partition, []kv.Write{{Key: key, Value: value}}),
		"Publish":       kv.Publish(ctx, s, nil, kv.Record{Partition: partition, Key: key, Value: value}, p),
		"DropPartition": kv.DropPartition(ctx, s, partition),
	}
}

func scanError(ctx context.Context, s kv.Store, partition []byte) error {
	it, err := s.Scan(ctx, partition, kv.ScanOptions{})
	if err != nil {
		return err
	}
	for it.Next() {
		continue
	}
	return it.Close()
}
