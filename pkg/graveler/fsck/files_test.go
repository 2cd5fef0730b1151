// SPDX-License-Identifier: Apache-2.0

package fsck_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
)

// watched counts what a check reads, and may do it otherwise.
type watched struct {
	graveler.Trees
	mu      sync.Mutex
	reads   map[string]int // of files, by ID
	ranges  int            // that were read
	reading int
	most    int // at a time

	broken   map[string]error // what reading a file comes to
	unlisted error
	describe func(f *graveler.TreeFile) // what a parent says of it
}

func (w *watched) CheckFile(ctx context.Context, ns string, f graveler.TreeFile) error {
	w.mu.Lock()
	w.reads[f.ID]++
	if f.Level == 0 && !f.Root {
		w.ranges++
	}
	w.reading++
	w.most = max(w.most, w.reading)
	err := w.broken[f.ID]
	w.mu.Unlock()
	if err == nil {
		err = w.Trees.CheckFile(ctx, ns, f)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reading--
	return err
}

func (w *watched) ListFiles(ctx context.Context, ns string) iter.Seq2[graveler.StoredFile, error] {
	if w.unlisted != nil {
		return func(yield func(graveler.StoredFile, error) bool) { yield(graveler.StoredFile{}, w.unlisted) }
	}
	return w.Trees.ListFiles(ctx, ns)
}

func (w *watched) Walk(ctx context.Context, ns string, tree graveler.MetaRangeID, visit func(graveler.TreeFile) (bool, error)) error {
	return w.Trees.Walk(ctx, ns, tree, func(f graveler.TreeFile) (bool, error) {
		if w.describe != nil {
			w.describe(&f)
		}
		return visit(f)
	})
}

// large is a store with a tree of many ranges, of which two commits share most.
type large struct {
	*fixture
	repo    *graveler.Repository
	trees   []graveler.MetaRangeID
	ranges  []string // of both
	watched *watched
}

// newLarge gives a copy of a store that is made once.
func newLarge(t *testing.T) *large {
	l := madeLarge()
	l.fixture = l.clone(t)
	l.watched = &watched{Trees: l.openTrees(t), reads: map[string]int{}, broken: map[string]error{}}
	return &l
}

var madeLarge = sync.OnceValue(func() large {
	t := orPanic{}
	l := large{fixture: newFixture(t)}
	_, err := l.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	l.repo = l.fixture.repository(t, "lake")
	random := rand.NewChaCha8([32]byte{1})
	var entries []graveler.Entry
	for i := range 70 {
		v := graveler.Value{Identity: []byte{byte(i), 1}, Data: make([]byte, 100<<10)}
		_, _ = random.Read(v.Data)
		entries = append(entries, graveler.Entry{Key: graveler.Key(fmt.Sprintf("%04d", i)), Value: &v})
	}
	require.NoError(t, l.SetMany(ctx, "lake", "main", entries))
	l.trees = append(l.trees, l.commit(t, "lake", "main", "all").Tree)
	require.NoError(t, l.SetMany(ctx, "lake", "main", []graveler.Entry{{Key: graveler.Key("0000x"), Value: entries[0].Value}}))
	l.trees = append(l.trees, l.commit(t, "lake", "main", "one more").Tree)
	_, err = l.Maintain(ctx) // drops what is staged
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, tree := range l.trees {
		require.NoError(t, l.fixture.trees.Walk(ctx, l.repo.Namespace, tree, func(f graveler.TreeFile) (bool, error) {
			if !f.Root && !seen[f.ID] {
				l.ranges = append(l.ranges, f.ID)
			}
			seen[f.ID] = true
			return true, nil
		}))
	}
	require.Greater(t, len(l.ranges), 4)
	return l
})

// orPanic is for what belongs to no test.
type orPanic struct{}

func (orPanic) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (orPanic) FailNow()                          { panic("failed") }

// clone copies a store.
func (f *fixture) clone(t require.TestingT) *fixture {
	c := newFixture(t)
	for _, p := range f.places(t) {
		c.write(t, p, f.value(t, p))
	}
	for info, err := range f.blocks.List(ctx, "") {
		require.NoError(t, err)
		data, err := f.blocks.Get(ctx, info.Name)
		require.NoError(t, err)
		require.NoError(t, c.blocks.Put(ctx, info.Name, data))
	}
	return c
}

func (l *large) look(t *testing.T, o fsck.Options) (damage []fsck.Finding, counts fsck.Counts) {
	for f, err := range fsck.New(l.kv, l.watched).Check(ctx, o, &counts) {
		require.NoError(t, err)
		if f.Severity == fsck.Damage {
			damage = append(damage, f)
		}
	}
	return damage, counts
}

func (l *large) name(id string) string { return l.repo.Namespace + "/" + id[:2] + "/" + id }

func TestEveryFileIsReadOnceAndFewAtATime(t *testing.T) {
	l := newLarge(t)
	damage, counts := l.look(t, fsck.Options{Parallel: 2})
	require.Empty(t, damage)
	require.Len(t, l.watched.reads, len(l.ranges)+2)
	for _, n := range l.watched.reads {
		require.Equal(t, 1, n)
	}
	require.Equal(t, len(l.watched.reads), counts.Files)
	require.Equal(t, len(l.ranges), l.watched.ranges)
	require.LessOrEqual(t, l.watched.most, 3, "two workers, and a metarange in between")

	size := int64(0)
	for info, err := range l.blocks.List(ctx, l.repo.Namespace+"/") {
		require.NoError(t, err)
		size += info.Size
	}
	require.Equal(t, size, counts.FileBytes)
}

func TestAQuickCheckReadsNoRangeButMissesNone(t *testing.T) {
	l := newLarge(t)
	damage, _ := l.look(t, fsck.Options{Quick: true})
	require.Empty(t, damage)
	require.Zero(t, l.watched.ranges)
	require.Len(t, l.watched.reads, 2)
	require.NoError(t, l.blocks.Delete(ctx, l.name(l.ranges[2])))
	damage, _ = l.look(t, fsck.Options{Quick: true})
	require.Len(t, damage, 1)
	require.Equal(t, fsck.MissingFile, damage[0].Kind)
	require.Equal(t, l.ranges[2], damage[0].File)
}

func TestACheckGoesOnBehindDamage(t *testing.T) {
	l := newLarge(t)
	flip := func(data []byte) []byte { data[len(data)/2] ^= 1; return data }
	l.alterFile(t, l.name(l.ranges[1]), flip)
	require.NoError(t, l.blocks.Delete(ctx, l.name(l.ranges[3])))
	l.alterFile(t, l.name(string(l.trees[0])), flip) // what is below it is found through the other tree
	l.watched.broken[l.ranges[4]] = errors.New("input/output error")
	damage, counts := l.look(t, fsck.Options{})
	found := map[string]fsck.Kind{}
	for _, d := range damage {
		found[d.File] = d.Kind
		require.NotEmpty(t, d.Commit)
	}
	require.Len(t, damage, 4)
	require.Equal(t, map[string]fsck.Kind{
		string(l.trees[0]): fsck.BadFile, l.ranges[1]: fsck.BadFile, l.ranges[3]: fsck.MissingFile, l.ranges[4]: fsck.UnreadableFile,
	}, found)
	require.GreaterOrEqual(t, counts.Files, len(l.ranges)+1)
}

// Two parents that describe a file differently cannot both be right, though the file is.
func TestWhatEachParentSaysOfAFileIsChecked(t *testing.T) {
	l := newLarge(t)
	visits := map[string]int{}
	l.watched.describe = func(f *graveler.TreeFile) {
		if visits[f.ID]++; visits[f.ID] == 2 && f.ID == l.ranges[4] {
			f.Entries++
		}
	}
	damage, _ := l.look(t, fsck.Options{})
	require.Equal(t, 2, visits[l.ranges[4]])
	require.Len(t, damage, 1)
	require.Equal(t, l.ranges[4], damage[0].File)
	require.Contains(t, damage[0].What, "is not what its parent says")
}

func TestANamespaceThatCannotBeListedIsDamageAndTheRestIsChecked(t *testing.T) {
	l := newLarge(t)
	l.watched.unlisted = errors.New("no such disk")
	require.NoError(t, l.refs.CreateTag(ctx, l.repo, &graveler.Tag{ID: "v1", Commit: "0000"}))
	damage, _ := l.look(t, fsck.Options{})
	require.Equal(t, []fsck.Kind{fsck.DanglingTag, fsck.UnreadableFile}, kinds(damage))
	require.Empty(t, l.watched.reads)
}

func TestACheckEndsWhereItsLoopDoes(t *testing.T) {
	l := newLarge(t)
	for _, id := range l.ranges {
		require.NoError(t, l.blocks.Delete(ctx, l.name(id)))
	}
	var counts fsck.Counts
	for _, err := range fsck.New(l.kv, l.watched).Check(ctx, fsck.Options{Parallel: 1}, &counts) {
		require.NoError(t, err)
		break
	}
	require.Equal(t, 1, counts.Damages)
	require.Zero(t, l.watched.reading, "nothing is under way any more")
}

// Whichever call of the key/value store fails, the check ends with its error, and never says that all was well.
func TestACheckThatCannotGoOnSaysSo(t *testing.T) {
	s := newScene(t)
	total := 0
	for at := 1; ; at++ {
		calls := 0 // of one goroutine: workers read no records where all is well
		store := kvtest.Faulty(s.kv, func(ctx context.Context, _ kvtest.Op, call func(context.Context) error) error {
			if calls++; calls == at {
				return kvtest.ErrInjected
			}
			return call(ctx)
		})
		var last error
		for _, err := range fsck.New(store, s.fixture.trees).Check(ctx, fsck.Options{}, nil) {
			last = err
		}
		if calls < at {
			require.NoError(t, last)
			break
		}
		require.ErrorIs(t, last, kvtest.ErrInjected)
		total = at
	}
	require.Greater(t, total, 50)

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range fsck.New(s.kv, s.fixture.trees).Check(canceled, fsck.Options{}, nil) {
		require.ErrorIs(t, err, context.Canceled)
	}
}
