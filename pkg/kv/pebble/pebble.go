// SPDX-License-Identifier: Apache-2.0

// Package pebble is the embedded key/value engine for more data and more writers than suit one file: a
// directory with a log-structured merge tree by github.com/cockroachdb/pebble, for one process at a
// time (or several that only read).
//
// The URL is pebble:DIR, for example pebble:data/meta or pebble:///var/lib/moraine/meta. The path is
// taken as it stands, without percent-decoding.
//
// # The directory
//
// Keys are stored behind their partition and its length, so that a partition is one contiguous range,
// which DropPartition removes with one record. The file MORAINE marks the directory as ours and holds
// the version of this layout: a directory without it is created in if it is empty, and otherwise left
// alone. Directories are created 0700, files 0600.
//
// # Writes
//
// Every write is one batch, and one record of pebble's log, that is durable when the write returns.
// Pebble syncs its log for all that wait at a moment, so throughput grows with the number of writers.
//
// A write holds locks on its keys while it evaluates its predicates and until the batch is visible,
// but not while the log is synced: otherwise writes of one key, and of a fence, would each pay for a
// sync of their own. That is safe for writes, because the log is written and synced in the order in
// which batches become visible. A write that was let through by a value which is not durable yet is
// behind that value in the log, and cannot be there after a crash without it. It would not be safe
// for readers, who might act upon a value, delete a file for example, that a crash then takes back.
// So whatever read a key, a page or a failed predicate returns has first become durable: a read waits
// for the sync under way if, and only if, a write has just touched what it read. No lock is held
// meanwhile.
//
// A context that has ended before a write begins stops it; afterwards the call waits for the outcome.
//
// # Reads
//
// Each page of a scan is read with an iterator of its own, so that a scan keeps no old files alive
// between two pages.
//
// # Errors
//
// After a failed write to the disk, a full one for example, or a failure in the background, such as a
// damaged file met by a compaction, the store takes no more writes until it is opened again. Reads go
// on, except of what a failed write may have changed. Damage that a read meets is an error of that
// read alone: pebble has checksums for everything.
//
// # Space
//
// A store takes up to 128 MiB of memory for blocks and recent writes (more while it falls behind with
// flushing). The space of what is deleted comes back with later flushes and compactions.
package pebble

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Store is an open directory. It implements kv.Store, kv.ManySetter, kv.PartitionDropper and kv.Publisher.
type Store struct {
	kv.Writer
	db        *pebble.DB
	disk      *disk
	lock      io.Closer // of the directory
	readOnly  bool
	stripes   *stripes
	unsettled *unsettled
	close     func() error

	mu     sync.RWMutex // held shared by every call, since pebble must not be closed meanwhile
	closed bool
}

var (
	_ kv.ManySetter       = (*Store)(nil)
	_ kv.PartitionDropper = (*Store)(nil)
	_ kv.Publisher        = (*Store)(nil)
)

func newStore(db *pebble.DB, d *disk, lock io.Closer, readOnly bool) *Store {
	s := &Store{db: db, disk: d, lock: lock, readOnly: readOnly, stripes: newStripes(), unsettled: newUnsettled()}
	s.Writer = kv.Writer{Perform: s.write, Bounds: kv.Limits{
		KeyBytes:    kv.MaxKeyBytes,
		ValueBytes:  kv.MaxValueBytes,
		ApplyWrites: 1000,
		ApplyBytes:  4 << 20,
		CheapFences: true,
	}}
	s.close = sync.OnceValue(s.shut)
	return s
}

// Close waits for the calls in progress and closes the directory. It returns what has stopped the
// writes of a store that has failed, in case no write was told.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	err := s.disk.failure() // not of what is given up from here on
	s.disk.release()
	return errors.Join(err, s.db.Close(), s.lock.Close())
}

// enter begins a call, which leave ends.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return kv.ErrClosed
	}
	return nil
}

func (s *Store) leave() { s.mu.RUnlock() }

// Get returns the value of a key.
func (s *Store) Get(ctx context.Context, partition, key []byte) (kv.Item, error) {
	var item kv.Item
	err := s.Limits().CheckKey(partition, key)
	if err == nil {
		item, err = s.get(ctx, partition, encode(partition, key))
	}
	return item, kv.Wrap("get", partition, key, err)
}

func (s *Store) get(ctx context.Context, partition, k []byte) (kv.Item, error) {
	if err := s.enter(ctx); err != nil {
		return kv.Item{}, err
	}
	defer s.leave()
	value, found, err := s.lookup(k)
	if err == nil {
		err = s.settleKey(ctx, partition, k)
	}
	switch {
	case err != nil:
		return kv.Item{}, err
	case !found:
		return kv.Item{}, kv.ErrNotFound
	}
	return kv.Item{Value: value, Predicate: kv.Equals(value)}, nil
}

// lookup reads what is visible, durable or not. The value is a copy, and not nil if it is found.
func (s *Store) lookup(k []byte) (value []byte, found bool, err error) {
	stored, closer, err := s.db.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return clone(stored), true, closer.Close()
}

// clone never returns nil, not even for an empty value.
func clone(b []byte) []byte { return append([]byte{}, b...) }
