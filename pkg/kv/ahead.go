// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"context"
)

// NewIteratorAhead is [NewIterator] for an engine that has to be waited for: once a scan has come to pages of full length, the
// next page is read while one is handed out. That takes the memory of one page more, and read is called on another goroutine,
// which Close waits for; never on two at a time. What was read ahead in vain, because of a seek, is thrown away.
func NewIteratorAhead(ctx context.Context, partition []byte, o ScanOptions, read ReadPage) Iterator {
	a := &ahead{read: read}
	return &aheadIterator{NewIterator(ctx, partition, o, a.page), a}
}

type aheadIterator struct {
	Iterator
	ahead *ahead
}

func (it *aheadIterator) Close() error {
	it.ahead.take()
	return it.Iterator.Close()
}

// ahead reads pages, and at most one before it is asked for.
type ahead struct {
	read  ReadPage
	asked PageRequest   // what the page under way is of
	ready chan readPage // nil: none is under way
}

type readPage struct {
	entries []Entry
	more    bool
	err     error
}

// page is a [ReadPage].
func (a *ahead) page(ctx context.Context, r PageRequest) ([]Entry, bool, error) {
	p, ok := a.take()
	if !ok || !bytes.Equal(a.asked.From, r.From) || a.asked.Limit != r.Limit {
		p.entries, p.more, p.err = a.read(ctx, r)
	}
	if p.err == nil && p.more && len(p.entries) > 0 && r.Limit == largePage {
		r.From = append(bytes.Clone(p.entries[len(p.entries)-1].Key), 0)
		a.begin(ctx, r)
	}
	return p.entries, p.more, p.err
}

func (a *ahead) begin(ctx context.Context, r PageRequest) {
	ready := make(chan readPage, 1) // nobody may come for it
	a.asked, a.ready = r, ready
	go func() {
		var p readPage
		p.entries, p.more, p.err = a.read(ctx, r)
		ready <- p
	}()
}

// take waits for the page that is under way, if there is one.
func (a *ahead) take() (p readPage, ok bool) {
	if a.ready == nil {
		return readPage{}, false
	}
	p = <-a.ready
	a.ready = nil
	return p, true
}
