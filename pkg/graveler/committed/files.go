// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"context"
	"errors"
	"fmt"

	"github.com/maypok86/otter/v2"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// caches hold what was read, across namespaces. A fetch serves all who wait for it.
type caches struct {
	heads  *otter.Cache[fileKey, head]
	blocks *otter.Cache[blockKey, *rangefile.Block]
}

type fileKey struct {
	ns string
	id rangefile.ID
}

type blockKey struct {
	fileKey
	index int
}

// head is what is kept of a file: all of a metarange, footer and index of a range. One of the two is set.
type head struct {
	node  *node
	index *rangefile.File
}

// perItem is added to the weight of a cached item for what the cache itself needs.
const perItem = 256

func newCaches(size int64) (caches, error) {
	// The caches run their upkeep on the goroutines that use them, so that there are none to wait for.
	sync := func(fn func()) { fn() }
	heads, err := otter.New(&otter.Options[fileKey, head]{
		MaximumWeight: uint64(size / 4), Executor: sync,
		Weigher: func(_ fileKey, h head) uint32 {
			if h.node != nil {
				return uint32(h.node.memory() + perItem)
			}
			return uint32(h.index.Memory() + perItem)
		},
	})
	if err != nil {
		return caches{}, err
	}
	blocks, err := otter.New(&otter.Options[blockKey, *rangefile.Block]{
		MaximumWeight: uint64(size - size/4), Executor: sync,
		Weigher: func(_ blockKey, b *rangefile.Block) uint32 { return uint32(b.Len() + perItem) },
	})
	return caches{heads: heads, blocks: blocks}, err
}

func (c caches) close() {
	c.heads.InvalidateAll()
	c.heads.StopAllGoroutines()
	c.blocks.InvalidateAll()
	c.blocks.StopAllGoroutines()
}

// files reads the files of one namespace.
type files struct {
	ns      string
	storage block.Storage
	caches  caches
}

func (s *Store) open(ctx context.Context, ns string) (*files, error) {
	storage, err := s.storage(ctx, ns)
	if err != nil {
		return nil, fmt.Errorf("open namespace %s: %w", ns, err)
	}
	return &files{ns: ns, storage: storage, caches: s.caches}, nil
}

// fileName is where the file of an ID is in its namespace.
func fileName(id rangefile.ID) string {
	s := id.String()
	return s[:2] + "/" + s
}

// path names a file in errors.
func (f *files) path(id rangefile.ID) string { return f.ns + "/" + fileName(id) }

// source is one file in storage.
type source struct {
	files *files
	id    rangefile.ID
}

func (s source) GetRange(ctx context.Context, offset, length int64) ([]byte, error) {
	b, err := s.files.storage.GetRange(ctx, fileName(s.id), offset, length)
	if err != nil {
		return nil, s.files.failed(s.id, err)
	}
	return b, nil
}

// failed names the namespace of a file that storage could not give.
func (f *files) failed(id rangefile.ID, err error) error {
	return damage(fmt.Errorf("read %s: %w", f.path(id), err))
}

// damage marks errors that mean that a tree is not what it was when it was written.
func damage(err error) error {
	for _, d := range []error{rangefile.ErrCorrupt, rangefile.ErrForeign, rangefile.ErrVersion, rangefile.ErrRecord, block.ErrNotFound, block.ErrShort} {
		if errors.Is(err, d) && !errors.Is(err, graveler.ErrCorrupt) {
			return fmt.Errorf("%w: %w", graveler.ErrCorrupt, err)
		}
	}
	return err
}

// whole reads a file at once, past the caches.
func (f *files) whole(ctx context.Context, id rangefile.ID, level int) (*rangefile.File, rangefile.Bytes, error) {
	data, err := f.storage.Get(ctx, fileName(id))
	if err != nil {
		return nil, nil, f.failed(id, err)
	}
	file, err := rangefile.Open(ctx, f.path(id), rangefile.Bytes(data), int64(len(data)))
	if err != nil {
		return nil, nil, damage(err)
	}
	return file, data, f.expect(file, id, level)
}

// expect checks that a file is the one that was asked for. A level < 0 stands for that of any metarange.
func (f *files) expect(file *rangefile.File, id rangefile.ID, level int) error {
	if file.ID != id || file.Level != level && (level >= 0 || file.Level == 0) {
		return damage(fmt.Errorf("%s holds %s of level %d: %w", f.path(id), file.ID, file.Level, rangefile.ErrCorrupt))
	}
	return nil
}

// index opens a range through the cache.
func (f *files) index(ctx context.Context, c rangefile.Child) (*rangefile.File, error) {
	h, err := f.caches.heads.Get(ctx, fileKey{f.ns, c.ID}, otter.LoaderFunc[fileKey, head](func(ctx context.Context, k fileKey) (head, error) {
		info, err := f.storage.Stat(ctx, fileName(k.id))
		if err != nil {
			return head{}, f.failed(k.id, err)
		}
		file, err := rangefile.Open(ctx, f.path(k.id), source{f, k.id}, info.Size)
		if err != nil {
			return head{}, damage(err)
		}
		return head{index: file}, f.expect(file, k.id, 0)
	}))
	if err != nil {
		return nil, err
	}
	if h.index == nil {
		return nil, damage(fmt.Errorf("%s is a metarange, not a range: %w", f.path(c.ID), rangefile.ErrCorrupt))
	}
	return h.index, nil
}

// block reads a block of a range through the cache. If that fails the index goes from its cache too, so that another
// attempt sees a file that was put in the place of the damaged one.
func (f *files) block(ctx context.Context, file *rangefile.File, i int) (*rangefile.Block, error) {
	b, err := f.caches.blocks.Get(ctx, blockKey{fileKey{f.ns, file.ID}, i}, otter.LoaderFunc[blockKey, *rangefile.Block](func(ctx context.Context, k blockKey) (*rangefile.Block, error) {
		b, err := file.Read(ctx, source{f, k.id}, k.index, nil)
		return b, damage(err)
	}))
	if errors.Is(err, graveler.ErrCorrupt) {
		f.caches.heads.Invalidate(fileKey{f.ns, file.ID})
	}
	return b, err
}
