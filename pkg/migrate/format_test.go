// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate"
)

// wordFormat is a format of trees whose metaranges are lists of their keys.
type wordFormat struct {
	mu     sync.Mutex
	opened []string // ranges
	// What the entries and the ranges of a format with a mistake are.
	entries func(graveler.Entry) graveler.Entry
	leave   string // the word that is left out
}

func (*wordFormat) Name() string { return "words" }

func (*wordFormat) Recognizes(_ context.Context, _, metarange string) (bool, error) {
	return strings.HasPrefix(metarange, "words:"), nil
}

// Ranges: each word is one.
func (f *wordFormat) Ranges(_ context.Context, _, metarange string) ([]migrate.Range, error) {
	var ranges []migrate.Range
	for _, w := range strings.Fields(strings.TrimPrefix(metarange, "words:")) {
		if w == f.leave {
			continue
		}
		ranges = append(ranges, migrate.Range{ID: "range of " + w, First: []byte(w), Last: []byte(w), Count: 1})
	}
	return ranges, nil
}

func (f *wordFormat) Entries(_ context.Context, _ string, r migrate.Range) ([]graveler.Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, r.ID)
	e := graveler.Entry{Key: r.First, Value: &graveler.Value{Identity: append([]byte("id of "), r.First...), Data: r.First}}
	if f.entries != nil {
		e = f.entries(e)
	}
	return []graveler.Entry{e}, nil
}

func TestTreesOfAFormatThatSomebodyReadsAreConverted(t *testing.T) {
	p := one()
	p.Staged = 0
	s := newSides(t, p)
	s.exec(t, "UPDATE graveler_commits SET meta_range_id = CASE WHEN parents IS NULL OR parents = '{}' THEN '' WHEN meta_range_id = '' THEN 'words:a b' ELSE 'words:a b c' END")
	_, err := s.migration(t).Run(t.Context())
	require.ErrorIs(t, err, migrate.ErrForeignTrees)

	format := &wordFormat{}
	m := s.migration(t)
	m.Formats = []migrate.KnownFormat{format}
	_, err = m.Run(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"range of a", "range of b", "range of c"}, format.opened, "each range is read once")
	v, err := m.Verify(t.Context())
	require.NoError(t, err)
	require.NoError(t, v.Err())

	g := s.migration(t).Graveler
	for _, c := range collect(t, g.Log(t.Context(), "lake-000", "main", graveler.LogOptions{})) {
		if len(c.Parents) == 0 {
			continue
		}
		var keys []string
		for _, l := range collect(t, g.List(t.Context(), "lake-000", string(c.ID), graveler.ListOptions{})) {
			keys = append(keys, string(l.Key))
		}
		require.Subset(t, []string{"a", "b", "c"}, keys)
		require.Len(t, keys, len(keys))
		require.GreaterOrEqual(t, len(keys), 2)
	}
	checkSound(t, s)

	s.exec(t, "UPDATE graveler_commits SET meta_range_id = 'words:a b d' WHERE meta_range_id = 'words:a b c'")
	v, err = m.Verify(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, v.Err(), "its fields differ")
}

// Commits, notes and trees of the target agree with each other; only the entries of the source are others.
func TestVerifyComparesEntriesOfConvertedTrees(t *testing.T) {
	p := one()
	p.Staged = 0
	s := newSides(t, p)
	s.exec(t, "UPDATE graveler_commits SET meta_range_id = CASE WHEN parents IS NULL OR parents = '{}' THEN 'words:a' WHEN meta_range_id = '' THEN 'words:a b' ELSE 'words:a b c' END")
	m := s.migration(t)
	m.Formats = []migrate.KnownFormat{&wordFormat{}}
	_, err := m.Run(t.Context())
	require.NoError(t, err)
	for want, format := range map[string]*wordFormat{
		":b: its data differs": {entries: func(e graveler.Entry) graveler.Entry {
			if string(e.Key) == "b" {
				e.Value.Data = []byte("other")
			}
			return e
		}},
		":c: its identity differs": {entries: func(e graveler.Entry) graveler.Entry {
			if string(e.Key) == "c" {
				e.Value.Identity = []byte("other")
			}
			return e
		}},
		":aa: it is not in the target": {entries: func(e graveler.Entry) graveler.Entry {
			if string(e.Key) == "b" {
				e.Key = graveler.Key("aa")
			}
			return e
		}},
		":c: in the target it is another than before": {leave: "c"},
		":b: in the target it is another than before": {leave: "b"},
	} {
		m.Formats = []migrate.KnownFormat{format}
		v, err := m.Verify(t.Context())
		require.NoError(t, err)
		var found []string
		for _, d := range v.Repositories[0].First {
			require.Equal(t, "committed entries", d.Kind)
			found = append(found, d.String())
		}
		require.Contains(t, strings.Join(found, "\n"), want)
	}
}
