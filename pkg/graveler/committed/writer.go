// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// writer builds and puts the files of one Apply on a bounded number of goroutines. It belongs to one goroutine, which must
// call finish.
type writer struct {
	ctx    context.Context // cancelled by the first failure, which is then its cause
	cancel context.CancelFunc
	files  *files
	now    func() time.Time
	group  *errgroup.Group
	spare  *sync.Pool // of *pending, shared by all calls

	mu    sync.Mutex
	names []string // of the files that the tree needs and that it did not find in the old tree
}

// pending is a node that is being filled or written.
type pending struct {
	builder *rangefile.Builder
	unnamed []unnamed
	file    []byte // memory for the file
}

// unnamed is a child whose file is still being written.
type unnamed struct {
	slot int
	task *task
}

// task is the writing of a file. The ID is set when named is closed, unless making the file failed. The file need not be there
// then: only finish says that all are.
type task struct {
	named chan struct{}
	id    rangefile.ID
	ok    bool
}

func newWriter(ctx context.Context, s *Store, f *files) *writer {
	w := &writer{files: f, now: s.now, spare: &s.spare}
	ctx, w.cancel = context.WithCancel(ctx)
	w.group, w.ctx = errgroup.WithContext(ctx)
	w.group.SetLimit(s.writers)
	return w
}

// node gives an empty node to fill.
func (w *writer) node(level int) *pending {
	p, ok := w.spare.Get().(*pending)
	if !ok {
		return &pending{builder: rangefile.NewBuilder(level)}
	}
	p.builder.Reset(level)
	p.unnamed = p.unnamed[:0]
	return p
}

// write takes the node over and writes it. It waits while enough others are being written. Children are written before
// their parents, so a task that waits for others waits for such that have their goroutine.
func (w *writer) write(p *pending) *task {
	t := &task{named: make(chan struct{})}
	w.group.Go(func() error {
		if err := w.build(p, t); err != nil || !t.ok {
			return err // or it is another's failure, which is the group's already
		}
		if err := w.put(t.id, p.file); err != nil {
			return fmt.Errorf("write %s: %w", w.files.path(t.id), err)
		}
		w.spare.Put(p)
		return nil
	})
	return t
}

// build makes the file, which gives it its name.
func (w *writer) build(p *pending, t *task) error {
	defer close(t.named)
	for _, u := range p.unnamed {
		<-u.task.named
		if !u.task.ok {
			return nil
		}
		p.builder.Name(u.slot, u.task.id)
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	t.id, p.file = p.builder.Build(p.file)
	t.ok = true
	return nil
}

// put makes sure that the file exists, is sound, and is not about to be removed for its age. One of another size is
// left to Put, which replaces what cannot be right. One that is damaged is taken away first: what needs it cannot be read anyway, and
// making the same tree again is how its owner repairs it.
func (w *writer) put(id rangefile.ID, file []byte) error {
	name := fileName(id)
	w.mu.Lock()
	w.names = append(w.names, name)
	w.mu.Unlock()
	info, err := w.files.storage.Stat(w.ctx, name)
	if err == nil && info.Size == int64(len(file)) {
		var sound bool
		sound, err = w.sound(id, file)
		switch {
		case err == nil && !sound:
			return w.repair(id, file)
		case err == nil && young(info, w.now()):
			return nil
		case err == nil:
			err = w.files.storage.Refresh(w.ctx, name)
		}
		if !errors.Is(err, block.ErrNotFound) {
			return err
		}
	}
	if err != nil && !errors.Is(err, block.ErrNotFound) {
		return err
	}
	return w.files.storage.Put(w.ctx, name, file)
}

// repair puts the file in the place of a damaged one, unless somebody else has just done so: then it is not deleted.
func (w *writer) repair(id rangefile.ID, file []byte) error {
	return w.files.marked(w.ctx, []rangefile.ID{id}, func(ctx context.Context, d *deletion) error {
		sound, err := w.sound(id, file)
		if err == nil && !sound {
			err = d.delete(ctx, id)
		}
		if err != nil && !errors.Is(err, block.ErrNotFound) {
			return err
		}
		return w.files.storage.Put(ctx, fileName(id), file)
	})
}

// sound reports whether the stored file is what was about to be written, or at least whole: another release of the compressor may have written it.
func (w *writer) sound(id rangefile.ID, file []byte) (bool, error) {
	stored, err := w.files.storage.Get(w.ctx, fileName(id))
	if err != nil || bytes.Equal(stored, file) {
		return err == nil, err
	}
	name, source := w.files.path(id), rangefile.Bytes(stored)
	opened, err := rangefile.Open(w.ctx, name, source, int64(len(stored)))
	for i := 0; err == nil && i < opened.Blocks(); i++ {
		_, err = opened.Read(w.ctx, source, i, nil)
	}
	return err == nil && opened.ID == id, nil
}

// finish waits for all files and makes them durable, which fails with graveler.ErrSwept where some were removed meanwhile, or, if
// making the tree has failed with err, gives up.
func (w *writer) finish(ctx context.Context, err error) error {
	if err != nil {
		w.cancel()
	}
	failed := w.group.Wait()
	w.cancel()
	switch {
	case err != nil:
		return err
	case failed != nil || len(w.names) == 0:
		return failed
	}
	return w.files.settle(ctx, w.names)
}
