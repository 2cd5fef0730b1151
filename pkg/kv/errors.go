// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"errors"
	"strconv"
	"strings"
)

// What a call found. Nothing has changed when one of these is returned.
var (
	// ErrNotFound is returned by Get for a key that does not exist.
	ErrNotFound = errors.New("key not found")

	// ErrPredicateFailed is returned by a conditional write whose condition does not hold.
	ErrPredicateFailed = errors.New("predicate failed")

	// ErrFenceFailed is returned by Apply when the condition on its fence does not hold.
	ErrFenceFailed = errors.New("fence failed")
)

// Input that no engine accepts. Nothing was sent to the engine when one of these is returned.
var (
	// ErrMissingPartition is returned for an empty partition.
	ErrMissingPartition = errors.New("missing partition")

	// ErrMissingKey is returned for an empty key.
	ErrMissingKey = errors.New("missing key")

	// ErrMissingValue is returned for a nil value. An empty one is fine.
	ErrMissingValue = errors.New("missing value")

	// ErrMissingPredicate is returned for the zero Predicate where a condition is needed.
	ErrMissingPredicate = errors.New("missing predicate")

	// ErrUnexpectedPredicate is returned by SetMany, whose writes cannot be conditional.
	ErrUnexpectedPredicate = errors.New("unexpected predicate")

	// ErrTooLarge is returned for more bytes or writes than Limits allows.
	ErrTooLarge = errors.New("too large")

	// ErrDuplicateKey is returned by Apply for a key that occurs twice, or that is also the fence.
	ErrDuplicateKey = errors.New("duplicate key")
)

// The state of a store.
var (
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("store is closed")

	// ErrReadOnly is returned by every write to a store that was opened read-only.
	ErrReadOnly = errors.New("store is read-only")
)

// Why a store could not be opened.
var (
	// ErrUnknownEngine is returned for a URL whose scheme names none of the engines at hand.
	ErrUnknownEngine = errors.New("unknown engine")

	// ErrInvalidURL is returned for a URL that has no scheme, or that its engine cannot make sense of.
	ErrInvalidURL = errors.New("invalid URL")

	// ErrLocked is returned when another process, or another part of this one, has the store open.
	ErrLocked = errors.New("locked by another process")

	// ErrSchemaNewer is returned for a store that was written by a newer program.
	ErrSchemaNewer = errors.New("schema is newer than this program")

	// ErrNotAStore is returned when something else than a store of ours is in its place.
	ErrNotAStore = errors.New("not a store")
)

// Wrap says which operation on which key an error comes from, and keeps nil as nil. The text is
// only built when somebody asks for it, because ErrNotFound is an everyday answer. A nil key is
// left out.
func Wrap(op string, partition, key []byte, err error) error {
	if err == nil {
		return nil
	}
	return &opError{op: op, partition: string(partition), key: string(key), err: err}
}

type opError struct {
	op, partition, key string
	err                error
}

func (e *opError) Unwrap() error { return e.err }

func (e *opError) Error() string {
	var b strings.Builder
	b.WriteString(e.op)
	b.WriteByte(' ')
	b.WriteString(printable(e.partition))
	if e.key != "" {
		b.WriteByte('/')
		b.WriteString(printable(e.key))
	}
	b.WriteString(": ")
	b.WriteString(e.err.Error())
	return b.String()
}

// printable escapes what a terminal should not see, and shortens what nobody would read.
func printable(s string) string {
	const most = 128
	dots := ""
	if len(s) > most {
		s, dots = s[:most], "..."
	}
	quoted := strconv.Quote(s)
	return quoted[1:len(quoted)-1] + dots
}
