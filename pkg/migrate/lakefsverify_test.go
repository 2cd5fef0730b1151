// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// verifiable is a repository that has something of everything, carried over.
func verifiable(t *testing.T) (*lake, *handmade) {
	t.Helper()
	l, h := emptyLake(t), newHandmade(t)
	h.Metadata = map[string]string{"team": "x"}
	h.Protection = []lakefs.ProtectionRule{{Pattern: "main", StagingWrite: true}}
	h.commit("")
	a := h.commit(h.metarange(h.rangeOf("a", "b"), h.rangeOf("m", "n")))
	b := h.commit(h.metarange(h.rangeOf("a", "b"), h.rangeOf("m", "o")))
	b.Metadata, b.Committer = map[string]string{"k": "v"}, "ann"
	main := h.branch("main", h.commit(h.metarange(h.rangeOf("z")), b.ID, a.ID), stagedEntry(t, "a", "other"), lakefs.Staged{Record: lakefs.Record{Key: []byte("z")}, Tombstone: true})
	main.Sealed = []string{"sealed-1", "sealed-2"}
	main.Staged["sealed-1"] = []lakefs.Staged{stagedEntry(t, "s", "newer")}
	main.Staged["sealed-2"] = []lakefs.Staged{stagedEntry(t, "s", "older")}
	h.branch("side", a).Hidden = true
	h.Tags = []lakefs.Tag{{ID: "v1", Commit: b.ID}}
	l.fillLake(t, h.deployment(), false)
	l.run(t)
	require.NoError(t, l.verify(t).Err())
	return l, h
}

func TestVerifyNamesWhateverFieldIsAnotherInLakeFS(t *testing.T) {
	l, h := verifiable(t)
	merge, first := h.Commits[3], h.Commits[1]
	commit := func(change func(*lakefspb.CommitData)) proto.Message {
		m := lakegen.CommitData(merge.Commit)
		change(m)
		return m
	}
	branch := func(change func(*lakefspb.BranchData)) proto.Message {
		m := &lakefspb.BranchData{Id: "main", CommitId: merge.ID, StagingToken: "token-of-main", SealedTokens: []string{"sealed-1", "sealed-2"}}
		change(m)
		return m
	}
	repository := func(change func(*lakefspb.RepositoryData)) proto.Message {
		m := &lakefspb.RepositoryData{Id: h.ID, Namespace: h.Namespace, DefaultBranch: "main", InstanceUid: h.UID, CreatedAt: &lakefspb.Instant{Seconds: h.CreatedAt.Unix()}}
		change(m)
		return m
	}
	staged := func(change func(*lakefspb.EntryData)) proto.Message {
		record := anEntry(t, "a", "other")
		m := &lakefspb.EntryData{}
		require.NoError(t, proto.Unmarshal(record.Data, m))
		change(m)
		data, err := proto.Marshal(m)
		require.NoError(t, err)
		return &lakefspb.StagedData{Key: record.Key, Identity: record.Identity, Data: data}
	}
	own := h.Partition()
	for name, c := range map[string]struct {
		partition, key string
		record         proto.Message
		names          string
	}{
		"committer":                  {own, "commits/" + merge.ID, commit(func(m *lakefspb.CommitData) { m.Committer = "eve" }), merge.ID},
		"message":                    {own, "commits/" + merge.ID, commit(func(m *lakefspb.CommitData) { m.Message += " " }), merge.ID},
		"date":                       {own, "commits/" + merge.ID, commit(func(m *lakefspb.CommitData) { m.CreatedAt.Nanoseconds++ }), merge.ID},
		"metadata":                   {own, "commits/" + merge.ID, commit(func(m *lakefspb.CommitData) { m.Metadata = map[string]string{"": ""} }), merge.ID},
		"metarange":                  {own, "commits/" + merge.ID, commit(func(m *lakefspb.CommitData) { m.MetarangeId = first.Metarange }), merge.ID},
		"no metarange":               {own, "commits/" + merge.ID, commit(func(m *lakefspb.CommitData) { m.MetarangeId = "" }), merge.ID},
		"order of parents":           {own, "commits/" + merge.ID, commit(func(m *lakefspb.CommitData) { m.Parents[0], m.Parents[1] = m.Parents[1], m.Parents[0] }), merge.ID},
		"parents":                    {own, "commits/" + merge.ID, commit(func(m *lakefspb.CommitData) { m.Parents = m.Parents[:1] }), merge.ID},
		"version":                    {own, "commits/" + merge.ID, commit(func(m *lakefspb.CommitData) { m.Version = 0 }), merge.ID},
		"head":                       {own, "branches/main", branch(func(m *lakefspb.BranchData) { m.CommitId = first.ID }), "main"},
		"hidden":                     {own, "branches/main", branch(func(m *lakefspb.BranchData) { m.Hidden = true }), "main: it is hidden"},
		"token":                      {own, "branches/main", branch(func(m *lakefspb.BranchData) { m.StagingToken = "nobody's" }), "main:a"},
		"order of sealed tokens":     {own, "branches/main", branch(func(m *lakefspb.BranchData) { m.SealedTokens = []string{"sealed-2", "sealed-1"} }), "main:s: its identity differs"},
		"a sealed token less":        {own, "branches/main", branch(func(m *lakefspb.BranchData) { m.SealedTokens = nil }), "main:s: it is only in the target"},
		"another branch":             {own, "branches/new", &lakefspb.BranchData{Id: "new", CommitId: first.ID, StagingToken: "new"}, "new: it is not in the target"},
		"tag":                        {own, "tags/v1", &lakefspb.TagData{Id: "v1", CommitId: first.ID}, "v1"},
		"another tag":                {own, "tags/v2", &lakefspb.TagData{Id: "v2", CommitId: first.ID}, "v2: it is not in the target"},
		"default branch":             {"graveler", "repos/handmade", repository(func(m *lakefspb.RepositoryData) { m.DefaultBranch = "side" }), "its default branch is side"},
		"creation":                   {"graveler", "repos/handmade", repository(func(m *lakefspb.RepositoryData) { m.CreatedAt.Nanoseconds = 1 }), "it was created at"},
		"read-only":                  {"graveler", "repos/handmade", repository(func(m *lakefspb.RepositoryData) { m.ReadOnly = true }), "it is read-only: true"},
		"in deletion":                {"graveler", "repos/handmade", repository(func(m *lakefspb.RepositoryData) { m.State = 1 }), "the source has it no more"},
		"namespace":                  {"graveler", "repos/handmade", repository(func(m *lakefspb.RepositoryData) { m.Namespace = "gs" + strings.TrimPrefix(m.Namespace, "s3") }), "its data differs"},
		"repository metadata":        {own, "repo-metadata", &lakefspb.RepositoryMetadata{Metadata: map[string]string{"team": "y"}}, "metadata"},
		"protection":                 {own, "settings/protected_branches", &lakefspb.ProtectedBranches{ByPattern: map[string]*lakefspb.BlockedActions{"main": {Actions: []lakefspb.BlockedAction{1}}}}, "branch-protection"},
		"address of an entry":        {"token-of-main", "a", staged(func(m *lakefspb.EntryData) { m.Address += "x" }), "main:a: its data differs"},
		"address type of an entry":   {"token-of-main", "a", staged(func(m *lakefspb.EntryData) { m.AddressType = 2 }), "main:a: its data differs"},
		"size of an entry":           {"token-of-main", "a", staged(func(m *lakefspb.EntryData) { m.Size++ }), "main:a: its data differs"},
		"checksum of an entry":       {"token-of-main", "a", staged(func(m *lakefspb.EntryData) { m.Etag = "" }), "main:a: its data differs"},
		"time of an entry":           {"token-of-main", "a", staged(func(m *lakefspb.EntryData) { m.ModifiedAt = &lakefspb.Instant{} }), "main:a: its data differs"},
		"content type of an entry":   {"token-of-main", "a", staged(func(m *lakefspb.EntryData) { m.ContentType = "x" }), "main:a: its data differs"},
		"metadata of an entry":       {"token-of-main", "a", staged(func(m *lakefspb.EntryData) { m.Metadata = map[string]string{"x": ""} }), "main:a: its data differs"},
		"a deletion for an entry":    {"token-of-main", "a", &lakefspb.StagedData{Key: []byte("a")}, "main:a: it is a deletion on one side only"},
		"a deletion of another key":  {"token-of-main", "b", &lakefspb.StagedData{Key: []byte("b")}, "main:b: it is not in the target"},
		"a deletion before a sealed": {"token-of-main", "s", &lakefspb.StagedData{Key: []byte("s")}, "main:s: it is a deletion on one side only"},
	} {
		t.Run(name, func(t *testing.T) {
			var before []byte
			const where = " WHERE partition_key = $1 AND key = $2"
			there := l.conn.QueryRow(t.Context(), "SELECT value FROM kv"+where, []byte(c.partition), []byte(c.key)).Scan(&before) == nil
			record, err := proto.Marshal(c.record)
			require.NoError(t, err)
			require.NotEqual(t, before, record)
			require.NoError(t, lakegen.PutKV(t.Context(), l.conn, c.partition, c.key, record))
			v, err := l.migration(t).Verify(t.Context())
			if err == nil {
				err = v.Err()
			}
			require.ErrorContains(t, err, c.names)
			if there {
				require.NoError(t, lakegen.PutKV(t.Context(), l.conn, c.partition, c.key, before))
			} else {
				l.exec(t, "DELETE FROM kv"+where, []byte(c.partition), []byte(c.key))
			}
			require.NoError(t, l.verify(t).Err())
		})
	}
}

// What says of which branch a log is, verify does not read: a check of the store does.
func TestVerifyMissesEveryRecordThatIsGoneFromARepository(t *testing.T) {
	l, _ := verifiable(t)
	repo, err := l.migration(t).Graveler.GetRepository(t.Context(), "handmade")
	require.NoError(t, err)
	branch, err := l.migration(t).Graveler.GetBranch(t.Context(), "handmade", "main")
	require.NoError(t, err)
	removed := 0
	for _, partition := range []string{"handmade-" + repo.UID, string(branch.Token)} {
		it, err := l.kv.Scan(t.Context(), []byte(partition), kv.ScanOptions{})
		require.NoError(t, err)
		for it.Next() {
			if strings.HasPrefix(string(it.Key()), "log-names/") {
				continue
			}
			key, value := bytes.Clone(it.Key()), bytes.Clone(it.Value())
			require.NoError(t, l.kv.Delete(t.Context(), []byte(partition), key))
			v, err := l.migration(t).Verify(t.Context())
			if err == nil {
				err = v.Err()
			}
			require.Error(t, err, "without %q", key)
			require.NoError(t, l.kv.Set(t.Context(), []byte(partition), key, value))
			removed++
		}
		require.NoError(t, it.Close())
	}
	require.Greater(t, removed, 10)
	require.NoError(t, l.verify(t).Err())
}
