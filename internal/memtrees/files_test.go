// SPDX-License-Identifier: Apache-2.0

package memtrees_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// changes are one entry each.
type changes struct {
	entry graveler.Entry
	left  int
}

func change(key string) *changes {
	return &changes{graveler.Entry{Key: graveler.Key(key), Value: &graveler.Value{Identity: []byte("i")}}, 1}
}
func (c *changes) Next() bool           { c.left--; return c.left >= 0 }
func (c *changes) SeekGE(graveler.Key)  {}
func (c *changes) Item() graveler.Entry { return c.entry }
func (c *changes) Err() error           { return nil }
func (c *changes) Close() error         { return nil }

func TestRemovedTreesAreGone(t *testing.T) {
	ctx, s, now := context.Background(), memtrees.New(), time.Unix(0, 0)
	s.Now = func() time.Time { return now }
	build := func(base graveler.MetaRangeID, c *changes) graveler.MetaRangeID {
		tree, err := s.Apply(ctx, "ns", base, c)
		require.NoError(t, err)
		return tree
	}
	a, b := build(s.EmptyTree(), change("a")), build(s.EmptyTree(), change("b"))
	require.Equal(t, s.EmptyTree(), build(s.EmptyTree(), &changes{}))
	now = now.Add(graveler.FileGrace + time.Hour)
	at, err := s.FileTime(ctx, "ns")
	require.NoError(t, err)
	require.Equal(t, now, at)
	require.Equal(t, b, build(s.EmptyTree(), change("b")), "which makes it young")
	require.Equal(t, a, build(a, &changes{}), "which does not")

	ids := []string{string(a), string(b), string(s.EmptyTree())}
	_, err = s.RemoveFiles(ctx, "ns", ids, at.Add(time.Second-graveler.FileGrace))
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	removed, err := s.RemoveFiles(ctx, "ns", ids, at.Add(-graveler.FileGrace))
	require.NoError(t, err)
	require.Equal(t, ids[:1], removed)

	for what, err := range map[string]error{
		"get":   func() error { _, err := s.Get(ctx, "ns", a, graveler.Key("a")); return err }(),
		"scan":  s.Scan(ctx, "ns", a).Err(),
		"diff":  s.Diff(ctx, "ns", a, b).Err(),
		"apply": func() error { _, err := s.Apply(ctx, "ns", a, change("b")); return err }(),
		"walk":  s.Walk(ctx, "ns", a, func(graveler.TreeFile) (bool, error) { return true, nil }),
		"check": s.CheckFile(ctx, "ns", graveler.TreeFile{ID: string(a), Root: true}),
	} {
		require.ErrorIs(t, err, graveler.ErrCorrupt, what)
	}
	for f, err := range s.ListFiles(ctx, "ns") {
		require.NoError(t, err)
		require.Equal(t, string(b), f.ID)
		require.Equal(t, now, f.ModTime)
	}
	require.Equal(t, a, build(s.EmptyTree(), change("a")))
	_, err = s.Get(ctx, "ns", a, graveler.Key("a"))
	require.NoError(t, err)
}
