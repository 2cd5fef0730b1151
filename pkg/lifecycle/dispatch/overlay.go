// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// reader reads a tree, for several goroutines.
type reader struct {
	mu    sync.Mutex // of tree.Get
	tree  *graveler.Tree
	ahead map[string]*graveler.Value // what was read before it was asked for
}

// readAhead is for how many items is read at a time.
const readAhead = 4096

// readFor reads what judging some items asks for first: their entries, and what is current of their keys. In the order of the
// tree that costs less than one by one, since what belongs to a key is in several places.
func (r *reader) readFor(items []task) error {
	clear(r.ahead)
	keys := make([]graveler.Key, 0, 3*len(items))
	for _, t := range items {
		keys = append(append(keys, t.Key), catalog.HeadPlaces(t.LogicalKey)...)
	}
	slices.SortFunc(keys, func(a, b graveler.Key) int { return bytes.Compare(a, b) })
	for _, key := range slices.CompactFunc(keys, func(a, b graveler.Key) bool { return bytes.Equal(a, b) }) {
		v, err := r.tree.Get(key)
		if err != nil {
			return err
		}
		r.ahead[string(key)] = v
	}
	return nil
}

func (r *reader) get(key graveler.Key) (*graveler.Value, error) {
	if v, known := r.ahead[string(key)]; known {
		return v, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tree.Get(key)
}

// overlay shows a tree with the changes to one key's entries.
type overlay struct {
	*reader
	entries map[string]change // what was read or changed
	failed  error             // the first error of the tree
}

type change struct {
	value   *graveler.Value
	changed bool
}

// Get implements [catalog.Reader].
func (o *overlay) Get(_ context.Context, keys ...graveler.Key) ([]*graveler.Value, error) {
	values := make([]*graveler.Value, len(keys))
	for i, key := range keys {
		e, known := o.entries[string(key)]
		if !known {
			v, err := o.get(key)
			if err != nil {
				return nil, o.fail(err)
			}
			e.value = v
			o.entries[string(key)] = e
		}
		values[i] = e.value
	}
	return values, nil
}

// List implements [catalog.Reader]. Like that of a transaction it shows the tree without the changes.
func (o *overlay) List(ctx context.Context, opts graveler.ListOptions) iter.Seq2[graveler.Listing, error] {
	return func(yield func(graveler.Listing, error) bool) {
		for l, err := range o.tree.List(ctx, opts) {
			if !yield(l, o.fail(err)) {
				return
			}
		}
	}
}

func (o *overlay) fail(err error) error {
	if err != nil && o.failed == nil {
		o.failed = err
	}
	return err
}

func (o *overlay) apply(entries []graveler.Entry) {
	for _, e := range entries {
		o.entries[string(e.Key)] = change{e.Value, true}
	}
}

// removed reports whether an entry of the tree is there no more.
func (o *overlay) removed(key graveler.Key) bool {
	e := o.entries[string(key)]
	return e.changed && e.value == nil
}

// flush appends the changes and forgets the key.
func (o *overlay) flush(changes []graveler.Entry) []graveler.Entry {
	for key, e := range o.entries {
		if e.changed {
			changes = append(changes, graveler.Entry{Key: graveler.Key(key), Value: e.value})
		}
	}
	clear(o.entries)
	return changes
}
