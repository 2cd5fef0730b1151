// SPDX-License-Identifier: Apache-2.0

// Package cursor keeps what lifecycle remembers between passes, in partition [Partition] of a key/value store:
//
//   - a [Cursor] per shard says up to when everything that was due has been done, under which rules;
//   - a [Position] per shard and source branch says how far each lane has come;
//   - a [Deferred] is an object to look at again at a known time;
//   - a [Walk] per source branch says how far a walk under way has come, and when the last one was.
//
// Reading is strict, because a position that is read wrong makes a pass skip what is due, or do all of it again. A record that is
// cut, altered, of another version, or that belongs under another key is an error that matches [ErrMalformed] and names partition
// and key; only one that is not there at all is a cold start. Positions, deferred objects and walks end in a checksum of their
// bytes. A cursor is plain JSON, in which a digit that was altered is another number: what a pass acts on is in the positions.
// Writing is as strict: what could not be read back is [graveler.ErrInvalidValue], and then nothing of the call has been written.
//
// Saving several records is not atomic: after an error any of them may have been saved. A pass saves positions before the cursor
// that vouches for them. Errors of the store come wrapped, so that [kv.ErrReadOnly] and the others still match. All times are
// nanoseconds since the Unix epoch, where 0 is none.
package cursor

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Partition is where the records are.
const Partition = "lifecycle"

// ErrMalformed is returned for a record that is not what its key says. It matches [graveler.ErrCorrupt] too.
var ErrMalformed = fmt.Errorf("malformed lifecycle record (%w)", graveler.ErrCorrupt)

// Store keeps the records. It holds nothing but the engine and is safe for concurrent use.
type Store struct{ kv kv.Store }

// New returns a Store on the engine, which stays the caller's to close.
func New(store kv.Store) *Store { return &Store{kv: store} }

// Malformed says what is wrong with the record of a key of Partition.
func Malformed(key string, problem error) error {
	return fmt.Errorf("%w: partition %q, key %q: %w", ErrMalformed, Partition, key, problem)
}

// get reads one record; false means that there is none.
func get[T any](ctx context.Context, s *Store, key string, decode func(key string, value []byte) (T, error)) (record T, found bool, err error) {
	item, err := s.kv.Get(ctx, []byte(Partition), []byte(key))
	if errors.Is(err, kv.ErrNotFound) {
		return record, false, nil
	}
	if err == nil {
		record, err = decode(key, item.Value)
	}
	if err != nil {
		var none T
		return none, false, fmt.Errorf("read %s: %w", key, err)
	}
	return record, true, nil
}

// scan yields the records whose keys begin with prefix, by key. One that is malformed is yielded as its error, and the scan goes
// on behind it; any other error is the last.
func scan[T any](ctx context.Context, s *Store, prefix string, decode func(key string, value []byte) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := s.each(ctx, prefix, func(key string, value []byte) bool {
			return yield(decode(key, value))
		})
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

// failed is a sequence that begins and ends with an error.
func failed[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

// each calls fn for the records whose keys begin with prefix until it returns false.
func (s *Store) each(ctx context.Context, prefix string, fn func(key string, value []byte) bool) error {
	it, err := s.kv.Scan(ctx, []byte(Partition), kv.ScanOptions{Prefix: []byte(prefix)})
	if err != nil {
		return fmt.Errorf("scan %s: %w", prefix, err)
	}
	for it.Next() {
		if !fn(string(it.Key()), it.Value()) {
			_ = it.Close() // there was no error yet, and what would come is not wanted
			return nil
		}
	}
	if err := it.Close(); err != nil {
		return fmt.Errorf("scan %s: %w", prefix, err)
	}
	return nil
}

// record is what is kept under a key of its own.
type record interface {
	key() string
	encode() ([]byte, error)
}

// save writes all records, or none where one of them is invalid.
func save[T record](ctx context.Context, s *Store, what string, records []T) error {
	writes := make([]kv.Write, 0, len(records))
	for _, r := range records {
		value, err := r.encode()
		if err != nil {
			return fmt.Errorf("save %s %q: %w", what, r.key(), err)
		}
		writes = append(writes, kv.Write{Key: []byte(r.key()), Value: value})
	}
	return s.write(ctx, "save "+what, writes)
}

// remove removes the records of the keys; one that is not there is fine.
func (s *Store) remove(ctx context.Context, what string, keys ...string) error {
	writes := make([]kv.Write, len(keys))
	for i, key := range keys {
		writes[i].Key = []byte(key)
	}
	return s.write(ctx, "remove "+what, writes)
}

func (s *Store) write(ctx context.Context, what string, writes []kv.Write) error {
	if len(writes) == 0 {
		return nil
	}
	if err := kv.SetMany(ctx, s.kv, []byte(Partition), writes); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", graveler.ErrInvalidValue, fmt.Sprintf(format, args...))
}
