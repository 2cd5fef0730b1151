// SPDX-License-Identifier: Apache-2.0

// Package kv is the contract between Moraine and the key/value engine that keeps everything that
// changes: repositories, branches, staged entries, cursors.
//
// A [Store] maps (partition, key) to a value. It is narrow so that very different engines can give
// it: point reads and writes, conditional writes, an ordered scan of one partition, and [Store.Apply],
// an atomic batch guarded by a [Fence]. An engine that can do more says so with a capability
// interface ([ManySetter], [PartitionDropper], [Publisher]); callers use [SetMany], [DropPartition] and
// [Publish], which work with any Store.
//
// The pieces: [Open] picks an engine by the scheme of a URL and checks the schema version;
// [GetMessage], [SetMessage], [SetMessageIf] and [ScanMessages] put protobuf messages on top; and for
// those who write an engine, the Check methods of [Limits] refuse bad input, [NewIterator] turns a
// function that reads one page into an [Iterator], and [Wrap] names the operation in an error.
// Package kvtest holds the conformance suite, which is this contract in executable form.
//
// # What every engine promises
//
//   - Partitions never run into each other, whatever bytes they and their keys hold.
//   - Linearizable per key: a read that starts after a write returned sees that write or a newer one.
//   - Durable: a write that returned nil survives the loss of the process and of power (all engines
//     but mem, which keeps nothing).
//   - Slices passed in may be reused as soon as the call returns; slices handed out belong to the caller.
//   - Bad input is refused with one of the sentinel errors before anything reaches the engine.
//   - A cancelled context gives its error (wrapped) or else a complete and correct result.
//   - After Close every call fails with [ErrClosed].
//
// # Unknown outcomes
//
// A write that returns anything but nil or a sentinel of this package (a lost connection, a deadline,
// a full disk) has an unknown outcome: it may have happened, or may still happen. Finding one's own
// bytes stored proves that it did. That it did not is proved only by a later conditional write of
// one's own that succeeds on the key. An engine therefore repeats a write by itself only when it
// knows that the first attempt was not executed. Reads may be repeated freely.
package kv

import "context"

// Bounds that hold for every engine. An engine whose own bounds are tighter says so in [Limits].
const (
	MaxPartitionBytes = 512
	MaxKeyBytes       = 1280
	MaxValueBytes     = 256 << 10
)

// Store is a key/value engine. It is safe for concurrent use.
//
// Keys and partitions are any non-empty bytes within the limits; values may be empty but not nil.
// Every method checks its input first: [ErrMissingPartition], [ErrMissingKey], [ErrMissingValue],
// [ErrMissingPredicate] or [ErrTooLarge] mean that nothing was sent to the engine. A store opened
// read-only answers every write with [ErrReadOnly].
type Store interface {
	// Get returns the value of a key and the predicate that holds while it stays the same.
	// A key that is not there is [ErrNotFound].
	Get(ctx context.Context, partition, key []byte) (Item, error)

	// Set stores a value whether or not the key exists.
	Set(ctx context.Context, partition, key, value []byte) error

	// SetIf stores a value if the predicate holds, else it changes nothing and returns
	// [ErrPredicateFailed].
	SetIf(ctx context.Context, partition, key, value []byte, p Predicate) error

	// Delete removes a key. Removing a key that is not there succeeds.
	Delete(ctx context.Context, partition, key []byte) error

	// DeleteIf removes a key if the predicate holds, else it changes nothing and returns
	// [ErrPredicateFailed].
	DeleteIf(ctx context.Context, partition, key []byte, p Predicate) error

	// Scan reads the keys of a partition in ascending byte order. A partition that does not exist
	// is an empty one. Each key that is there, unchanged, for the whole scan is seen exactly once;
	// one that changes meanwhile is seen as it was, as it became, or not at all. The context
	// governs the whole scan, not only this call. The caller must Close the iterator.
	Scan(ctx context.Context, partition []byte, o ScanOptions) (Iterator, error)

	// Apply performs all writes, which are of one partition, or none of them. It returns
	// [ErrPredicateFailed] when the predicate of one write does not hold, and [ErrFenceFailed]
	// when the fence, which may be nil, does not; in both cases nothing has changed. With no
	// writes it only checks the fence.
	//
	// A key that serves as a fence must only ever be written by SetIf, DeleteIf and, as the last
	// record, Publish: those exclude the Apply calls that rely on it, and the other writes do not. A key that occurs
	// twice, or that is also the fence, is [ErrDuplicateKey]. More than the engine can do at once
	// is [ErrTooLarge]; every engine can do one write with one fence, and an engine with
	// CheapFences at least 100 writes and 1 MiB.
	Apply(ctx context.Context, partition []byte, writes []Write, fence *Fence) error

	// Limits returns what the engine accepts. It costs nothing and works after Close.
	Limits() Limits

	// Close waits for the calls in progress and releases everything. Closing twice is harmless.
	Close() error
}

// Item is a stored value.
type Item struct {
	Value     []byte    // never nil
	Predicate Predicate // holds as long as exactly these bytes are stored
}

// Write is one element of a batch.
type Write struct {
	Key   []byte
	Value []byte     // nil deletes the key
	If    *Predicate // nil writes unconditionally
}

// Fence makes a batch depend on a key, of any partition, that the batch does not write.
type Fence struct {
	Partition []byte
	Key       []byte
	Predicate Predicate
}

// Limits tells what an engine accepts, in bytes and numbers.
type Limits struct {
	KeyBytes    int  // longest key
	ValueBytes  int  // longest value
	ApplyWrites int  // most writes in one Apply
	ApplyBytes  int  // largest sum of key and value lengths in one Apply
	CheapFences bool // a fence costs little and many may hold the same one at a time
}

// ScanOptions selects what a scan reads. The zero value reads the whole partition.
type ScanOptions struct {
	Start     []byte // first key of interest, inclusive
	Prefix    []byte // only keys that begin with this
	BatchSize int    // how many entries the first page should hold; 0 lets the engine choose
}

// Iterator walks over the entries of a scan. It belongs to one goroutine.
//
//	for it.Next() {
//		use(it.Key(), it.Value())
//	}
//	return it.Close()
type Iterator interface {
	// Next moves to the next entry. False means the end, or an error, which is then in Err.
	Next() bool

	// SeekGE sets the position so that the next call of Next moves to the first key that is not
	// less than key and begins with the scan's prefix. It may go forward and backward, before
	// the scan's Start too, and away from the end. It reads nothing by itself and does not clear
	// an error. Until Next is called, Key and Value return nil.
	SeekGE(key []byte)

	// Key and Value return the current entry, or nil where there is none: before the first Next
	// and after one that returned false. The slices belong to the caller; they stay as they are
	// when the iterator moves on or is closed.
	Key() []byte
	Value() []byte

	// Err returns the error that ended the iteration. It never changes back to nil.
	Err() error

	// Close releases the iterator and returns Err, so that a scan cut short by an error cannot
	// pass for a complete one. Next is false afterwards. Closing twice is harmless.
	Close() error
}
