// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/protobuf/proto"
)

// GetMessage reads a key into m, which is reset first, and returns the predicate of what it read.
// Fields that m's type does not know are kept in m and stored again by SetMessage, so that an older
// program does not strip what a newer one wrote.
func GetMessage(ctx context.Context, s Store, partition, key []byte, m proto.Message) (Predicate, error) {
	item, err := s.Get(ctx, partition, key)
	if err != nil {
		return Predicate{}, err
	}
	if err := proto.Unmarshal(item.Value, m); err != nil {
		return Predicate{}, Wrap("decode", partition, key, err)
	}
	return item.Predicate, nil
}

// SetMessage stores m whether or not the key exists.
func SetMessage(ctx context.Context, s Store, partition, key []byte, m proto.Message) error {
	value, err := MarshalMessage(m)
	if err != nil {
		return Wrap("encode", partition, key, err)
	}
	return s.Set(ctx, partition, key, value)
}

// SetMessageIf stores m if the predicate holds, else it returns [ErrPredicateFailed].
func SetMessageIf(ctx context.Context, s Store, partition, key []byte, m proto.Message, p Predicate) error {
	value, err := MarshalMessage(m)
	if err != nil {
		return Wrap("encode", partition, key, err)
	}
	return s.SetIf(ctx, partition, key, value, p)
}

// MarshalMessage encodes m as SetMessage does, for a [Write] of a batch. Within one build equal
// messages give equal bytes, so that Equals of the result is the predicate for having stored m. The
// result is never nil.
func MarshalMessage(m proto.Message) ([]byte, error) {
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{}, m)
	if err != nil {
		return nil, fmt.Errorf("marshal %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return value, nil
}

// MessageItem is one entry of ScanMessages.
type MessageItem[T proto.Message] struct {
	Key     []byte
	Value   []byte // the stored bytes; Equals(Value) is the predicate for them
	Message T
}

// ScanMessages scans a partition and decodes each value into a message that newT makes. An error is
// the last thing it yields; there is none after a complete scan. Leaving the loop early releases the
// scan. Each use of the sequence is a new scan.
func ScanMessages[T proto.Message](
	ctx context.Context, s Store, partition []byte, o ScanOptions, newT func() T,
) iter.Seq2[MessageItem[T], error] {
	return func(yield func(MessageItem[T], error) bool) {
		it, err := s.Scan(ctx, partition, o)
		if err != nil {
			yield(MessageItem[T]{}, err)
			return
		}
		// Releases the scan whichever way the loop is left; the error counts only at the end.
		defer func() { _ = it.Close() }()
		for it.Next() {
			item := MessageItem[T]{Key: it.Key(), Value: it.Value(), Message: newT()}
			if err := proto.Unmarshal(item.Value, item.Message); err != nil {
				yield(MessageItem[T]{}, Wrap("decode", partition, item.Key, err))
				return
			}
			if !yield(item, nil) {
				return
			}
		}
		if err := it.Close(); err != nil {
			yield(MessageItem[T]{}, err)
		}
	}
}
