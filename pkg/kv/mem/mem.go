// SPDX-License-Identifier: Apache-2.0

// Package mem is the key/value engine for tests: ordered, safe for concurrent use, and gone when the
// process ends. Every [Open] of a mem: URL, and every [New], makes a store of its own.
//
// Each partition is a skip list; one lock guards them all, so writes take effect one after another
// and a page of a scan is a snapshot. Inserting, finding and seeking are logarithmic.
//
// The URL mem:?fences=costly opens a store whose Limits say that fences are costly. They work all the
// same; it is for tests of what callers do instead where fences are costly.
package mem

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Store is an engine in memory. It implements kv.Store, kv.ManySetter, kv.PartitionDropper and kv.Publisher.
type Store struct {
	kv.Writer
	readOnly bool

	mu         sync.RWMutex
	partitions map[string]*skipList
	closed     bool
}

var (
	_ kv.ManySetter       = (*Store)(nil)
	_ kv.PartitionDropper = (*Store)(nil)
	_ kv.Publisher        = (*Store)(nil)
)

// New returns an empty store with cheap fences.
func New() *Store {
	s := &Store{partitions: make(map[string]*skipList)}
	s.Writer = kv.Writer{Perform: s.apply, Bounds: kv.Limits{
		KeyBytes:    kv.MaxKeyBytes,
		ValueBytes:  kv.MaxValueBytes,
		ApplyWrites: 1000,
		ApplyBytes:  4 << 20,
		CheapFences: true,
	}}
	return s
}

// Open is the kv.Opener of mem: and mem:?fences=costly.
func Open(ctx context.Context, url string, o kv.OpenOptions) (kv.Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := New()
	s.readOnly = o.ReadOnly
	_, rest, _ := strings.Cut(url, ":")
	switch rest {
	case "":
	case "?fences=costly":
		s.Bounds.CheapFences = false
	default:
		return nil, fmt.Errorf("%w: a mem store is opened as mem: or mem:?fences=costly", kv.ErrInvalidURL)
	}
	return s, nil
}

// Close frees the contents.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.partitions = true, nil
	return nil
}

// Get returns the value of a key.
func (s *Store) Get(ctx context.Context, partition, key []byte) (kv.Item, error) {
	if err := s.Bounds.CheckKey(partition, key); err != nil {
		return kv.Item{}, kv.Wrap("get", partition, key, err)
	}
	item, err := s.get(ctx, partition, key)
	return item, kv.Wrap("get", partition, key, err)
}

func (s *Store) get(ctx context.Context, partition, key []byte) (kv.Item, error) {
	if err := ctx.Err(); err != nil {
		return kv.Item{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return kv.Item{}, kv.ErrClosed
	}
	value, found := s.lookup(partition, key)
	if !found {
		return kv.Item{}, kv.ErrNotFound
	}
	return kv.Item{Value: bytes.Clone(value), Predicate: kv.Equals(value)}, nil
}

// lookup needs the lock.
func (s *Store) lookup(partition, key []byte) (value []byte, found bool) {
	list, ok := s.partitions[string(partition)]
	if !ok {
		return nil, false
	}
	n := list.seek(key)
	if n == nil || n.key != string(key) {
		return nil, false
	}
	return n.value, true
}

// Scan reads a partition in key order, in pages.
func (s *Store) Scan(ctx context.Context, partition []byte, o kv.ScanOptions) (kv.Iterator, error) {
	if err := s.checkScan(ctx, partition); err != nil {
		return nil, kv.Wrap("scan", partition, nil, err)
	}
	return kv.NewIterator(ctx, partition, o, s.readPage), nil
}

func (s *Store) checkScan(ctx context.Context, partition []byte) error {
	if err := s.Bounds.CheckPartition(partition); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return kv.ErrClosed
	}
	return nil
}

func (s *Store) readPage(_ context.Context, r kv.PageRequest) (page []kv.Entry, more bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, false, kv.ErrClosed
	}
	list, ok := s.partitions[string(r.Partition)]
	if !ok {
		return nil, false, nil
	}
	b := kv.NewPage(r)
	for n := list.seek(r.From); n != nil; n = n.next[0] {
		if r.End != nil && n.key >= string(r.End) {
			break
		}
		if b.Full() {
			return b.Entries(), true, nil
		}
		b.Add([]byte(n.key), n.value)
	}
	return b.Entries(), false, nil
}
