// SPDX-License-Identifier: Apache-2.0

package facade_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate/facade"
)

// reports collects differences.
type reports struct {
	mu  sync.Mutex
	all []facade.Difference
}

func (r *reports) add(_ context.Context, d facade.Difference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, d)
}

func TestShadowReadsReportDifferencesAndChangeNothing(t *testing.T) {
	ctx := t.Context()
	store, trees := mem.New(), memtrees.New()
	first := backend(store)
	plain := open(t, facade.Config{First: first, Second: first}, trees)
	use(t, plain, "lake")
	repo, err := first.Refs.GetRepository(ctx, "lake")
	require.NoError(t, err)

	// The same store on both sides: no difference, whatever is read.
	var seen reports
	c := facade.Config{First: first, Second: first, Shadow: facade.Kinds(), Report: seen.add}
	look := func(g *graveler.Graveler) {
		for _, at := range []string{"main", "dev", "v1"} {
			require.Positive(t, count(t, g.List(ctx, "lake", at, graveler.ListOptions{})))
		}
		require.Positive(t, count(t, g.ListTags(ctx, "lake", "")))
		require.Positive(t, count(t, g.ListBranches(ctx, "lake", "")))
		require.Positive(t, count(t, g.ListRepositories(ctx, "")))
		require.Positive(t, count(t, g.ListCommits(ctx, "lake", "")))
		require.Positive(t, count(t, g.BranchLog(ctx, "lake", "main", 0)))
		_, err := g.Get(ctx, "lake", "main", graveler.Key("d"))
		require.NoError(t, err)
		_, err = g.Get(ctx, "lake", "main", graveler.Key("nothing"))
		require.ErrorIs(t, err, graveler.ErrEntryNotFound)
	}
	look(open(t, c, trees))
	require.Empty(t, seen.all)

	// The other side has nothing: every kind is reported, and the caller does not notice.
	c.Second = backend(mem.New())
	look(open(t, c, trees))
	kinds := map[facade.Kind]bool{}
	for _, d := range seen.all {
		kinds[d.Kind] = true
		require.NotEmpty(t, d.Read)
		require.NotEqual(t, d.Answer, d.Shadow)
	}
	require.Len(t, kinds, len(facade.Kinds()))

	// One record differs.
	c.Second = first
	tag, err := first.Refs.GetTag(ctx, repo, "v1")
	require.NoError(t, err)
	c.Second.Refs = otherTag{first.Refs, tag}
	seen.all = nil
	look(open(t, c, trees))
	require.NotEmpty(t, seen.all)
	for _, d := range seen.all {
		require.Equal(t, facade.Tags, d.Kind)
	}
}

// otherTag has another commit for a tag.
type otherTag struct {
	graveler.Refs
	tag *graveler.Tag
}

func (o otherTag) GetTag(context.Context, *graveler.Repository, graveler.TagID) (*graveler.Tag, error) {
	return &graveler.Tag{ID: o.tag.ID, Commit: "0000"}, nil
}

// planted is a staging that is another than what it stands on, for some keys.
type planted struct {
	graveler.Staging
	change  map[string]*graveler.Entry // by key: what is there instead; nil: nothing
	failing string                     // the key at which a scan fails
	err     error                      // of Scan itself
}

var errPlanted = errors.New("planted")

func (p planted) Scan(ctx context.Context, token graveler.StagingToken, from, prefix graveler.Key) (graveler.Iterator[graveler.Entry], error) {
	if p.err != nil {
		return nil, p.err
	}
	it, err := p.Staging.Scan(ctx, token, from, prefix)
	return &plantedIterator{Iterator: it, planted: p}, err
}

type plantedIterator struct {
	graveler.Iterator[graveler.Entry]
	planted planted
	err     error
}

func (i *plantedIterator) Next() bool {
	for i.Iterator.Next() {
		key := string(i.Iterator.Item().Key)
		if key == i.planted.failing {
			i.err = errPlanted
			return false
		}
		if e, changed := i.planted.change[key]; !changed || e != nil {
			return true
		}
	}
	return false
}

func (i *plantedIterator) Item() graveler.Entry {
	e := i.Iterator.Item()
	if other := i.planted.change[string(e.Key)]; other != nil {
		return *other
	}
	return e
}

func (i *plantedIterator) Err() error   { return errors.Join(i.err, i.Iterator.Err()) }
func (i *plantedIterator) Close() error { return errors.Join(i.err, i.Iterator.Close()) }

func TestScansOfStagedEntriesAreCompared(t *testing.T) {
	ctx := t.Context()
	const token, entries = "lake-main:t0", 700 // several pages
	store := sqlBackend(t)
	var writes []graveler.StagedWrite
	for i := range entries {
		w := graveler.StagedWrite{Key: fmt.Appendf(nil, "a/%03d", i), Value: &graveler.Value{Identity: []byte("i"), Data: []byte("d")}}
		if i%10 == 0 {
			w.Value = nil
		}
		writes = append(writes, w)
	}
	require.NoError(t, store.Staging.Apply(ctx, nil, token, writes))
	same := staging.New(mem.New())
	require.NoError(t, same.Apply(ctx, nil, token, writes))

	all := func(it graveler.Iterator[graveler.Entry]) (n int) {
		for it.Next() {
			n++
		}
		require.NoError(t, it.Err())
		return n
	}
	for name, c := range map[string]struct {
		other  graveler.Staging
		report string // what the report must say; "": there must be none
	}{
		"the same":           {same, ""},
		"an entry less":      {planted{Staging: same, change: map[string]*graveler.Entry{"a/650": nil}}, "a/651"},
		"the last one less":  {planted{Staging: same, change: map[string]*graveler.Entry{"a/699": nil}}, "nothing more"},
		"another value":      {planted{Staging: same, change: map[string]*graveler.Entry{"a/333": {Key: []byte("a/333"), Value: &graveler.Value{Identity: []byte("other")}}}}, "other"},
		"no tombstone":       {planted{Staging: same, change: map[string]*graveler.Entry{"a/010": {Key: []byte("a/010"), Value: &graveler.Value{Identity: []byte("i")}}}}, "a/010"},
		"a failure":          {planted{Staging: same, failing: "a/500"}, "planted"},
		"a failure at once":  {planted{Staging: same, err: errPlanted}, "planted"},
		"nothing there":      {staging.New(mem.New()), "nothing more"},
		"two entries differ": {planted{Staging: same, change: map[string]*graveler.Entry{"a/001": nil, "a/003": nil}}, "a/002"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen reports
			second := backend(mem.New())
			second.Staging = c.other
			b, err := facade.New(facade.Config{First: store, Second: second, Shadow: []facade.Kind{facade.Branches}, Report: seen.add})
			require.NoError(t, err)
			it, err := b.Staging.Scan(ctx, token, nil, graveler.Key("a/"))
			require.NoError(t, err)
			require.Equal(t, entries, all(it), "the caller gets what the first side has")
			require.NoError(t, it.Close())
			require.NoError(t, it.Close())
			if c.report == "" {
				require.Empty(t, seen.all)
				return
			}
			require.Len(t, seen.all, 1, "a scan is reported once")
			require.Contains(t, seen.all[0].String(), c.report)
			require.Equal(t, facade.Branches, seen.all[0].Kind)
		})
	}

	t.Run("seeks", func(t *testing.T) {
		for change, times := range map[string]int{"a/100": 0, "a/300": 1} {
			var seen reports
			second := backend(mem.New())
			second.Staging = planted{Staging: same, change: map[string]*graveler.Entry{change: nil}}
			b, err := facade.New(facade.Config{First: store, Second: second, Shadow: []facade.Kind{facade.Branches}, Report: seen.add})
			require.NoError(t, err)
			it, err := b.Staging.Scan(ctx, token, nil, nil)
			require.NoError(t, err)
			require.True(t, it.Next())
			it.SeekGE(graveler.Key("a/300"))
			require.Equal(t, entries-300, all(it))
			it.SeekGE(graveler.Key("a/690"))
			require.Equal(t, 10, all(it))
			require.NoError(t, it.Close())
			require.Len(t, seen.all, times)
		}
	})
}
