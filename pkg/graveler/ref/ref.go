// SPDX-License-Identifier: Apache-2.0

// Package ref keeps the records of the versioned store in a key/value store: repositories, branches,
// commits, tags, branch logs, settings, the partitions that are to be dropped and the clock's
// watermark. It implements [graveler.Refs].
//
// Each record is one protobuf message (package refpb) under a key of its own; keys.go has the
// schema, and one file per kind of record has its mapping and its methods. [Decode] names the
// message that a raw value is, for tools that look at a store.
//
// What the package promises beyond the interface:
//
//   - A [graveler.Stamp] is the stored bytes of a record. A write that carries one starts from them,
//     so fields that this program does not know are still there afterwards.
//   - A record that does not decode, or that is not the one its key names, is [graveler.ErrCorrupt]
//     with partition and key, and ends a scan. It is never skipped. [Store.ScanStored], for checks,
//     goes on behind it.
//   - What could not be read back is not written: it is [graveler.ErrInvalidValue]. Strings must be
//     UTF-8. More bytes than the engine takes in a value are [graveler.ErrTooLarge].
//   - Equal records are written as equal bytes.
//
// An empty list, map or prefix reads as nil or empty, whichever it was when it was written. Reads and
// writes cost one call of the engine, except where a method says otherwise. A Store holds nothing but
// the engine and is safe for concurrent use.
package ref

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

var _ graveler.Refs = (*Store)(nil)

// Store keeps records in a [kv.Store].
type Store struct {
	kv kv.Store
}

// New returns a Store on the engine, which stays the caller's to close.
func New(store kv.Store) *Store { return &Store{kv: store} }

// get reads and decodes one record.
func get[T any](ctx context.Context, s *Store, at location, notFound error, decode func(location, []byte) (T, error)) (T, error) {
	item, err := s.kv.Get(ctx, at.partition, at.key)
	if err != nil {
		var none T
		if errors.Is(err, kv.ErrNotFound) {
			return none, notFound
		}
		return none, Outcome(err)
	}
	return decode(at, item.Value)
}

// scan reads and decodes the records below a prefix, from prefix+from on. what names them in errors.
func scan[T any](ctx context.Context, s *Store, what string, partition, prefix, from string, decode func(location, []byte) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		more := true
		err := s.each(ctx, partition, prefix, from, func(at location, value []byte) (bool, error) {
			record, err := decode(at, value)
			if err != nil {
				return false, err
			}
			more = yield(record, nil)
			return more, nil
		})
		if err != nil && more {
			var none T
			yield(none, wrap(err, "scan %s", what))
		}
	}
}

// each calls fn for the keys below a prefix, from prefix+from on, until it returns false or an error.
func (s *Store) each(ctx context.Context, partition, prefix, from string, fn func(at location, value []byte) (bool, error)) error {
	at := location{partition: []byte(partition)}
	it, err := s.kv.Scan(ctx, at.partition, kv.ScanOptions{Prefix: []byte(prefix), Start: []byte(prefix + from)})
	if err != nil {
		return Outcome(err)
	}
	for it.Next() {
		at.key = it.Key()
		more, err := fn(at, it.Value())
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if !more {
			break
		}
	}
	return Outcome(it.Close())
}

// put writes a record conditionally on the stamp and returns the new one.
func (s *Store) put(ctx context.Context, at location, m proto.Message, stamp graveler.Stamp) (graveler.Stamp, error) {
	value, err := marshal(m)
	if err != nil {
		return nil, err
	}
	if err := s.kv.SetIf(ctx, at.partition, at.key, value, condition(stamp)); err != nil {
		return nil, Outcome(err)
	}
	return value, nil
}

// set writes a record whatever is there.
func (s *Store) set(ctx context.Context, at location, m proto.Message) error {
	value, err := marshal(m)
	if err != nil {
		return err
	}
	return Outcome(s.kv.Set(ctx, at.partition, at.key, value))
}

// delete removes a record whatever it is.
func (s *Store) delete(ctx context.Context, at location) error {
	return Outcome(s.kv.Delete(ctx, at.partition, at.key))
}

// remove removes a record conditionally on the stamp.
func (s *Store) remove(ctx context.Context, at location, stamp graveler.Stamp) error {
	return Outcome(s.kv.DeleteIf(ctx, at.partition, at.key, condition(stamp)))
}

func condition(stamp graveler.Stamp) kv.Predicate {
	if stamp == nil {
		return kv.Absent
	}
	return kv.Equals(stamp)
}

func marshal(m proto.Message) ([]byte, error) {
	value, err := kv.MarshalMessage(m)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", graveler.ErrInvalidValue, err)
	}
	return value, nil
}

// overStamp decodes what a write replaces, so that setting the known fields keeps the unknown ones.
func overStamp(stamp graveler.Stamp, m proto.Message) error {
	if err := proto.Unmarshal(stamp, m); err != nil {
		return fmt.Errorf("%w: stamp: %w", graveler.ErrInvalidValue, err)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", graveler.ErrInvalidValue, fmt.Sprintf(format, args...))
}

// wrap says what was being done, and keeps nil as nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
