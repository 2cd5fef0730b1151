// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"testing"

	"github.com/rs/xid"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

func TestASettingIsMadeAgainIfItIsTheSame(t *testing.T) {
	ctx := t.Context()
	s := newStore(t, mem.New(), memtrees.New())
	p := graveler.LoadParams{DefaultBranch: "main", UID: xid.New().String()}
	first, err := s.LoadRepository(ctx, "lake", p)
	require.NoError(t, err)
	rules, err := graveler.ProtectionSetting([]graveler.ProtectionRule{{Pattern: "main", Forbid: graveler.ActionCommit}})
	require.NoError(t, err)
	metadata, err := graveler.MetadataSetting(map[string]string{"team": "a"})
	require.NoError(t, err)
	require.NoError(t, first.PutSetting(ctx, rules))
	require.NoError(t, first.PutSetting(ctx, metadata))
	require.ErrorIs(t, first.PutSetting(ctx, metadata), graveler.ErrChanged, "nobody makes two of one load")

	second, err := s.ResumeLoad(ctx, "lake", p)
	require.NoError(t, err)
	require.NoError(t, second.PutSetting(ctx, metadata))
	metadata.Document = []byte(`{"team":"b"}`)
	require.ErrorIs(t, second.PutSetting(ctx, metadata), graveler.ErrExists)

	_, err = graveler.ProtectionSetting([]graveler.ProtectionRule{{Pattern: "[ab]", Forbid: graveler.ActionCommit}})
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	_, err = graveler.MetadataSetting(map[string]string{"\xff": ""})
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
}

func TestTreesOfALoadAreMadeOfOneAnother(t *testing.T) {
	ctx := t.Context()
	s := newStore(t, mem.New(), memtrees.New())
	l, err := s.LoadRepository(ctx, "lake", graveler.LoadParams{DefaultBranch: "main"})
	require.NoError(t, err)
	entry := func(key string) graveler.Entry {
		return graveler.Entry{Key: graveler.Key(key), Value: &graveler.Value{Identity: []byte("id of " + key)}}
	}
	one, err := l.ApplyTree(ctx, s.EmptyTree(), &entryList{entries: []graveler.Entry{entry("a"), entry("b")}})
	require.NoError(t, err)
	two, err := l.ApplyTree(ctx, one, &entryList{entries: []graveler.Entry{{Key: graveler.Key("a")}, entry("c")}})
	require.NoError(t, err)
	var keys []string
	it := l.ScanTree(ctx, two)
	for it.Next() {
		keys = append(keys, string(it.Item().Key))
	}
	require.NoError(t, it.Close())
	require.Equal(t, []string{"b", "c"}, keys)
	require.NoError(t, l.Abort(ctx))
	_, err = l.ApplyTree(ctx, one, &entryList{})
	require.ErrorIs(t, err, graveler.ErrClosed)
}

// entryList iterates over entries.
type entryList struct {
	entries []graveler.Entry
	next    int
}

func (l *entryList) Next() bool {
	l.next++
	return l.next <= len(l.entries)
}

func (l *entryList) SeekGE(graveler.Key)  { l.next = 0 }
func (l *entryList) Item() graveler.Entry { return l.entries[l.next-1] }
func (l *entryList) Err() error           { return nil }
func (l *entryList) Close() error         { return nil }
