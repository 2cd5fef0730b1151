// SPDX-License-Identifier: Apache-2.0

package kv

import "context"

// ManySetter is a capability: loading many writes of one partition in few round trips.
type ManySetter interface {
	// SetMany performs the writes, none of which may be conditional. Of two writes to one key the
	// later wins. It is not atomic: after an error any subset may have landed.
	SetMany(ctx context.Context, partition []byte, writes []Write) error
}

// PartitionDropper is a capability: removing a whole partition faster than key by key.
type PartitionDropper interface {
	// DropPartition removes every key of the partition. It may be repeated, after an error too.
	// Keys that are written while it runs may or may not survive.
	DropPartition(ctx context.Context, partition []byte) error
}

// SetMany performs unconditional writes, in bulk if the store can, else one by one. See [ManySetter].
func SetMany(ctx context.Context, s Store, partition []byte, writes []Write) error {
	if m, ok := s.(ManySetter); ok {
		return m.SetMany(ctx, partition, writes)
	}
	if err := s.Limits().CheckSetMany(partition, writes); err != nil {
		return Wrap("set many", partition, nil, err)
	}
	for _, w := range writes {
		if err := setOrDelete(ctx, s, partition, w); err != nil {
			return err
		}
	}
	return nil
}

func setOrDelete(ctx context.Context, s Store, partition []byte, w Write) error {
	if w.Value == nil {
		return s.Delete(ctx, partition, w.Key)
	}
	return s.Set(ctx, partition, w.Key, w.Value)
}

// DropPartition removes every key of a partition, at once if the store can, else one by one. See
// [PartitionDropper].
func DropPartition(ctx context.Context, s Store, partition []byte) error {
	if d, ok := s.(PartitionDropper); ok {
		return d.DropPartition(ctx, partition)
	}
	it, err := s.Scan(ctx, partition, ScanOptions{})
	if err != nil {
		return err
	}
	for it.Next() {
		if err := s.Delete(ctx, partition, it.Key()); err != nil {
			// The scan is given up; its own error would add nothing to this one.
			_ = it.Close()
			return err
		}
	}
	return it.Close()
}
