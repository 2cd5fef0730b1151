// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/moraine-store/moraine/pkg/kv"
)

// ErrInjected is what a [Script] fails a call with.
var ErrInjected = errors.New("injected fault")

// Op is a call on its way to a store.
type Op struct {
	// Method is the name of the method of kv.Store, kv.ManySetter, kv.PartitionDropper or kv.Publisher, or Next
	// for one step of a scan.
	Method string

	Partition string // empty for Close
	Key       string // for Get, Set, SetIf, Delete, DeleteIf and, of the last record, Publish

	N      int // how many calls of this method there have been, this one included
	Writes int // for a method that writes: how many such calls there have been, this one included
}

// FaultyStore passes calls on as its script has it. It is safe for concurrent use.
type FaultyStore struct {
	store  kv.Store
	script Script

	mu     sync.Mutex
	counts map[string]int
	writes int
}

var (
	_ kv.ManySetter       = (*FaultyStore)(nil)
	_ kv.PartitionDropper = (*FaultyStore)(nil)
	_ kv.Publisher        = (*FaultyStore)(nil)
)

// Faulty wraps a store so that every call but Limits goes through the script; nil stands for one that
// makes every call. The arguments are copied, so that a script may make a call when its caller has
// long had an answer. SetMany, DropPartition and Publish reach the script as such if the store is capable
// of them, and else as the calls that kv.SetMany, kv.DropPartition and kv.Publish make instead.
func Faulty(store kv.Store, script Script) *FaultyStore {
	if script == nil {
		script = Chain()
	}
	return &FaultyStore{store: store, script: script, counts: make(map[string]int)}
}

func (f *FaultyStore) read(ctx context.Context, op Op, call func(context.Context) error) error {
	return f.script(ctx, f.count(op, false), call)
}

func (f *FaultyStore) write(ctx context.Context, op Op, call func(context.Context) error) error {
	return f.script(ctx, f.count(op, true), call)
}

func (f *FaultyStore) count(op Op, writes bool) Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[op.Method]++
	op.N = f.counts[op.Method]
	if writes {
		f.writes++
		op.Writes = f.writes
	}
	return op
}

func opOn(method string, partition, key []byte) Op {
	return Op{Method: method, Partition: string(partition), Key: string(key)}
}

// own replaces slices, which the caller may reuse once he has his answer, by copies.
func own(borrowed ...*[]byte) {
	for _, b := range borrowed {
		*b = bytes.Clone(*b)
	}
}

func ownWrites(writes []kv.Write) []kv.Write {
	writes = slices.Clone(writes)
	for i := range writes {
		own(&writes[i].Key, &writes[i].Value)
		if p := writes[i].If; p != nil {
			copied := *p
			writes[i].If = &copied
		}
	}
	return writes
}

func (f *FaultyStore) Get(ctx context.Context, partition, key []byte) (kv.Item, error) {
	own(&partition, &key)
	var item kv.Item
	err := f.read(ctx, opOn("Get", partition, key), func(ctx context.Context) (err error) {
		item, err = f.store.Get(ctx, partition, key)
		return err
	})
	if err != nil {
		return kv.Item{}, err
	}
	return item, nil
}

func (f *FaultyStore) Set(ctx context.Context, partition, key, value []byte) error {
	own(&partition, &key, &value)
	return f.write(ctx, opOn("Set", partition, key), func(ctx context.Context) error {
		return f.store.Set(ctx, partition, key, value)
	})
}

func (f *FaultyStore) SetIf(ctx context.Context, partition, key, value []byte, p kv.Predicate) error {
	own(&partition, &key, &value)
	return f.write(ctx, opOn("SetIf", partition, key), func(ctx context.Context) error {
		return f.store.SetIf(ctx, partition, key, value, p)
	})
}

func (f *FaultyStore) Delete(ctx context.Context, partition, key []byte) error {
	own(&partition, &key)
	return f.write(ctx, opOn("Delete", partition, key), func(ctx context.Context) error {
		return f.store.Delete(ctx, partition, key)
	})
}

func (f *FaultyStore) DeleteIf(ctx context.Context, partition, key []byte, p kv.Predicate) error {
	own(&partition, &key)
	return f.write(ctx, opOn("DeleteIf", partition, key), func(ctx context.Context) error {
		return f.store.DeleteIf(ctx, partition, key, p)
	})
}

func (f *FaultyStore) Apply(ctx context.Context, partition []byte, writes []kv.Write, fence *kv.Fence) error {
	own(&partition)
	writes = ownWrites(writes)
	if fence != nil {
		copied := *fence
		own(&copied.Partition, &copied.Key)
		fence = &copied
	}
	return f.write(ctx, opOn("Apply", partition, nil), func(ctx context.Context) error {
		return f.store.Apply(ctx, partition, writes, fence)
	})
}

// incapable hides the capabilities of a store.
type incapable struct{ kv.Store }

// SetMany implements kv.ManySetter.
func (f *FaultyStore) SetMany(ctx context.Context, partition []byte, writes []kv.Write) error {
	setter, ok := f.store.(kv.ManySetter)
	if !ok {
		return kv.SetMany(ctx, incapable{f}, partition, writes)
	}
	own(&partition)
	writes = ownWrites(writes)
	return f.write(ctx, opOn("SetMany", partition, nil), func(ctx context.Context) error {
		return setter.SetMany(ctx, partition, writes)
	})
}

// DropPartition implements kv.PartitionDropper.
func (f *FaultyStore) DropPartition(ctx context.Context, partition []byte) error {
	dropper, ok := f.store.(kv.PartitionDropper)
	if !ok {
		return kv.DropPartition(ctx, incapable{f}, partition)
	}
	own(&partition)
	return f.write(ctx, opOn("DropPartition", partition, nil), func(ctx context.Context) error {
		return dropper.DropPartition(ctx, partition)
	})
}

// Publish implements kv.Publisher.
func (f *FaultyStore) Publish(ctx context.Context, before []kv.Record, last kv.Record, p kv.Predicate) error {
	publisher, ok := f.store.(kv.Publisher)
	if !ok {
		return kv.Publish(ctx, incapable{f}, before, last, p)
	}
	before = slices.Clone(before)
	for i := range before {
		own(&before[i].Partition, &before[i].Key, &before[i].Value)
	}
	own(&last.Partition, &last.Key, &last.Value)
	return f.write(ctx, opOn("Publish", last.Partition, last.Key), func(ctx context.Context) error {
		return publisher.Publish(ctx, before, last, p)
	})
}

func (f *FaultyStore) Limits() kv.Limits { return f.store.Limits() }

// Close closes the store if the script lets it through. After a crash it does not, so that the store
// can be wrapped anew, as if another process had opened it.
func (f *FaultyStore) Close() error {
	return f.read(context.Background(), Op{Method: "Close"}, func(context.Context) error {
		return f.store.Close()
	})
}

func (f *FaultyStore) Scan(ctx context.Context, partition []byte, o kv.ScanOptions) (kv.Iterator, error) {
	own(&partition)
	var it kv.Iterator
	err := f.read(ctx, opOn("Scan", partition, nil), func(ctx context.Context) (err error) {
		it, err = f.store.Scan(ctx, partition, o)
		return err
	})
	if err == nil {
		return &faultyIterator{Iterator: it, store: f, ctx: ctx, partition: partition}, nil
	}
	if it != nil {
		err = errors.Join(err, it.Close())
	}
	return nil, err
}

// faultyIterator is an iterator until a step of it was failed.
type faultyIterator struct {
	kv.Iterator
	store     *FaultyStore
	ctx       context.Context
	partition []byte
	err       error // of the step that was failed
}

func (it *faultyIterator) Next() bool {
	if it.err != nil {
		return false
	}
	more := false
	it.err = it.store.read(it.ctx, opOn("Next", it.partition, nil), func(context.Context) error {
		more = it.Iterator.Next()
		return it.Iterator.Err()
	})
	return more && it.err == nil
}

func (it *faultyIterator) Key() []byte {
	if it.err != nil {
		return nil
	}
	return it.Iterator.Key()
}

func (it *faultyIterator) Value() []byte {
	if it.err != nil {
		return nil
	}
	return it.Iterator.Value()
}

func (it *faultyIterator) Err() error {
	if it.err != nil {
		return it.err
	}
	return it.Iterator.Err()
}

func (it *faultyIterator) Close() error {
	err := it.Iterator.Close()
	if it.err != nil {
		return it.err
	}
	return err
}
