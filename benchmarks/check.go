// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/moraine-store/moraine/pkg/block"
	blockmem "github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
	"github.com/moraine-store/moraine/pkg/kv"
)

// ErrWrong: a store does not hold what it acknowledged, or holds something else. Figures of such a run mean nothing.
var ErrWrong = errors.New("the store does not hold what it acknowledged")

// verifyList compares what a ref shows with what must be there, key by key and value by value.
func (b *bench) verifyList(ctx context.Context, repo graveler.RepositoryID, ref string, want sequence) (n int, err error) {
	next, stop := iter.Pull(want)
	defer stop()
	for l, err := range b.store.List(ctx, repo, ref, graveler.ListOptions{}) {
		if err != nil {
			return n, err
		}
		expected, ok := next()
		if err := sameEntry(graveler.Entry{Key: l.Key, Value: l.Value}, expected, ok); err != nil {
			return n, fmt.Errorf("%s/%s: %w", repo, ref, err)
		}
		n++
	}
	if expected, ok := next(); ok {
		return n, fmt.Errorf("%s/%s: %w: after %d entries %q is missing", repo, ref, ErrWrong, n, expected.Key)
	}
	return n, nil
}

func sameEntry(got, want graveler.Entry, more bool) error {
	switch c := bytes.Compare(got.Key, want.Key); {
	case !more:
		return fmt.Errorf("%w: %q is there, which nobody wrote", ErrWrong, got.Key)
	case c > 0:
		return fmt.Errorf("%w: %q is missing", ErrWrong, want.Key)
	case c < 0:
		return fmt.Errorf("%w: %q is there, which nobody wrote", ErrWrong, got.Key)
	case !got.Value.Same(want.Value) || !bytes.Equal(got.Value.Data, want.Value.Data):
		return fmt.Errorf("%w: %q has another value", ErrWrong, got.Key)
	}
	return nil
}

// expect gets an entry, which must have its value.
func (b *bench) expect(ctx context.Context, repo graveler.RepositoryID, ref string, es entries, i int) error {
	key := es.key(i)
	v, err := b.store.Get(ctx, repo, ref, key)
	if errors.Is(err, graveler.ErrEntryNotFound) {
		return fmt.Errorf("%s/%s: %w: %q is missing", repo, ref, ErrWrong, key)
	}
	if err != nil {
		return err
	}
	if want := es.value(i); !bytes.Equal(v.Identity, want.Identity) || !bytes.Equal(v.Data, want.Data) {
		return fmt.Errorf("%s/%s: %w: %q has another value", repo, ref, ErrWrong, key)
	}
	return nil
}

// verifyBranch compares what main shows with what must be there, commits what is uncommitted, and compares the tree. It returns
// the number of entries.
func (b *bench) verifyBranch(ctx context.Context, repo graveler.RepositoryID, want sequence) (n int, err error) {
	if n, err = b.verifyList(ctx, repo, string(mainBranch), want); err != nil {
		return n, err
	}
	if _, err := b.commit(ctx, repo, mainBranch); err != nil && !errors.Is(err, graveler.ErrNoChanges) {
		return n, err
	}
	head, err := b.store.ResolveRef(ctx, repo, string(mainBranch))
	if err != nil {
		return n, err
	}
	return n, b.verifyRoot(ctx, *head, want)
}

// verifyRoot compares the tree of a commit with a tree that is made anew from what must be in it. Equal IDs mean equal entries.
func (b *bench) verifyRoot(ctx context.Context, c graveler.Commit, want sequence) error {
	nowhere := discarding{blockmem.New()}
	trees, err := committed.New(committed.Config{Storage: func(context.Context, string) (block.Storage, error) { return nowhere, nil }})
	if err != nil {
		return err
	}
	changes := newPulled(want)
	root, err := trees.Apply(ctx, "fresh", trees.EmptyTree(), changes)
	if err = errors.Join(err, changes.Close(), trees.Close()); err != nil {
		return fmt.Errorf("make a fresh tree: %w", err)
	}
	if root != c.Tree {
		return fmt.Errorf("%w: the tree of commit %s is %s, and a fresh one of the same entries %s", ErrWrong, c.ID, c.Tree, root)
	}
	return nil
}

// verifySame is verifyRoot of main for something that is made again and again: after the first time, trees are compared with the first one.
func (b *bench) verifySame(ctx context.Context, repo graveler.RepositoryID, what string, want sequence) error {
	head, err := b.store.ResolveRef(ctx, repo, string(mainBranch))
	if err != nil {
		return err
	}
	known, ok := b.trees[what]
	if !ok {
		b.trees[what] = head.Tree
		return b.verifyRoot(ctx, *head, want)
	}
	if head.Tree != known {
		return fmt.Errorf("%w: the tree of commit %s, of %s, is %s, and it was %s before", ErrWrong, head.ID, what, head.Tree, known)
	}
	return nil
}

// verifyRaw compares a partition of the engine with what must be there.
func (b *bench) verifyRaw(ctx context.Context, partition string, want sequence) (n int, err error) {
	it, err := b.kv.Scan(ctx, []byte(partition), kv.ScanOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for e := range want {
		if !it.Next() {
			return n, errors.Join(it.Err(), fmt.Errorf("partition %s: %w: after %d records %q is missing", partition, ErrWrong, n, e.Key))
		}
		if !bytes.Equal(it.Key(), e.Key) || !bytes.Equal(it.Value(), flat(*e.Value)) {
			return n, fmt.Errorf("partition %s: %w: %q is there in the place of %q, or has another value", partition, ErrWrong, it.Key(), e.Key)
		}
		n++
	}
	if it.Next() {
		return n, fmt.Errorf("partition %s: %w: %q is there, which nobody wrote", partition, ErrWrong, it.Key())
	}
	return n, nil
}

// discarding is a block storage for trees of which only the ID is wanted.
type discarding struct{ block.Storage }

func (discarding) Put(context.Context, string, []byte) error { return nil }
func (discarding) Sync(context.Context, []string) error      { return nil }

// pulled makes an iterator of a sequence, for those who go through it once.
type pulled struct {
	next func() (graveler.Entry, bool)
	stop func()
	cur  graveler.Entry
	err  error
}

func newPulled(all sequence) *pulled {
	p := &pulled{}
	p.next, p.stop = iter.Pull(all)
	return p
}

func (p *pulled) Next() (ok bool) {
	if p.err == nil {
		p.cur, ok = p.next()
	}
	return ok
}

// SeekGE is not possible.
func (p *pulled) SeekGE(key graveler.Key) {
	p.err = fmt.Errorf("seek %q: a sequence can be gone through once only", key)
}

func (p *pulled) Item() graveler.Entry { return p.cur }
func (p *pulled) Err() error           { return p.err }

func (p *pulled) Close() error {
	p.stop()
	return p.err
}
