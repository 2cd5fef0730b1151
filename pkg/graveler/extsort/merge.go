// SPDX-License-Identifier: Apache-2.0

package extsort

import (
	"bytes"
	"io"
)

// fanIn is how many runs are merged at once. Each takes two blocks of memory.
const fanIn = 64

// source is a sequence of records by strictly ascending key. What next returns is valid until its next call; io.EOF is the end.
type source interface {
	next() (key, value []byte, err error)
}

// Iterator gives records by strictly ascending key. It belongs to one goroutine.
type Iterator struct {
	heap       []head // the first stands on the current record once it has started
	started    bool
	last       []byte
	key, value []byte
	err        error
}

// head is a source and the record that it stands on.
type head struct {
	source
	key, value []byte
	age        int // 0 is the oldest
}

// merge merges sources, of which each is newer than the one before.
func merge(sources []source) (*Iterator, error) {
	it := &Iterator{}
	for age, s := range sources {
		h := head{source: s, age: age}
		var err error
		if h.key, h.value, err = s.next(); err == nil {
			it.heap = append(it.heap, h)
		} else if err != io.EOF {
			return nil, err
		}
	}
	for i := len(it.heap)/2 - 1; i >= 0; i-- {
		it.down(i)
	}
	return it, nil
}

// Next goes to the next record, the first at the start; false at the end or on an error.
func (it *Iterator) Next() bool {
	if it.err == nil {
		it.key, it.value, it.err = it.next()
	}
	return it.err == nil
}

// Key returns the key of the current record. It is valid until the next call of Next, as the value is.
func (it *Iterator) Key() []byte { return it.key }

// Value returns the value of the current record.
func (it *Iterator) Value() []byte { return it.value }

// Err is the error that ended the iteration, nil at a proper end.
func (it *Iterator) Err() error {
	if it.err == io.EOF {
		return nil
	}
	return it.err
}

// next makes an iterator a source itself. Of the records with the current key, which it leaves, the newest came first.
func (it *Iterator) next() (key, value []byte, err error) {
	if it.started && len(it.heap) > 0 {
		it.last = append(it.last[:0], it.heap[0].key...)
		for len(it.heap) > 0 && bytes.Equal(it.heap[0].key, it.last) {
			if err := it.advance(); err != nil {
				return nil, nil, err
			}
		}
	}
	it.started = true
	if len(it.heap) == 0 {
		return nil, nil, io.EOF
	}
	return it.heap[0].key, it.heap[0].value, nil
}

// advance moves the first source on.
func (it *Iterator) advance() (err error) {
	top := &it.heap[0]
	if top.key, top.value, err = top.next(); err == io.EOF {
		n := len(it.heap) - 1
		it.heap[0] = it.heap[n]
		it.heap, err = it.heap[:n], nil
	}
	it.down(0)
	return err
}

// down restores the order of the heap where the element i may be too large.
func (it *Iterator) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(it.heap); child++ {
			if it.heap[child].before(it.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		it.heap[i], it.heap[least] = it.heap[least], it.heap[i]
		i = least
	}
}

func (h head) before(o head) bool {
	c := bytes.Compare(h.key, o.key)
	return c < 0 || c == 0 && h.age > o.age
}
