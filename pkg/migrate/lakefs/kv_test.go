// SPDX-License-Identifier: Apache-2.0

package lakefs_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// connect returns a connection to an empty database.
func connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), testpg.Start(t).NewDatabase(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	return conn
}

func all[T any](t *testing.T, rows iter.Seq2[T, error]) (list []T) {
	t.Helper()
	for v, err := range rows {
		require.NoError(t, err)
		list = append(list, v)
	}
	return list
}

// failure returns the error that ends a sequence.
func failure[T any](t *testing.T, rows iter.Seq2[T, error]) (last error) {
	t.Helper()
	for _, err := range rows {
		require.NoError(t, last, "an error is the last thing")
		last = err
	}
	require.Error(t, last)
	return last
}

func TestTheTableReadsAsItWasWritten(t *testing.T) {
	ctx := t.Context()
	conn := connect(t)
	d := lakegen.Random(lakegen.Params{Seed: 7, Repositories: 4, Commits: 15})
	require.NoError(t, d.WriteKV(ctx, conn))
	kv := lakefs.NewKV(conn)

	repositories := all(t, kv.Repositories(ctx))
	require.Len(t, repositories, len(d.Repositories))
	sealed, hidden := 0, 0
	for i, r := range d.Repositories {
		require.Equal(t, r.Repository, repositories[i])
		var commits []lakefs.Commit
		for _, c := range all(t, kv.Commits(ctx, r.Repository)) {
			require.Equal(t, r.Commit(c.ID).Commit, c)
			commits = append(commits, c)
		}
		require.Len(t, commits, len(r.Commits))
		require.IsIncreasing(t, ids(commits))
		require.Equal(t, r.Tags, all(t, kv.Tags(ctx, r.Repository)))
		branches := all(t, kv.Branches(ctx, r.Repository))
		require.Len(t, branches, len(r.Branches))
		for i, b := range r.Branches {
			require.Equal(t, b.Branch, branches[i])
			for token, staged := range b.Staged {
				require.Equal(t, staged, all(t, kv.Staged(ctx, token)))
			}
			require.Equal(t, b.Newest(), all(t, kv.Staged(ctx, append([]string{b.Token}, b.Sealed...)...)))
			sealed += len(b.Sealed)
			if b.Hidden {
				hidden++
			}
		}
		metadata, err := kv.Metadata(ctx, r.Repository)
		require.NoError(t, err)
		require.Equal(t, r.Metadata, metadata)
		protection, err := kv.Protection(ctx, r.Repository)
		require.NoError(t, err)
		require.Equal(t, r.Protection, protection)
	}
	require.Positive(t, sealed)
	require.Positive(t, hidden)
}

func ids(commits []lakefs.Commit) (ids []string) {
	for _, c := range commits {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestAllOfTheTableIsCounted(t *testing.T) {
	ctx := t.Context()
	conn := connect(t)
	d := lakegen.Random(lakegen.Params{Seed: 7, Repositories: 1, Commits: 15})
	require.NoError(t, d.WriteKV(ctx, conn))
	require.NoError(t, lakegen.PutKV(ctx, conn, "\xff\x00", "\xfe", []byte("x")))
	kv := lakefs.NewKV(conn)

	rows := map[string]int64{}
	for _, p := range all(t, kv.Partitions(ctx)) {
		rows[p.Name] = p.Rows
	}
	require.EqualValues(t, 1, rows["\xff\x00"])
	require.EqualValues(t, 1, rows["auth"])
	require.EqualValues(t, len(d.Repositories), rows[lakefs.RepositoriesPartition])
	for token, staged := range d.Orphans {
		require.EqualValues(t, len(staged), rows[token])
	}
	require.Contains(t, rows, d.Deleted[0].Partition())

	r := d.Repositories[0]
	require.NoError(t, lakegen.PutKV(ctx, conn, r.Partition(), "settings/other", []byte("x")))
	kinds := map[string]int64{}
	for _, k := range all(t, kv.Keys(ctx, r.Partition())) {
		kinds[k.Prefix] = k.Rows
		require.Equal(t, k.Prefix != "pulls/" && k.Prefix != "settings/other", lakefs.Reads(r.Partition(), k.Prefix), k.Prefix)
	}
	want := map[string]int64{"branches/": int64(len(r.Branches)), "commits/": int64(len(r.Commits)), "pulls/": 1, "settings/other": 1}
	if len(r.Tags) > 0 {
		want["tags/"] = int64(len(r.Tags))
	}
	if r.Metadata != nil {
		want["repo-metadata"] = 1
	}
	if r.Protection != nil {
		want["settings/protected_branches"] = 1
	}
	require.Equal(t, want, kinds)
	require.Equal(t, []lakefs.KeyCount{{Prefix: "\xfe", Rows: 1}}, all(t, kv.Keys(ctx, "\xff\x00")))
	for partition, others := range map[string]string{lakefs.RepositoriesPartition: "other", "kv-internal-metadata": "other/"} {
		for _, k := range all(t, kv.Keys(ctx, partition)) {
			require.True(t, lakefs.Reads(partition, k.Prefix))
		}
		require.False(t, lakefs.Reads(partition, others))
	}
}

func TestWhatIsNotThereIsNothing(t *testing.T) {
	ctx := t.Context()
	conn := connect(t)
	require.NoError(t, lakegen.CreateKV(ctx, conn, 4))
	kv, r := lakefs.NewKV(conn), lakefs.Repository{ID: "none", UID: "u"}
	require.Empty(t, all(t, kv.Repositories(ctx)))
	require.Empty(t, all(t, kv.Branches(ctx, r)))
	require.Empty(t, all(t, kv.Staged(ctx, "token")))
	require.Empty(t, all(t, kv.Staged(ctx)))
	metadata, err := kv.Metadata(ctx, r)
	require.NoError(t, err)
	require.Nil(t, metadata)
	rules, err := kv.Protection(ctx, r)
	require.NoError(t, err)
	require.Nil(t, rules)
}

func TestTheVersionSaysWhetherTheTableIsRead(t *testing.T) {
	ctx := t.Context()
	conn := connect(t)
	version, err := lakefs.Version(ctx, conn)
	require.NoError(t, err)
	require.Zero(t, version, "no table")

	require.NoError(t, lakegen.CreateKV(ctx, conn, 1))
	for _, known := range []string{"1", "2", "3", "4"} {
		require.NoError(t, lakegen.PutKV(ctx, conn, "kv-internal-metadata", "kv/schema/version", []byte(known)))
		version, err = lakefs.Version(ctx, conn)
		require.NoError(t, err)
		require.Equal(t, int(known[0]-'0'), version)
	}
	for _, unknown := range []string{"0", "5", "-1", "", "4 ", "four", "\x04"} {
		require.NoError(t, lakegen.PutKV(ctx, conn, "kv-internal-metadata", "kv/schema/version", []byte(unknown)))
		_, err = lakefs.Version(ctx, conn)
		require.ErrorIs(t, err, lakefs.ErrUnknownVersion, unknown)
	}
	_, err = conn.Exec(ctx, "DELETE FROM kv")
	require.NoError(t, err)
	version, err = lakefs.Version(ctx, conn)
	require.NoError(t, err)
	require.Zero(t, version, "a table that nobody finished")
}

func TestABadRowIsNamed(t *testing.T) {
	ctx := t.Context()
	conn := connect(t)
	r := lakefs.Repository{ID: "repo", UID: "u"}
	kv := lakefs.NewKV(conn)
	read := map[string]func() error{
		"graveler":  func() error { return failure(t, kv.Repositories(ctx)) },
		"branches":  func() error { return failure(t, kv.Branches(ctx, r)) },
		"tags":      func() error { return failure(t, kv.Tags(ctx, r)) },
		"commits":   func() error { return failure(t, kv.Commits(ctx, r)) },
		"token":     func() error { return failure(t, kv.Staged(ctx, "token")) },
		"two":       func() error { return failure(t, kv.Staged(ctx, "other", "token")) },
		"metadata":  func() error { _, err := kv.Metadata(ctx, r); return err },
		"protected": func() error { _, err := kv.Protection(ctx, r); return err },
	}
	require.NoError(t, lakegen.CreateKV(ctx, conn, 4))
	for _, c := range []struct{ name, reader, partition, key, value, says string }{
		{"another name", "graveler", "graveler", "repos/repo", "\x0a\x05other", `it is the record of "other"`},
		{"unknown state", "graveler", "graveler", "repos/repo", "\x0a\x04repo\x28\x02", "state 2"},
		{"unknown field", "branches", "repo-u", "branches/main", "\x0a\x04main\x58\x01", "BranchData has fields"},
		{"no message", "tags", "repo-u", "tags/v1", "\x0a", ""},
		{"another commit", "commits", "repo-u", "commits/abc", "\x0a\x03abd", `it is the record of "abd"`},
		{"unknown field of the date", "commits", "repo-u", "commits/abc", "\x0a\x03abc\x22\x02\x18\x01", "Instant has fields"},
		{"another key", "token", "token", "a/b", "\x0a\x03a/c", `it is the record of "a/c"`},
		{"data without identity", "token", "token", "a", "\x0a\x01a\x1a\x01x", "data and no identity"},
		{"of several", "two", "token", "a", "\x0a\x01b", `it is the record of "b"`},
		{"metadata", "metadata", "repo-u", "repo-metadata", "x", ""},
		{"an action", "protected", "repo-u", "settings/protected_branches", "\x0a\x08\x0a\x01m\x12\x03\x0a\x01\x02", "forbids action 2"},
		{"unknown field of a rule", "protected", "repo-u", "settings/protected_branches", "\x0a\x07\x0a\x01m\x12\x02\x10\x01", "BlockedActions has fields"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := conn.Exec(ctx, "DELETE FROM kv")
			require.NoError(t, err)
			require.NoError(t, lakegen.PutKV(ctx, conn, c.partition, c.key, []byte(c.value)))
			err = read[c.reader]()
			require.ErrorIs(t, err, lakefs.ErrInvalidRecord)
			require.ErrorContains(t, err, `partition "`+c.partition+`", key "`+c.key+`"`)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestTheServersErrorsShow(t *testing.T) {
	ctx := t.Context()
	conn := connect(t)
	kv := lakefs.NewKV(conn)
	require.ErrorContains(t, failure(t, kv.Repositories(ctx)), "read table kv")
	_, err := kv.Metadata(ctx, lakefs.Repository{ID: "repo"})
	require.ErrorContains(t, err, "repo-metadata")
}

// A connection is free again when a sequence is left early.
func TestASequenceMayBeLeft(t *testing.T) {
	ctx := t.Context()
	conn := connect(t)
	d := lakegen.Random(lakegen.Params{Seed: 1, Repositories: 1, Commits: 10})
	require.NoError(t, d.WriteKV(ctx, conn))
	kv := lakefs.NewKV(conn)
	for c, err := range kv.Commits(ctx, d.Repositories[0].Repository) {
		require.NoError(t, err)
		require.Equal(t, 64, len(strings.TrimSpace(c.ID)))
		break
	}
	require.Len(t, all(t, kv.Repositories(ctx)), len(d.Repositories))
}
