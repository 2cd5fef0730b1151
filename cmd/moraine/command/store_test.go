// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/bolt"
)

func (s *shell) open(o kv.OpenOptions) kv.Store {
	s.Helper()
	store, err := bolt.Open(s.Context(), s.global[1], o)
	require.NoError(s, err)
	return store
}

func TestReadersShareTheStore(t *testing.T) {
	s := newLake(t)
	s.ok("put", "lake/main:a")
	other := s.open(kv.OpenOptions{ReadOnly: true})
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			code, stdout, stderr := s.run("ls", "lake/main:")
			require.Zero(t, code, stderr)
			require.Contains(t, stdout, "a")
			return nil
		})
	}
	require.NoError(t, group.Wait())
	for _, args := range [][]string{
		{"repo", "list"}, {"repo", "show", "lake"}, {"branch", "list", "lake"}, {"branch", "show", "lake/main"}, {"tag", "list", "lake"}, {"get", "lake/main:a"},
		{"status", "lake/main"}, {"log", "lake/main"}, {"show", "lake/main"}, {"diff", "lake/main"}, {"diff", "lake/main", "lake/main"}, {"reflog", "lake/main"}, {"changes", "lake/main"},
		{"kv", "scan", "graveler"}, {"kv", "get", "graveler", "repos/lake"},
	} {
		s.ok(args...)
	}
	require.NoError(t, other.Close())
}

func TestALockedStoreIsExplained(t *testing.T) {
	s := newLake(t)
	other := s.open(kv.OpenOptions{})
	require.Regexp(t, `^moraine: open store bolt:\S+/meta.db: locked by another process \(wait until that has ended\)$`, s.fails(1, "repo", "list"))
	require.NoError(t, other.Close())
}

func TestAStoreOfANewerProgramIsExplained(t *testing.T) {
	s := newLake(t)
	store := s.open(kv.OpenOptions{})
	require.NoError(t, store.Set(t.Context(), []byte(kv.SchemaPartition), []byte(kv.SchemaKey), []byte("99")))
	require.NoError(t, store.Close())
	require.Regexp(t, `schema is newer than this program.*\(use the version of moraine that wrote it, or a later one\)$`, s.fails(1, "repo", "list"))
}

func TestAFileOfAnotherKindIsNoStore(t *testing.T) {
	s := newShell(t)
	path := s.file("text", "hello")
	require.Contains(t, s.fails(1, "--store", "bolt:"+path, "repo", "create", "lake"), "not a store")
}

func TestRawRecordsAreDecoded(t *testing.T) {
	s := newLake(t)
	s.ok("put", "lake/main:a", "--size", "7")
	s.ok("put", "lake/main:\xff")
	s.ok("rm", "lake/main:\xff")
	s.ok("tag", "create", "lake/v1", "lake/main")
	s.ok("branch", "create", "lake/side", "lake/main")
	s.ok("commit", "lake/side", "-m", "x", "--allow-empty")

	record := s.objects("kv", "get", "graveler", "repos/lake")[0]
	require.Equal(t, "RepositoryData", record["type"])
	require.Equal(t, "main", record["value"].(map[string]any)["default_branch"])
	require.Contains(t, s.ok("kv", "get", "graveler", "repos/lake"), `{"id":"lake",`)

	types := map[any]bool{}
	for _, record := range s.objects("kv", "scan", s.objects("repo", "show", "lake")[0]["partition"].(string)) {
		types[record["type"]] = true
	}
	require.Equal(t, map[any]bool{"BranchData": true, "CommitData": true, "TagData": true, "LogNameData": true, "MoveData": true}, types)

	token := s.objects("branch", "show", "lake/main")[0]["staging_token"].(string)
	staged := s.objects("kv", "scan", token)
	require.Len(t, staged, 2)
	require.Equal(t, "7", staged[0]["object"].(map[string]any)["size"])
	require.Equal(t, "/w==", staged[1]["key_base64"])
	require.NotContains(t, staged[1], "object", "a tombstone")
	require.Len(t, s.objects("kv", "scan", token, "--limit", "1"), 1)
	require.Len(t, s.objects("kv", "scan", token, "--prefix", "a"), 1)

	raw := s.objects("kv", "get", kv.SchemaPartition, kv.SchemaKey)[0]
	require.Equal(t, "MQ==", raw["value_base64"])
	require.Empty(t, s.ok("kv", "scan", "no-such-partition"))
}
