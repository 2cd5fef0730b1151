// SPDX-License-Identifier: Apache-2.0

package metalog_test

import (
	"context"
	"iter"
	"maps"
	"math"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// forever is the end of a window without one.
const forever = math.MaxInt64

// epoch is when the clocks of tests begin.
const epoch = int64(1_800_000_000_000_000_000)

// fixture is a store in memory with a repository "lake" and a clock that stands still. One process, which is embedded, works on
// it; another one reads its feed, and has knobs for what goes wrong meanwhile.
type fixture struct {
	*graveler.Graveler
	feed  *metalog.Reader
	refs  *brokenRefs // of the reader
	trees *countedTrees
	clock atomic.Int64 // nanoseconds since epoch

	staging graveler.Staging
}

// fataler is what testing.TB and rapid.T share.
type fataler interface {
	require.TestingT
	Helper()
}

func newFixture(t fataler) *fixture {
	t.Helper()
	store, err := kv.Open(context.Background(), "mem:", kv.Engines{"mem": mem.Open}, kv.OpenOptions{})
	require.NoError(t, err)
	refs := ref.New(store)
	f := &fixture{refs: &brokenRefs{Refs: refs}, trees: &countedTrees{Store: memtrees.New()}, staging: staging.New(store)}
	f.Graveler = f.process(t, refs, f.clock.Load)
	f.feed = metalog.New(f.process(t, f.refs, f.clock.Load))
	_, err = f.CreateRepository(context.Background(), "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	return f
}

// process opens the store as a process does that has a clock of its own.
func (f *fixture) process(t fataler, refs graveler.Refs, clock func() int64) *graveler.Graveler {
	t.Helper()
	g, err := graveler.New(graveler.Config{
		Refs: refs, Staging: f.staging, Trees: f.trees, Grace: time.Nanosecond, Now: func() time.Time { return time.Unix(0, epoch+clock()) },
	})
	require.NoError(t, err)
	return g
}

// brokenRefs lets a test step in before calls.
type brokenRefs struct {
	graveler.Refs
	beforeScan func()      // of moves
	noRecord   func() bool // of any branch, where it returns true
}

func (r *brokenRefs) ScanMoves(ctx context.Context, repo *graveler.Repository, uid string, from, through int64) iter.Seq2[graveler.Move, error] {
	if r.beforeScan != nil {
		r.beforeScan()
	}
	return r.Refs.ScanMoves(ctx, repo, uid, from, through)
}

func (r *brokenRefs) GetBranch(ctx context.Context, repo *graveler.Repository, id graveler.BranchID) (*graveler.Branch, error) {
	if r.noRecord != nil && r.noRecord() {
		return nil, graveler.ErrBranchNotFound
	}
	return r.Refs.GetBranch(ctx, repo, id)
}

// countedTrees counts the differences that are being read.
type countedTrees struct {
	*memtrees.Store
	open atomic.Int64
}

func (s *countedTrees) Diff(ctx context.Context, ns string, left, right graveler.MetaRangeID) graveler.Iterator[graveler.Diff] {
	s.open.Add(1)
	return &countedDiff{Iterator: s.Store.Diff(ctx, ns, left, right), open: &s.open}
}

type countedDiff struct {
	graveler.Iterator[graveler.Diff]
	open   *atomic.Int64
	closed bool
}

func (d *countedDiff) Close() error {
	if !d.closed {
		d.closed = true
		d.open.Add(-1)
	}
	return d.Iterator.Close()
}

func value(text string) graveler.Value {
	return graveler.Value{Identity: []byte("identity of " + text), Data: []byte(text)}
}

// commit makes a commit of "key=text" on a branch.
func (f *fixture) commit(t fataler, branch graveler.BranchID, key, text string) {
	t.Helper()
	require.NoError(t, f.Set(context.Background(), "lake", branch, graveler.Key(key), value(text)))
	_, err := f.Commit(context.Background(), "lake", branch, graveler.CommitParams{})
	require.NoError(t, err)
}

// source is the branch that has a name now.
func (f *fixture) source(t fataler, branch graveler.BranchID) metalog.Source {
	t.Helper()
	b, err := f.GetBranch(context.Background(), "lake", branch)
	require.NoError(t, err)
	return metalog.Source{Repository: "lake", Branch: branch, UID: b.UID}
}

func (f *fixture) repository(t fataler) *graveler.Repository {
	t.Helper()
	r, err := f.GetRepository(context.Background(), "lake")
	require.NoError(t, err)
	return &r
}

// kept returns the moves that are in a log, which are all but the newest of a branch that lives.
func (f *fixture) kept(t fataler, uid string) []graveler.Move {
	t.Helper()
	return collect(t, f.refs.Refs.ScanMoves(context.Background(), f.repository(t), uid, 0, forever))
}

// truncate removes the moves before start, as retention does.
func (f *fixture) truncate(t fataler, uid string, start int64) {
	t.Helper()
	ctx, r := context.Background(), f.repository(t)
	require.NoError(t, f.refs.PutLogStart(ctx, r, uid, start))
	for _, m := range f.kept(t, uid) {
		if m.Time < start {
			require.NoError(t, f.refs.RemoveMove(ctx, r, uid, m.Time))
		}
	}
}

// contents lists a tree.
func (f *fixture) contents(t fataler, tree graveler.MetaRangeID) contents {
	t.Helper()
	c := contents{}
	for d, err := range f.DiffTrees(context.Background(), "lake", f.trees.EmptyTree(), tree, graveler.DiffOptions{}) {
		require.NoError(t, err)
		c[string(d.Key)] = string(d.Right.Data)
	}
	return c
}

func collect[T any](t fataler, items iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for item, err := range items {
		require.NoError(t, err)
		all = append(all, item)
	}
	return all
}

// failure returns the error with which a sequence ends.
func failure[T any](items iter.Seq2[T, error]) error {
	for _, err := range items {
		if err != nil {
			return err
		}
	}
	return nil
}

// contents is a tree as a map from keys to texts.
type contents map[string]string

// apply makes the change of an event, which must be one.
func (c contents) apply(t fataler, e metalog.Event) {
	t.Helper()
	key := string(e.Key)
	old, had := c[key]
	require.Equal(t, had, e.Previous != nil, "%v", e)
	if had {
		require.Equal(t, old, string(e.Previous.Data))
	}
	switch e.Kind {
	case metalog.Put:
		require.NotEqual(t, old, string(e.Value.Data))
		c[key] = string(e.Value.Data)
	case metalog.Delete:
		require.True(t, had)
		require.Nil(t, e.Value)
		delete(c, key)
	default:
		require.Fail(t, "not a change of an entry", "%v", e)
	}
}

func (c contents) clone() contents {
	if c == nil {
		return contents{}
	}
	return maps.Clone(c)
}

// summary writes events as "kind key" with the text of the value.
func summary(events []metalog.Event) []string {
	lines := []string{}
	for _, e := range events {
		line := e.Kind.String()
		if e.Kind == metalog.Head && e.Commit == "" {
			line += " -"
		}
		if e.Kind != metalog.Head {
			line += " " + string(e.Key)
		}
		if e.Value != nil {
			line += "=" + string(e.Value.Data)
		}
		lines = append(lines, line)
	}
	return lines
}
