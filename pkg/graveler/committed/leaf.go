// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"

	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// streamAfter is how many blocks in a row are read singly, through the cache, before the whole file is read.
const streamAfter = 3

// leaves opens ranges, one at a time, for one reader. A reader that only looks in gets single blocks through the caches; one that
// streams gets whole files, past the caches so as not to flush them, the next one fetched while it reads. A reader that goes from
// block to block by seeks reads a whole file only where its blocks are not in the cache, and leaves those that it has sought
// there: it may come back, as who lists directories does. It must be closed.
type leaves struct {
	files     *files
	seeking   bool // the block that is asked for next was sought
	streaming bool // the reader of the open range has come to read all of it
	ahead     *fetch
}

// fetch is a range on its way in.
type fetch struct {
	id     rangefile.ID
	cancel context.CancelFunc
	done   chan struct{}
	it     *rangefile.Iter // these two are set when done is closed
	err    error
}

// look opens a range of which little may be read.
func (l *leaves) look(ctx context.Context, c rangefile.Child) (*rangefile.Iter, error) {
	l.streaming = false
	file, err := l.files.index(ctx, c)
	if err != nil {
		return nil, err
	}
	var (
		data  rangefile.Bytes // once streaming
		b     rangefile.Block // decoded from data
		last  = -1
		inRow = 0
	)
	return file.Iter(func(i int) (*rangefile.Block, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if inRow++; i != last+1 {
			inRow = 0
		}
		last = i
		if l.seeking && (inRow >= streamAfter || data != nil) {
			if b, ok := l.files.caches.blocks.GetIfPresent(blockKey{fileKey{l.files.ns, c.ID}, i}); ok {
				return b, nil
			}
		}
		if inRow >= streamAfter && data == nil {
			if file, data, err = l.files.whole(ctx, c.ID, 0); err != nil {
				return nil, err
			}
			l.streaming = true
		}
		switch {
		case data == nil:
			return l.files.block(ctx, file, i)
		case l.seeking:
			return l.files.intoCache(ctx, file, data, i)
		default:
			return file.Read(ctx, data, i, &b)
		}
	}), nil
}

// stream opens the range that the cursor stands on to read all of it, and starts to fetch the following one.
func (l *leaves) stream(ctx context.Context, at *cursor) (*rangefile.Iter, error) {
	it, err := l.take(ctx, at.child().ID)
	if next, ok := at.peek(); ok && err == nil {
		l.fetch(ctx, next.ID)
	}
	return it, err
}

// take gives the range that was fetched ahead, if it is this one, else reads it.
func (l *leaves) take(ctx context.Context, id rangefile.ID) (*rangefile.Iter, error) {
	f := l.ahead
	if f == nil || f.id != id {
		l.close()
		return l.files.leaf(ctx, id)
	}
	<-f.done
	l.close()
	return f.it, f.err
}

func (l *leaves) fetch(ctx context.Context, id rangefile.ID) {
	ctx, cancel := context.WithCancel(ctx)
	f := &fetch{id: id, cancel: cancel, done: make(chan struct{})}
	l.ahead = f
	go func() {
		defer close(f.done)
		f.it, f.err = l.files.leaf(ctx, id)
	}()
}

// close ends a fetch that is under way and waits for it.
func (l *leaves) close() {
	if l.ahead != nil {
		l.ahead.cancel()
		<-l.ahead.done
		l.ahead = nil
	}
}

// intoCache reads a block from the data of its file into the cache.
func (f *files) intoCache(ctx context.Context, file *rangefile.File, data rangefile.Bytes, i int) (*rangefile.Block, error) {
	b, err := file.Read(ctx, copied{data}, i, nil)
	if err == nil {
		f.caches.blocks.Set(blockKey{fileKey{f.ns, file.ID}, i}, b)
	}
	return b, err
}

// copied gives copies of parts of a file, which do not keep the rest of it in memory.
type copied struct{ rangefile.Bytes }

func (c copied) GetRange(ctx context.Context, offset, length int64) ([]byte, error) {
	part, err := c.Bytes.GetRange(ctx, offset, length)
	return bytes.Clone(part), err
}

// leaf reads a whole range.
func (f *files) leaf(ctx context.Context, id rangefile.ID) (*rangefile.Iter, error) {
	file, data, err := f.whole(ctx, id, 0)
	if err != nil {
		return nil, err
	}
	var b rangefile.Block
	return file.Iter(func(i int) (*rangefile.Block, error) { return file.Read(ctx, data, i, &b) }), nil
}
