// SPDX-License-Identifier: Apache-2.0

package rangefile

import "bytes"

// Iter walks the records of a file by key. It has one block at a time and asks fetch for the next when it needs it, so
// fetch may use the memory of the block before.
type Iter struct {
	file   *File
	fetch  func(i int) (*Block, error)
	at     int  // the block that cur walks, or the next one to fetch
	loaded bool // cur walks block at
	cur    cursor
	err    error
}

// Iter returns an iterator that stands before the first record. fetch gives a block, normally by Read.
func (f *File) Iter(fetch func(i int) (*Block, error)) *Iter { return &Iter{file: f, fetch: fetch} }

// Next goes to the next record. False at the end and on an error.
func (it *Iter) Next() bool {
	for it.err == nil {
		if it.loaded {
			if it.cur.step() {
				return true
			}
			if it.err = it.cur.failed(); it.err != nil {
				return false
			}
			it.loaded = false
			it.at++
		}
		if it.at >= len(it.file.blocks) {
			return false
		}
		it.load()
	}
	return false
}

// SeekGE makes Next go to the first record with a key >= key, forward or backward. Within the block it stands in it reads nothing.
func (it *Iter) SeekGE(key []byte) {
	if it.err != nil {
		return
	}
	if !it.loaded || !it.covers(key) {
		it.loaded = false
		if it.at = it.file.Find(key); it.at == len(it.file.blocks) {
			return
		}
		if it.load(); it.err != nil {
			return
		}
	}
	it.cur.seek(key)
	it.err = it.cur.failed()
}

// covers says whether the first record with a key >= key is in the loaded block.
func (it *Iter) covers(key []byte) bool {
	blocks := it.file.blocks
	return bytes.Compare(key, blocks[it.at].last) <= 0 && (it.at == 0 || bytes.Compare(key, blocks[it.at-1].last) > 0)
}

func (it *Iter) load() {
	b, err := it.fetch(it.at)
	if err != nil {
		it.err = err
		return
	}
	it.cur.init(b)
	it.loaded = true
}

// Record is the current record. Its key is valid until the next call of Next or SeekGE, identity and data as long as the block.
func (it *Iter) Record() Record { return it.cur.rec }

// Err is the error that ended the iteration.
func (it *Iter) Err() error { return it.err }
