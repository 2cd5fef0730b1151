// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Store is a store all of whose calls are parked at the scheduler: Get, the writes, and each page of a scan.
type Store struct {
	kv.Store
	scheduler *Scheduler

	// OnWrite, if set, is told of each write of one key that took place, and when. A nil value is a removal.
	OnWrite func(clock int, partition, key, value []byte)
	// Apart makes the steps of kv.Publish calls of their own, as for an engine that cannot do them in one.
	Apart bool

	mu         sync.Mutex
	partitions map[string]bool // that were written to
}

// NewStore wraps a store that does not block.
func NewStore(s kv.Store, scheduler *Scheduler) *Store {
	return &Store{Store: s, scheduler: scheduler, partitions: map[string]bool{}}
}

// Partitions lists the partitions that hold something.
func (s *Store) Partitions(ctx context.Context) ([]string, error) {
	var held []string
	for p := range s.partitions {
		it, err := s.Store.Scan(ctx, []byte(p), kv.ScanOptions{})
		if err != nil {
			return nil, err
		}
		if it.Next() {
			held = append(held, p)
		}
		if err := it.Close(); err != nil {
			return nil, err
		}
	}
	slices.Sort(held)
	return held, nil
}

// what describes a call by what is the same in every run: names, but not UIDs, tokens and times.
func what(method string, partition, key []byte) string {
	kind, _, _ := strings.Cut(string(partition), ":") // a token without its random part
	name := string(key)
	for _, prefix := range []string{"commits/", "log/", "log-names/"} {
		if strings.HasPrefix(name, prefix) {
			name = prefix
		}
	}
	switch {
	case kind == "cleanup-tokens":
		name, _, _ = strings.Cut(name, ":")
	case kind == string(partition) && len(kind) > 21:
		kind = kind[:len(kind)-20] // a repository's partition without its UID
	}
	return fmt.Sprintf("%s %s %q", method, kind, name)
}

// write parks a write. It may happen late, when its caller has long used its slices for something else and ended its context; so
// do must have copies, and gets a context that does not end.
func (s *Store) write(ctx context.Context, method string, partition, key []byte, do func(ctx context.Context) error) error {
	s.mu.Lock()
	s.partitions[string(partition)] = true
	s.mu.Unlock()
	return s.scheduler.park(ctx, what(method, partition, key), true, func() error { return do(context.WithoutCancel(ctx)) })
}

// writeKey is write for one key.
func (s *Store) writeKey(ctx context.Context, method string, partition, key, value []byte, do func(ctx context.Context, partition, key, value []byte) error) error {
	partition, key, value = bytes.Clone(partition), bytes.Clone(key), bytes.Clone(value)
	return s.write(ctx, method, partition, key, func(ctx context.Context) error {
		err := do(ctx, partition, key, value)
		if err == nil && s.OnWrite != nil {
			s.OnWrite(s.scheduler.Now(), partition, key, value)
		}
		return err
	})
}

func (s *Store) Get(ctx context.Context, partition, key []byte) (item kv.Item, err error) {
	err = s.scheduler.park(ctx, what("Get", partition, key), false, func() (err error) {
		item, err = s.Store.Get(ctx, partition, key)
		return err
	})
	return item, err
}

func (s *Store) Set(ctx context.Context, partition, key, value []byte) error {
	return s.writeKey(ctx, "Set", partition, key, value, s.Store.Set)
}

func (s *Store) SetIf(ctx context.Context, partition, key, value []byte, p kv.Predicate) error {
	return s.writeKey(ctx, "SetIf", partition, key, value, func(ctx context.Context, partition, key, value []byte) error {
		return s.Store.SetIf(ctx, partition, key, value, p)
	})
}

func (s *Store) Delete(ctx context.Context, partition, key []byte) error {
	return s.writeKey(ctx, "Delete", partition, key, nil, func(ctx context.Context, partition, key, _ []byte) error {
		return s.Store.Delete(ctx, partition, key)
	})
}

func (s *Store) DeleteIf(ctx context.Context, partition, key []byte, p kv.Predicate) error {
	return s.writeKey(ctx, "DeleteIf", partition, key, nil, func(ctx context.Context, partition, key, _ []byte) error {
		return s.Store.DeleteIf(ctx, partition, key, p)
	})
}

func (s *Store) Apply(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) error {
	partition, writes = bytes.Clone(partition), slices.Clone(writes)
	var first []byte
	for i := range writes {
		w := &writes[i]
		w.Key, w.Value = bytes.Clone(w.Key), bytes.Clone(w.Value)
		first = writes[0].Key
	}
	return s.write(ctx, "Apply", partition, first, func(ctx context.Context) error { return s.Store.Apply(ctx, partition, writes, fence) })
}

// apart hides the capabilities of a store.
type apart struct{ kv.Store }

// Publish is one step, unless Apart is set.
func (s *Store) Publish(ctx context.Context, before []kv.Record, last kv.Record, p kv.Predicate) error {
	if s.Apart {
		return kv.Publish(ctx, apart{s}, before, last, p)
	}
	records := append(slices.Clone(before), last)
	s.mu.Lock()
	for i := range records {
		r := &records[i]
		r.Partition, r.Key, r.Value = bytes.Clone(r.Partition), bytes.Clone(r.Key), bytes.Clone(r.Value)
		s.partitions[string(r.Partition)] = true
	}
	s.mu.Unlock()
	before, last = records[:len(before)], records[len(before)]
	return s.write(ctx, "Publish", last.Partition, last.Key, func(ctx context.Context) error {
		err := kv.Publish(ctx, s.Store, before, last, p)
		for _, r := range records {
			if err == nil && s.OnWrite != nil {
				s.OnWrite(s.scheduler.Now(), r.Partition, r.Key, r.Value)
			}
		}
		return err
	})
}

// DropPartition is one step here; engines may take several.
func (s *Store) DropPartition(ctx context.Context, partition []byte) error {
	return s.write(ctx, "DropPartition", partition, nil, func(ctx context.Context) error { return kv.DropPartition(ctx, s.Store, partition) })
}

func (s *Store) Scan(ctx context.Context, partition []byte, o kv.ScanOptions) (kv.Iterator, error) {
	partition = bytes.Clone(partition)
	return kv.NewIterator(ctx, partition, o, func(ctx context.Context, r kv.PageRequest) (entries []kv.Entry, more bool, err error) {
		err = s.scheduler.park(ctx, what("Scan", partition, r.From), false, func() (err error) {
			entries, more, err = s.page(ctx, r)
			return err
		})
		return entries, more, err
	}), nil
}

func (s *Store) page(ctx context.Context, r kv.PageRequest) (entries []kv.Entry, more bool, err error) {
	it, err := s.Store.Scan(ctx, r.Partition, kv.ScanOptions{Start: r.From})
	if err != nil {
		return nil, false, err
	}
	for it.Next() && (r.End == nil || bytes.Compare(it.Key(), r.End) < 0) {
		if len(entries) == r.Limit {
			more = true
			break
		}
		entries = append(entries, kv.Entry{Key: it.Key(), Value: it.Value()})
	}
	return entries, more, it.Close()
}
