// SPDX-License-Identifier: Apache-2.0

package migrate

import "iter"

// What is made ahead is handed over in batches of so many items, or about so many bytes: one is being made and one waits while
// the items of a third are worked on.
const (
	aheadItems = 256
	aheadBytes = 256 << 10
)

// ahead has items made on a goroutine of its own while the ones before are worked on. It ends before the loop over them does,
// though not before the step that it is at.
func ahead(items iter.Seq2[*item, error]) iter.Seq2[*item, error] {
	batches := func(yield func([]*item, error) bool) {
		var batch []*item
		bytes := 0
		for i, err := range items {
			if err != nil {
				if yield(batch, nil) {
					yield(nil, err)
				}
				return
			}
			batch = append(batch, i)
			if bytes += i.size(); len(batch) < aheadItems && bytes < aheadBytes {
				continue
			}
			if !yield(batch, nil) {
				return
			}
			batch, bytes = nil, 0
		}
		yield(batch, nil)
	}
	return func(yield func(*item, error) bool) {
		for batch, err := range oneAhead(batches) {
			for _, i := range batch {
				if !yield(i, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// oneAhead is ahead for things that are large by themselves: one is being made and one waits. An error is the last thing that it yields.
func oneAhead[T any](things iter.Seq2[T, error]) iter.Seq2[T, error] {
	type made struct {
		thing T
		err   error
	}
	return func(yield func(T, error) bool) {
		queue, stop := make(chan made, 1), make(chan struct{})
		go func() {
			defer close(queue)
			for thing, err := range things {
				select {
				case queue <- made{thing, err}:
				case <-stop:
					return
				}
			}
		}()
		defer func() {
			close(stop)
			for range queue { // until it has ended
			}
		}()
		for m := range queue {
			if !yield(m.thing, m.err) {
				return
			}
		}
	}
}

// size is about how much memory an item takes.
func (i *item) size() int {
	n := len(i.key) + len(i.document)
	if i.value != nil {
		n += len(i.value.Identity) + len(i.value.Data)
	}
	if i.commit != nil {
		n += len(i.commit.Committer) + len(i.commit.Message) + 64*len(i.commit.Parents)
		for k, v := range i.commit.Metadata {
			n += len(k) + len(v)
		}
	}
	return n
}
