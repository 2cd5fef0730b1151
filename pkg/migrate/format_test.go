// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate"
)

// wordFormat is a format of trees whose metaranges are lists of their keys.
type wordFormat struct{ opened int }

func (*wordFormat) Name() string { return "words" }

func (*wordFormat) Recognizes(_ context.Context, _, metarange string) (bool, error) {
	return strings.HasPrefix(metarange, "words:"), nil
}

func (f *wordFormat) Entries(_ context.Context, _, metarange string) (graveler.Iterator[graveler.Entry], error) {
	f.opened++
	return &words{keys: strings.Fields(strings.TrimPrefix(metarange, "words:"))}, nil
}

// words are entries by their keys.
type words struct {
	keys []string
	next int
}

func (w *words) Next() bool {
	w.next++
	return w.next <= len(w.keys)
}

func (w *words) SeekGE(graveler.Key) { w.next = 0 }
func (w *words) Err() error          { return nil }
func (w *words) Close() error        { return nil }

func (w *words) Item() graveler.Entry {
	key := w.keys[w.next-1]
	return graveler.Entry{Key: graveler.Key(key), Value: &graveler.Value{Identity: []byte("id of " + key), Data: []byte(key)}}
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
	m.Formats = []migrate.TreeFormat{format}
	_, err = m.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, format.opened, "each tree is read once")
	v := s.verify(t) // which needs no reader
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
	require.ErrorContains(t, s.verify(t).Err(), "its fields differ")
}
