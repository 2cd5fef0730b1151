// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// fixture is a store in memory with a repository "lake" in it.
type fixture struct {
	*graveler.Graveler
	kv     *kvtest.Counter
	trees  *memtrees.Store
	config graveler.Config
}

// costlyFences makes a store on which plain writes use the re-check protocol.
const costlyFences = "mem:?fences=costly"

func newFixture(t testing.TB, edits ...func(*graveler.Config)) *fixture {
	t.Helper()
	return newFixtureAt(t, "mem:", edits...)
}

// fataler is what testing.TB and rapid.T share.
type fataler interface {
	require.TestingT
	Helper()
}

func newFixtureAt(t fataler, url string, edits ...func(*graveler.Config)) *fixture {
	t.Helper()
	store, err := kv.Open(context.Background(), url, kv.Engines{"mem": mem.Open}, kv.OpenOptions{})
	require.NoError(t, err)
	f := &fixture{kv: kvtest.Counting(store), trees: memtrees.New()}
	f.config = graveler.Config{Refs: ref.New(f.kv), Staging: staging.New(f.kv), Trees: f.trees}
	for _, edit := range edits {
		edit(&f.config)
	}
	f.Graveler = f.another(t)
	_, err = f.CreateRepository(context.Background(), "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	return f
}

// another opens the same store again, as another process would.
func (f *fixture) another(t fataler) *graveler.Graveler {
	t.Helper()
	g, err := graveler.New(f.config)
	require.NoError(t, err)
	return g
}

// dropAtOnce makes Maintain drop what nothing lists without waiting.
func dropAtOnce(c *graveler.Config) { c.Grace = time.Nanosecond }

func value(text string) graveler.Value {
	sum := sha256.Sum256([]byte(text))
	return graveler.Value{Identity: sum[:], Data: []byte(text)}
}

func key(s string) graveler.Key { return graveler.Key(s) }

func (f *fixture) set(t fataler, key, text string) {
	t.Helper()
	require.NoError(t, f.Set(context.Background(), "lake", "main", graveler.Key(key), value(text)))
}

func (f *fixture) commit(t fataler, message string) graveler.Commit {
	t.Helper()
	res, err := f.Commit(context.Background(), "lake", "main", graveler.CommitParams{Message: message})
	require.NoError(t, err)
	return res.Commit
}

// show lists a ref as "key=text" in order.
func show(t fataler, g *graveler.Graveler, ref string, o graveler.ListOptions) []string {
	t.Helper()
	lines := []string{}
	for l, err := range g.List(context.Background(), "lake", ref, o) {
		require.NoError(t, err)
		if l.CommonPrefix {
			lines = append(lines, string(l.Key))
		} else {
			lines = append(lines, string(l.Key)+"="+string(l.Value.Data))
		}
	}
	return lines
}

// showDiffs lists differences as "+key", "-key" and "~key".
func showDiffs(t fataler, diffs iter.Seq2[graveler.Diff, error]) []string {
	t.Helper()
	lines := []string{}
	for d, err := range diffs {
		require.NoError(t, err)
		sign := "~"
		if d.Left == nil {
			sign = "+"
		} else if d.Right == nil {
			sign = "-"
		}
		lines = append(lines, fmt.Sprint(sign, string(d.Key)))
	}
	return lines
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
