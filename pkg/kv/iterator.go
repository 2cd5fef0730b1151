// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"context"
	"sort"
)

// How many entries the pages of a scan hold. Pages grow, so that a short scan reads little and a
// long one makes few round trips.
const (
	firstPage  = 64
	pageGrowth = 4
	largePage  = 4096
)

// PageBytes is the size, in bytes of keys and values, at which a page of a scan should end even if
// it has fewer entries than asked for.
const PageBytes = 1 << 20

// Entry is a key with its value.
type Entry struct{ Key, Value []byte }

// PageRequest asks for the first entries of a partition with From <= key < End. From may be longer
// than a key can be, and may be beyond End; a nil End sets no bound.
type PageRequest struct {
	Partition, From, End []byte
	Limit                int // most entries to return, at least 1
}

// ReadPage reads one page. It may return fewer entries than the limit; whether the range holds more
// is told by more, which counts only if there are entries at all. The slices are not the engine's.
type ReadPage func(ctx context.Context, r PageRequest) (entries []Entry, more bool, err error)

// NewIterator implements Scan for an engine that can read a page. Nothing is read before the first
// Next, and nothing of the engine's is held between two pages.
func NewIterator(ctx context.Context, partition []byte, o ScanOptions, read ReadPage) Iterator {
	first := firstPage
	if o.BatchSize > 0 {
		first = min(o.BatchSize, largePage)
	}
	it := &pageIterator{
		ctx:       ctx,
		read:      read,
		partition: bytes.Clone(partition),
		prefix:    bytes.Clone(o.Prefix),
		end:       prefixEnd(o.Prefix),
		first:     first,
	}
	it.SeekGE(o.Start)
	it.limit = first
	return it
}

// prefixEnd returns the first key behind those that begin with prefix, or nil if there is none.
func prefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}

type pageIterator struct {
	ctx                    context.Context
	read                   ReadPage
	partition, prefix, end []byte

	page    []Entry // read but not yet handed out
	current Entry
	from    []byte // where the next page begins, if there may be one
	more    bool
	first   int    // entries of the first page
	limit   int    // entries of the next page
	taken   int    // entries handed out since the last seek
	behind  []byte // nil, or where there is nothing from, since the scan has come to its end before that
	err     error
	closed  bool
}

func (it *pageIterator) Next() bool {
	it.current = Entry{}
	if it.err != nil || it.closed {
		return false
	}
	if len(it.page) == 0 && it.more {
		it.fetch()
	}
	if len(it.page) == 0 {
		return false
	}
	it.current, it.page = it.page[0], it.page[1:]
	it.taken++
	return true
}

func (it *pageIterator) fetch() {
	page, more, err := it.readPage()
	if err != nil {
		it.err = Wrap("scan", it.partition, nil, err)
		return
	}
	it.page, it.more = page, more && len(page) > 0
	if len(page) > 0 {
		// Once handed out, the last key may be changed by the caller, so its successor is made now.
		it.from = append(bytes.Clone(page[len(page)-1].Key), 0)
	}
	if !it.more {
		it.behind = it.from
	}
	it.limit = min(it.limit*pageGrowth, largePage)
}

func (it *pageIterator) readPage() ([]Entry, bool, error) {
	if err := it.ctx.Err(); err != nil {
		return nil, false, err
	}
	return it.read(it.ctx, PageRequest{Partition: it.partition, From: it.from, End: it.end, Limit: it.limit})
}

// SeekGE skips within what has been read and not handed out; anything else is read anew, because
// what has been handed out belongs to the caller. A scan that jumps on after a few entries, such as a
// listing of common prefixes, will do so again: the next page is twice what it has taken, and not the
// 64 entries that a scan begins with, of which it would use one.
func (it *pageIterator) SeekGE(key []byte) {
	if bytes.Compare(key, it.prefix) < 0 {
		key = it.prefix
	}
	it.current = Entry{}
	if len(it.page) > 0 && bytes.Compare(key, it.page[0].Key) >= 0 {
		it.page = it.page[sort.Search(len(it.page), func(i int) bool {
			return bytes.Compare(it.page[i].Key, key) >= 0
		}):]
		if len(it.page) > 0 {
			return
		}
	}
	if it.behind != nil && bytes.Compare(key, it.behind) >= 0 {
		it.page, it.more = nil, false
		return
	}
	it.page, it.from, it.more, it.limit = nil, bytes.Clone(key), true, min(max(2*it.taken, 2), it.first)
	it.taken = 0
}

func (it *pageIterator) Key() []byte   { return it.current.Key }
func (it *pageIterator) Value() []byte { return it.current.Value }
func (it *pageIterator) Err() error    { return it.err }

func (it *pageIterator) Close() error {
	it.closed, it.page, it.current = true, nil, Entry{}
	return it.err
}
