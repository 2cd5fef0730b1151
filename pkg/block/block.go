// SPDX-License-Identifier: Apache-2.0

// Package block is the contract between Moraine and the place that keeps its immutable files: the
// ranges and metaranges of committed trees.
//
// A [Storage] maps a name to bytes that never change. A file is built in memory, a few MiB at most,
// and its name is derived from its contents. That makes the contract small: writing a name again is
// nothing to do, two writers of one name cannot disagree, and readers need no locks and no versions.
//
// The pieces: [Open] picks an engine by the scheme of a URL; [Sub] gives a part of a storage its own
// namespace; [ReadOnly] takes the writing methods away; [CheckName], [CheckPrefix] and [CheckRange]
// refuse bad input on behalf of those who write an engine. Package local keeps files in a directory,
// mem keeps them in memory for tests, and blocktest is this contract in executable form.
//
// # What every engine promises
//
//   - A name shows nothing or the whole file, at every instant and after every failure.
//   - Nothing may refer to a file before [Storage.Sync] has returned nil for it: only then does it
//     survive the loss of power.
//   - Slices passed in may be reused as soon as the call returns; slices handed out belong to the caller.
//   - Bad input is refused with a sentinel error of this package before anything is touched.
//   - A cancelled context gives its error (wrapped) or else a complete and correct result.
//   - After Close every call fails with [ErrClosed].
//   - Errors name the operation and the file.
//
// # Names
//
// A name is a slash-separated relative path of at most [MaxNameBytes]. Its segments hold a-z, 0-9,
// dot, underscore and hyphen, at most [MaxSegmentBytes] of them, and are neither "." nor "..".
// Upper case is left out so that file systems that fold case are no trap. A name must not also be a
// directory of another name: whether "a" and "a/b" can both be stored depends on the engine, and
// the second Put may fail.
package block

import (
	"context"
	"iter"
	"time"
)

// Storage keeps immutable files. It is safe for concurrent use, also by several processes where the
// engine's files are shared. Every method that takes a name answers [ErrInvalidName] to a bad one.
type Storage interface {
	// Put stores data under a name, whole or not at all. A name that exists keeps its file (and its
	// ModTime), and nil is returned; only a file of another size, which cannot be what the name
	// promises, is replaced. After an error the name may or may not exist; putting again is safe.
	Put(ctx context.Context, name string, data []byte) error

	// Get returns a whole file, or [ErrNotFound].
	Get(ctx context.Context, name string) ([]byte, error)

	// GetRange returns exactly length bytes from offset on. A file that ends before is [ErrShort];
	// nothing larger than the file is ever allocated. A negative offset or length is [ErrInvalidRange].
	GetRange(ctx context.Context, name string, offset, length int64) ([]byte, error)

	// Stat says what is known about a file without reading it, or [ErrNotFound].
	Stat(ctx context.Context, name string) (Info, error)

	// List gives the files whose names start with prefix (any beginning of a name; empty for all),
	// ascending by the bytes of the name. What is put or deleted meanwhile may be seen or not, all else is
	// seen exactly once. An error is the last thing it yields.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Delete removes a file. One that is not there is nil. A removal may be undone by loss of power.
	Delete(ctx context.Context, name string) error

	// Refresh sets the ModTime of a file to now, so that it counts as young again, or returns
	// [ErrNotFound]. It survives the loss of power once Sync has returned.
	Refresh(ctx context.Context, name string) error

	// Sync makes files survive the loss of power, whoever put them, with all that leads to them.
	// A name that is missing is [ErrNotFound]. One call for all files of a tree is cheaper than many.
	Sync(ctx context.Context, names []string) error

	// Close releases what the storage holds. Closing again is nil.
	Close() error
}

// Info is what a storage knows about a file.
type Info struct {
	Name    string
	Size    int64     // in bytes
	ModTime time.Time // when it was put or last refreshed, by the storage's clock
}
