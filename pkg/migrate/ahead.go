// SPDX-License-Identifier: Apache-2.0

package migrate

import "iter"

// What is made ahead is handed over in batches of so many items, or about so many bytes: one is being made and one waits while the items of a third are worked on.
const (
	aheadItems = 256
	aheadBytes = 256 << 10
)

// ahead has items made on a goroutine of its own while the ones before are worked on. It ends before the loop over them does, though not before the step that it is at.
func ahead(items iter.Seq2[*item, error]) iter.Seq2[*item, error] {
	type made struct {
		*item
		err error
	}
	return func(yield func(*item, error) bool) {
		batches, stop := make(chan []made, 1), make(chan struct{})
		go func() {
			defer close(batches)
			var batch []made
			bytes := 0
			for i, err := range items {
				batch = append(batch, made{i, err})
				if bytes += i.size(); len(batch) < aheadItems && bytes < aheadBytes {
					continue
				}
				select {
				case batches <- batch:
					batch, bytes = nil, 0
				case <-stop:
					return
				}
			}
			select {
			case batches <- batch:
			case <-stop:
			}
		}()
		defer func() {
			close(stop)
			for range batches { // until it has ended
			}
		}()
		for batch := range batches {
			for _, m := range batch {
				if !yield(m.item, m.err) {
					return
				}
			}
		}
	}
}

// size is about how much memory an item takes; 0 where there is none.
func (i *item) size() int {
	if i == nil {
		return 0
	}
	n := len(i.key)
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
