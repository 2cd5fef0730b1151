// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

func dropAtOnce(c *graveler.Config) { c.Grace = time.Nanosecond }

// whenScanned does something once, when the dump is about to read a partition or a key that a text is in.
func whenScanned(text string, do func()) kvtest.Script {
	var once sync.Once
	return func(ctx context.Context, op kvtest.Op, call func(context.Context) error) error {
		if (op.Method == "Next" || op.Method == "Scan") && strings.Contains(op.Partition, text) {
			once.Do(do)
		}
		return call(ctx)
	}
}

// While the uncommitted changes of a branch are read, others change the branch and drop what it listed. The dump has one state of it, whole.
func TestABranchThatChangesWhileItIsReadIsDumpedWhole(t *testing.T) {
	for name, c := range map[string]struct {
		do          func(ctx context.Context, s store) error
		uncommitted []string
	}{
		"committed": {func(ctx context.Context, s store) error {
			_, err := s.Commit(ctx, "lake", "dev", graveler.CommitParams{})
			return err
		}, nil},
		"compacted": {func(ctx context.Context, s store) error { return s.Compact(ctx, "lake", "dev") }, []string{"b", "c"}},
		"part of it": {func(ctx context.Context, s store) error {
			_, err := s.Commit(ctx, "lake", "dev", graveler.CommitParams{Prefixes: []graveler.Key{key("b")}})
			return err
		}, []string{"c"}},
		"reset":      {func(ctx context.Context, s store) error { return s.ResetStaged(ctx, "lake", "dev", nil) }, nil},
		"written to": {func(ctx context.Context, s store) error { return s.Set(ctx, "lake", "dev", key("d"), value("4")) }, []string{"b", "c", "d"}},
		"deleted":    {func(ctx context.Context, s store) error { return s.DeleteBranch(ctx, "lake", "dev", true) }, nil},
		"made again": {func(ctx context.Context, s store) error {
			return errors.Join(s.DeleteBranch(ctx, "lake", "dev", true), again(ctx, s))
		}, nil},
		"left as it is": {func(context.Context, store) error { return nil }, []string{"b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, engine, trees := t.Context(), mem.New(), memtrees.New()
			s := newStore(t, engine, trees, dropAtOnce)
			_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
			require.NoError(t, err)
			s.set(t, "main", "a", "1")
			s.commit(t, "main")
			_, err = s.CreateBranch(ctx, "lake", "dev", "main")
			require.NoError(t, err)
			s.set(t, "dev", "b", "2")
			s.set(t, "dev", "c", "3")

			reader := newStore(t, kvtest.Faulty(engine, whenScanned("lake-dev:", func() {
				require.NoError(t, c.do(ctx, s))
				_, err := s.Maintain(ctx)
				require.NoError(t, err)
			})), trees)
			text := reader.dump(t, "lake")
			to := newStore(t, mem.New(), trees)
			require.NoError(t, to.load("lake", text, dump.LoadParams{}))
			if _, err := s.GetBranch(ctx, "lake", "dev"); err != nil || name == "made again" {
				_, err := to.GetBranch(ctx, "lake", "dev")
				require.ErrorIs(t, err, graveler.ErrBranchNotFound)
				_, err = to.RestoreBranch(ctx, "lake", "dev", "")
				require.NoError(t, err)
				return
			}
			require.Equal(t, look(t, s, "lake"), look(t, to, "lake"))
			var keys []string
			for d := range all(t, to.DiffUncommitted(ctx, "lake", "dev", graveler.DiffOptions{})) {
				keys = append(keys, string(d.Key))
			}
			require.Equal(t, c.uncommitted, keys)
		})
	}
}

func again(ctx context.Context, s store) error {
	_, err := s.CreateBranch(ctx, "lake", "dev", "main")
	return err
}

// Writers stage, commit and compact, and upkeep drops what it can, while dumps are made. Each of them can be loaded, and misses
// nothing that was acknowledged before it began.
func TestDumpsOfABusyRepositoryMissNothing(t *testing.T) {
	ctx, engine, trees := t.Context(), mem.New(), memtrees.New()
	s := newStore(t, engine, trees, dropAtOnce)
	_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	var mu sync.Mutex
	acknowledged := map[string]int{}
	done := make(chan struct{})
	var group errgroup.Group
	for w := range 3 {
		group.Go(func() error {
			for i := 0; ; i++ {
				select {
				case <-done:
					return nil
				default:
				}
				k := fmt.Sprintf("w%d/%d", w, i%20)
				if err := s.Set(ctx, "lake", "main", key(k), value(strconv.Itoa(i))); err != nil {
					return err
				}
				mu.Lock()
				acknowledged[k] = i
				mu.Unlock()
				if i%40 != 39 {
					continue
				}
				_, err := s.Commit(ctx, "lake", "main", graveler.CommitParams{})
				if err != nil && !errors.Is(err, graveler.ErrNoChanges) {
					return err
				}
				if _, err := s.Maintain(ctx); err != nil {
					return err
				}
			}
		})
	}
	reader := newStore(t, engine, trees, dropAtOnce)
	for range 6 {
		mu.Lock()
		before := map[string]int{}
		for k, i := range acknowledged {
			before[k] = i
		}
		mu.Unlock()
		text := reader.dump(t, "lake")
		to := newStore(t, mem.New(), trees)
		require.NoError(t, to.load("lake", text, dump.LoadParams{}))
		for k, i := range before {
			v, err := to.Get(ctx, "lake", "main", key(k))
			require.NoError(t, err)
			found, err := strconv.Atoi(string(v.Data))
			require.NoError(t, err)
			require.GreaterOrEqual(t, found, i, k)
		}
	}
	close(done)
	require.NoError(t, group.Wait())
}

// oneByOne scans commits in pages of one, and does something ahead of a step.
type oneByOne struct {
	graveler.Refs
	steps, at int
	do        func()
}

func (o *oneByOne) ScanCommits(ctx context.Context, r *graveler.Repository, from graveler.CommitID) iter.Seq2[*graveler.Commit, error] {
	return func(yield func(*graveler.Commit, error) bool) {
		for more := true; more; {
			if o.steps++; o.steps == o.at {
				o.do()
			}
			more = false
			for c, err := range o.Refs.ScanCommits(ctx, r, from) {
				if !yield(c, err) || err != nil {
					return
				}
				from, more = c.ID+"\x00", true
				break
			}
		}
	}
}

// Commits are made at each step of the scans in turn. A scan may see one of them and have passed the place of its parent; the
// dump has both, or neither.
func TestCommitsMadeAtAnyStepAreDumpedWithTheirParents(t *testing.T) {
	ctx, trees := t.Context(), memtrees.New()
	late := 0
	for at, done := 1, false; !done; at++ {
		engine := mem.New()
		s := newStore(t, engine, trees)
		_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
		require.NoError(t, err)
		for range 20 {
			s.commit(t, "main")
		}
		before, err := s.ResolveRef(ctx, "lake", "main")
		require.NoError(t, err)
		done = true
		reader := newStore(t, engine, trees, func(c *graveler.Config) {
			c.Refs = &oneByOne{Refs: c.Refs, at: at, do: func() {
				done = false
				for range 8 {
					s.commit(t, "main")
				}
			}}
		})
		text := reader.dump(t, "lake")
		to := newStore(t, mem.New(), trees)
		require.NoError(t, to.load("lake", text, dump.LoadParams{}), "step %d", at)
		head, err := to.ResolveRef(ctx, "lake", "main")
		require.NoError(t, err)
		require.Equal(t, before, head)
		if body(text) != body(to.dump(t, "lake")) {
			late++ // a commit out of order
		}
	}
	require.Positive(t, late, "one was found by the second scan")
}

// Commits are removed at each step of the scans in turn: either the dump can be loaded, or it says that it must be made again.
func TestADumpFromWhichCommitsAreRemovedIsWholeOrFails(t *testing.T) {
	ctx, trees := t.Context(), memtrees.New()
	failed := 0
	for at, done := 1, false; !done; at++ {
		engine := mem.New()
		s := newStore(t, engine, trees)
		r, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
		require.NoError(t, err)
		var removable []graveler.CommitID
		for range 8 {
			removable = append(removable, s.commit(t, "main").ID)
		}
		_, err = s.Reset(ctx, "lake", "main", "main~8", graveler.ResetParams{})
		require.NoError(t, err)
		b, err := s.GetBranch(ctx, "lake", "main")
		require.NoError(t, err)
		require.NoError(t, s.refs.PutLogStart(ctx, &r, b.UID, time.Now().UnixNano()))
		done = true
		reader := newStore(t, engine, trees, func(c *graveler.Config) {
			c.Refs = &oneByOne{Refs: c.Refs, at: at, do: func() {
				done = false
				for _, id := range removable {
					require.NoError(t, engine.Delete(ctx, []byte(r.Partition()), ref.CommitKey(id)))
				}
			}}
		})
		var text bytes.Buffer
		err = dump.Write(ctx, reader.Graveler, "lake", "test", &text)
		if err != nil {
			failed++
			require.ErrorIs(t, err, graveler.ErrChanged)
			continue
		}
		require.NoError(t, newStore(t, mem.New(), trees).load("lake", text.Bytes(), dump.LoadParams{}), "step %d", at)
	}
	require.Positive(t, failed)
}

func TestADumpOfWhatIsRemovedMeanwhileFails(t *testing.T) {
	trees := memtrees.New()
	for name, c := range map[string]struct {
		do   func(ctx context.Context, s store, engine kv.Store) error
		want error
	}{
		"the repository": {func(ctx context.Context, s store, _ kv.Store) error { return s.DeleteRepository(ctx, "lake") }, graveler.ErrNotFound},
		"a tag and its commit": {func(ctx context.Context, s store, engine kv.Store) error {
			r, err := s.refs.GetRepository(ctx, "lake")
			if err != nil {
				return err
			}
			tag, err := s.GetTag(ctx, "lake", "v1")
			if err != nil {
				return err
			}
			return errors.Join(s.DeleteTag(ctx, "lake", "v1"), engine.Delete(ctx, []byte(r.Partition()), ref.CommitKey(tag.Commit)))
		}, graveler.ErrChanged},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, engine := t.Context(), mem.New()
			s := newStore(t, engine, trees)
			_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
			require.NoError(t, err)
			s.commit(t, "main")
			_, err = s.CreateTag(ctx, "lake", "v1", "main")
			require.NoError(t, err)
			_, err = s.Reset(ctx, "lake", "main", "main~1", graveler.ResetParams{})
			require.NoError(t, err)
			s.set(t, "main", "a", "1")
			reader := newStore(t, kvtest.Faulty(engine, whenScanned("lake-main:", func() { require.NoError(t, c.do(ctx, s, engine)) })), trees)
			var text bytes.Buffer
			err = dump.Write(ctx, reader.Graveler, "lake", "test", &text)
			require.ErrorIs(t, err, c.want)
			require.ErrorIs(t, s.load("copy", text.Bytes(), dump.LoadParams{}), dump.ErrInvalid)
		})
	}
}

func TestADumpThatCannotBeWrittenFails(t *testing.T) {
	s := newLake(t, memtrees.New())
	full := errors.New("disk full")
	require.ErrorIs(t, dump.Write(t.Context(), s.Graveler, "lake", "test", writes{full}), full)
	require.ErrorIs(t, dump.Write(t.Context(), s.Graveler, "none", "test", &bytes.Buffer{}), graveler.ErrRepositoryNotFound)
}

type writes struct{ err error }

func (w writes) Write([]byte) (int, error) { return 0, w.err }

func TestABranchThatNoLogTellsOfIsNotLeftOut(t *testing.T) {
	engine, trees := mem.New(), memtrees.New()
	s := newStore(t, engine, trees)
	_, err := s.CreateRepository(t.Context(), "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	dev, err := s.CreateBranch(t.Context(), "lake", "dev", "main")
	require.NoError(t, err)
	repo, err := s.refs.GetRepository(t.Context(), "lake")
	require.NoError(t, err)
	require.NoError(t, s.refs.RemoveLogName(t.Context(), repo, graveler.LogName{Branch: "dev", UID: dev.UID}))
	err = dump.Write(t.Context(), s.Graveler, "lake", "test", io.Discard)
	require.ErrorIs(t, err, graveler.ErrCorrupt)
	require.ErrorContains(t, err, "branch dev")

	// Where it goes while the dump is made, its log may go with it.
	reader := newStore(t, engine, trees, func(c *graveler.Config) {
		c.Refs = removing{c.Refs, sync.OnceFunc(func() { require.NoError(t, s.refs.RemoveBranch(t.Context(), repo, &dev)) })}
	})
	require.NoError(t, dump.Write(t.Context(), reader.Graveler, "lake", "test", io.Discard))
}

// removing removes something when the branches have been listed, and before their logs are.
type removing struct {
	graveler.Refs
	remove func()
}

func (r removing) ScanLogNames(ctx context.Context, repo *graveler.Repository, branch graveler.BranchID) iter.Seq2[graveler.LogName, error] {
	r.remove()
	return r.Refs.ScanLogNames(ctx, repo, branch)
}
