// SPDX-License-Identifier: Apache-2.0

package kv

import "fmt"

// The Check methods are what an engine calls before it touches anything; each answers for one kind
// of call. They exist once so that every engine refuses the same input with the same error.

// CheckKey refuses a missing or too long partition or key.
func (l Limits) CheckKey(partition, key []byte) error {
	if err := l.CheckPartition(partition); err != nil {
		return err
	}
	if len(key) == 0 {
		return ErrMissingKey
	}
	return checkSize("key", len(key), l.KeyBytes)
}

// CheckPartition refuses a missing or too long partition.
func (l Limits) CheckPartition(partition []byte) error {
	if len(partition) == 0 {
		return ErrMissingPartition
	}
	return checkSize("partition", len(partition), MaxPartitionBytes)
}

// CheckSet refuses what CheckKey refuses and a missing or too long value.
func (l Limits) CheckSet(partition, key, value []byte) error {
	if err := l.CheckKey(partition, key); err != nil {
		return err
	}
	if value == nil {
		return ErrMissingValue
	}
	return checkSize("value", len(value), l.ValueBytes)
}

// CheckSetIf refuses what CheckSet refuses and a missing predicate.
func (l Limits) CheckSetIf(partition, key, value []byte, p Predicate) error {
	if err := l.CheckSet(partition, key, value); err != nil {
		return err
	}
	return checkPredicate(p)
}

// CheckDeleteIf refuses what CheckKey refuses and a missing predicate.
func (l Limits) CheckDeleteIf(partition, key []byte, p Predicate) error {
	if err := l.CheckKey(partition, key); err != nil {
		return err
	}
	return checkPredicate(p)
}

// CheckApply refuses a batch that is malformed, touches a key twice or is larger than the limits.
func (l Limits) CheckApply(partition []byte, writes []Write, fence *Fence) error {
	if err := l.CheckPartition(partition); err != nil {
		return err
	}
	if err := checkSize("number of writes", len(writes), l.ApplyWrites); err != nil {
		return err
	}
	seen := make(map[string]struct{}, len(writes)+1)
	if fence != nil {
		if err := l.CheckDeleteIf(fence.Partition, fence.Key, fence.Predicate); err != nil {
			return fmt.Errorf("fence: %w", err)
		}
		if string(fence.Partition) == string(partition) {
			seen[string(fence.Key)] = struct{}{}
		}
	}
	total := 0
	for i, w := range writes {
		if err := l.checkWrite(partition, w); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
		if _, dup := seen[string(w.Key)]; dup {
			return fmt.Errorf("write %d: %w %s", i, ErrDuplicateKey, printable(string(w.Key)))
		}
		seen[string(w.Key)] = struct{}{}
		total += len(w.Key) + len(w.Value)
	}
	return checkSize("sum of keys and values", total, l.ApplyBytes)
}

// CheckSetMany refuses malformed and conditional writes. Any number of writes is fine.
func (l Limits) CheckSetMany(partition []byte, writes []Write) error {
	if err := l.CheckPartition(partition); err != nil {
		return err
	}
	for i, w := range writes {
		if w.If != nil {
			return fmt.Errorf("write %d: %w", i, ErrUnexpectedPredicate)
		}
		if err := l.checkWrite(partition, w); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
	}
	return nil
}

func (l Limits) checkWrite(partition []byte, w Write) error {
	if err := l.CheckKey(partition, w.Key); err != nil {
		return err
	}
	if w.If != nil {
		if err := checkPredicate(*w.If); err != nil {
			return err
		}
	}
	return checkSize("value", len(w.Value), l.ValueBytes)
}

func checkPredicate(p Predicate) error {
	if p.IsZero() {
		return ErrMissingPredicate
	}
	return nil
}

func checkSize(what string, size, limit int) error {
	if size > limit {
		return fmt.Errorf("%w: %s is %d, limit is %d", ErrTooLarge, what, size, limit)
	}
	return nil
}
