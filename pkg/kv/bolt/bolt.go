// SPDX-License-Identifier: Apache-2.0

// Package bolt is the embedded key/value engine: one file, a B+tree with copy-on-write pages by
// go.etcd.io/bbolt, for one process at a time (or several that only read).
//
// The URL is bolt:PATH, for example bolt:data/meta.db or bolt:///var/lib/moraine/meta.db. The path is
// taken as it stands, without percent-decoding.
//
// # The file
//
// Each partition is a bucket, named by the letter p and the partition. The bucket "moraine" marks the
// file as ours and holds the version of this layout, so that another program's database is never
// taken for a store. A new file is made under a temporary name, completed, synced and then linked to
// its own, so that a crash leaves no half-made store. Files are created 0600, directories 0700.
//
// # Writes
//
// One goroutine, the committer, takes all writes that are waiting and performs them one after the
// other in one transaction, with one sync of the file; while it does, the next ones gather. So a
// lone write costs what it must, and the throughput of many grows with their number. Each write gets
// its own outcome: a failed predicate or fence is checked before anything of that write is changed
// and does not concern the others. A context that ends while its write is still waiting withdraws
// it; afterwards the call waits for the outcome, since an answer is worth more than haste.
//
// The list of free pages is not stored with every commit, which would make each commit after a large
// drop pay for it. Close stores it once; after a crash the next Open walks through all pages to find
// it again, and checks them first. A file that was closed in order is opened without a check.
//
// # Reads
//
// Each Get and each page of a scan is a short read transaction. None stays open between two calls,
// since the pages that a reader sees cannot be used again and the file would grow.
//
// # Errors
//
// After a commit has failed, on a full disk for example, reads go on, and writes too as soon as there
// is room. If the file turns out to be corrupt, the call that notices fails with a text that says so,
// and if it was a write, all later writes do.
package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Store is an open file. It implements kv.Store, kv.ManySetter, kv.PartitionDropper and kv.Publisher.
type Store struct {
	kv.Writer
	db        *bbolt.DB
	committer *committer // nil if the file is open for reading only
	close     func() error
}

var (
	_ kv.ManySetter       = (*Store)(nil)
	_ kv.PartitionDropper = (*Store)(nil)
	_ kv.Publisher        = (*Store)(nil)
)

func newStore(db *bbolt.DB) *Store {
	s := &Store{db: db}
	s.Writer = kv.Writer{Perform: s.perform, Bounds: kv.Limits{
		KeyBytes:    kv.MaxKeyBytes,
		ValueBytes:  kv.MaxValueBytes,
		ApplyWrites: 1000,
		ApplyBytes:  4 << 20,
		CheapFences: true,
	}}
	if !db.IsReadOnly() {
		s.committer = startCommitter(db)
	}
	s.close = sync.OnceValue(func() error {
		var err error
		if s.committer != nil {
			s.committer.stop()
			if s.committer.broken == nil {
				err = storeFreeList(db)
			}
		}
		return errors.Join(err, db.Close())
	})
	return s
}

// Close performs the writes that are waiting, waits for the reads in progress and closes the file.
func (s *Store) Close() error { return s.close() }

// storeFreeList spares the next Open the walk through all pages.
func storeFreeList(db *bbolt.DB) error {
	db.NoFreelistSync = false
	err := update(db, func(*bbolt.Tx) (bool, error) { return true, nil })
	if err != nil {
		return fmt.Errorf("store the list of free pages: %w", err)
	}
	return nil
}

// Get returns the value of a key.
func (s *Store) Get(ctx context.Context, partition, key []byte) (item kv.Item, err error) {
	if err := s.Limits().CheckKey(partition, key); err != nil {
		return kv.Item{}, kv.Wrap("get", partition, key, err)
	}
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		value, found := lookup(tx, partition, key)
		if !found {
			return kv.ErrNotFound
		}
		item = kv.Item{Value: clone(value), Predicate: kv.Equals(value)}
		return nil
	})
	return item, kv.Wrap("get", partition, key, err)
}

// view runs a short read transaction.
func (s *Store) view(ctx context.Context, read func(tx *bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := guard(func() error { return s.db.View(read) })
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return kv.ErrClosed
	}
	return err
}

func bucketName(partition []byte) []byte {
	return append([]byte{'p'}, partition...)
}

func lookup(tx *bbolt.Tx, partition, key []byte) (value []byte, found bool) {
	b := tx.Bucket(bucketName(partition))
	if b == nil {
		return nil, false
	}
	value = b.Get(key)
	return value, value != nil
}

// clone copies out of the mapped file and never returns nil, not even for an empty value.
func clone(b []byte) []byte {
	return append([]byte{}, b...)
}

var errCorrupt = errors.New("database file is corrupt")

// guard turns a panic into errCorrupt. bbolt trusts the file: a page that is not what it should be
// ends in a panic, and one that is missing in a fault of the memory map.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errCorrupt, r)
		}
	}()
	return f()
}
