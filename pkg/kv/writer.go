// SPDX-License-Identifier: Apache-2.0

package kv

import "context"

// Writer gives an engine Limits and the writing methods of a Store, if it can do every write as one
// kind: some writes of one partition, all or none, under a fence or not. Such an engine embeds it.
type Writer struct {
	Bounds Limits
	// Perform does writes that were checked against Bounds. Where a predicate fails it returns the key
	// of that write with ErrPredicateFailed.
	Perform func(ctx context.Context, partition []byte, writes []Write, fence *Fence) (failed []byte, err error)
}

// Limits returns what the store accepts.
func (w Writer) Limits() Limits { return w.Bounds }

// Set stores a value.
func (w Writer) Set(ctx context.Context, partition, key, value []byte) error {
	err := w.Bounds.CheckSet(partition, key, value)
	return w.one(ctx, "set", partition, Write{Key: key, Value: value}, err)
}

// SetIf stores a value if the predicate holds.
func (w Writer) SetIf(ctx context.Context, partition, key, value []byte, p Predicate) error {
	err := w.Bounds.CheckSetIf(partition, key, value, p)
	return w.one(ctx, "set if", partition, Write{Key: key, Value: value, If: &p}, err)
}

// Delete removes a key.
func (w Writer) Delete(ctx context.Context, partition, key []byte) error {
	err := w.Bounds.CheckKey(partition, key)
	return w.one(ctx, "delete", partition, Write{Key: key}, err)
}

// DeleteIf removes a key if the predicate holds.
func (w Writer) DeleteIf(ctx context.Context, partition, key []byte, p Predicate) error {
	err := w.Bounds.CheckDeleteIf(partition, key, p)
	return w.one(ctx, "delete if", partition, Write{Key: key, If: &p}, err)
}

// one performs a write unless its input is bad.
func (w Writer) one(ctx context.Context, op string, partition []byte, write Write, bad error) error {
	err := bad
	if err == nil {
		_, err = w.Perform(ctx, partition, []Write{write}, nil)
	}
	return Wrap(op, partition, write.Key, err)
}

// Apply performs all writes or none.
func (w Writer) Apply(ctx context.Context, partition []byte, writes []Write, fence *Fence) error {
	if err := w.Bounds.CheckApply(partition, writes, fence); err != nil {
		return Wrap("apply", partition, nil, err)
	}
	failed, err := w.Perform(ctx, partition, writes, fence)
	return Wrap("apply", partition, failed, err)
}
