// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// waitingWrites is how many writes can wait for a transaction without their callers having to be scheduled for it.
const waitingWrites = 1024

// Bolt is a bbolt file with one bucket, opened as the store opens its own.
type Bolt struct {
	db      *bbolt.DB
	writes  chan boltWrite
	stopped chan struct{}
}

type boltWrite struct {
	key, value []byte
	done       chan error
}

func bucket(tx *bbolt.Tx) *bbolt.Bucket { return tx.Bucket([]byte("records")) }

// OpenBolt makes a new file.
func OpenBolt(path string) (*Bolt, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, NoStatistics: true})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("records"))
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a bucket in %s: %w", path, err), db.Close())
	}
	b := &Bolt{db: db, writes: make(chan boltWrite, waitingWrites), stopped: make(chan struct{})}
	go b.commitGroups()
	return b, nil
}

// Set writes in a transaction with all others that wait when the one before is done.
func (b *Bolt) Set(_ context.Context, key, value []byte) error {
	w := boltWrite{key, value, make(chan error, 1)}
	b.writes <- w
	return <-w.done
}

// commitGroups is the bare loop of a grouped commit.
func (b *Bolt) commitGroups() {
	defer close(b.stopped)
	for first := range b.writes {
		group := []boltWrite{first}
		for range len(b.writes) {
			group = append(group, <-b.writes)
		}
		err := b.db.Update(func(tx *bbolt.Tx) error {
			for _, w := range group {
				if err := bucket(tx).Put(w.key, w.value); err != nil {
					return err
				}
			}
			return nil
		})
		for _, w := range group {
			w.done <- err
		}
	}
}

// Batch writes by bbolt's own way to share a transaction.
func (b *Bolt) Batch(_ context.Context, key, value []byte) error {
	return b.db.Batch(func(tx *bbolt.Tx) error { return bucket(tx).Put(key, value) })
}

// Load writes records in few transactions.
func (b *Bolt) Load(records []Record) error {
	const perTransaction = 20_000
	for len(records) > 0 {
		n := min(perTransaction, len(records))
		err := b.db.Update(func(tx *bbolt.Tx) error {
			for _, r := range records[:n] {
				if err := bucket(tx).Put(r.Key, r.Value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		records = records[n:]
	}
	return nil
}

// Get returns a copy of a value, nil where there is none.
func (b *Bolt) Get(key []byte) (value []byte, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		value = append([]byte(nil), bucket(tx).Get(key)...)
		return nil
	})
	return value, err
}

// Close waits for the writes under way. No other may follow.
func (b *Bolt) Close() error {
	close(b.writes)
	<-b.stopped
	return b.db.Close()
}
