// SPDX-License-Identifier: Apache-2.0

package ref_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
)

// stored lists what a partition holds as "key type", and as "key problem" what does not decode.
func stored(t *testing.T, refs *ref.Store, partition, prefix string) (all []string) {
	for s, err := range refs.ScanStored(t.Context(), partition, prefix) {
		require.NoError(t, err)
		one, err := refs.GetStored(t.Context(), partition, s.Key)
		require.NoError(t, err)
		require.Equal(t, s, one)
		if s.Problem != nil {
			require.ErrorIs(t, s.Problem, graveler.ErrCorrupt)
			require.Nil(t, s.Record)
			all = append(all, fmt.Sprintf("%s problem", s.Key))
			continue
		}
		all = append(all, fmt.Sprintf("%s %T", s.Key, s.Record))
	}
	return all
}

func TestAScanOfWhatIsStoredGivesEveryRecordWhetherItDecodesOrNot(t *testing.T) {
	store := memStore(t)
	ctx, refs, repo := t.Context(), ref.New(store), repository()
	_, err := refs.PutRepository(ctx, repo)
	require.NoError(t, err)
	_, err = refs.PutBranch(ctx, repo, branch())
	require.NoError(t, err)
	require.NoError(t, refs.PutCommit(ctx, repo, &graveler.Commit{ID: "c1"}))
	require.NoError(t, refs.CreateTag(ctx, repo, &graveler.Tag{ID: "v1", Commit: "c1"}))
	require.NoError(t, refs.PutMove(ctx, repo, "u", graveler.Move{Time: 5, Op: graveler.OpCreate, New: "c1"}))
	require.NoError(t, refs.PutLogName(ctx, repo, "x/y", "u"))
	require.NoError(t, refs.PutLogStart(ctx, repo, "u", 7))
	require.NoError(t, refs.PutPin(ctx, repo, graveler.Pin{Owner: "o"}))
	require.NoError(t, refs.PutExpiration(ctx, repo, graveler.Expiration{Commit: "c1", At: 7}))
	document := make([]byte, 300<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(document)
	_, err = refs.PutSetting(ctx, repo, "retention", document, nil)
	require.NoError(t, err)
	require.NoError(t, refs.PutCleanup(ctx, graveler.Cleanup{Partition: "lake-main:t"}))
	spoil := func(key string) {
		require.NoError(t, store.Set(ctx, []byte(repo.Partition()), []byte(key), []byte("\xff")))
	}
	for _, key := range []string{"commits/c0", "log/u/0000000000000004", "log/5", "tags/v0", "unknown/x", "unknown"} {
		spoil(key)
	}

	require.Equal(t, []string{"repos/lake *graveler.Repository"}, stored(t, refs, ref.RepositoriesPartition, ""))
	require.Equal(t, []string{"lake-main:t graveler.Cleanup"}, stored(t, refs, ref.CleanupsPartition, ""))
	all := stored(t, refs, repo.Partition(), "")
	require.Len(t, all, 17)
	for _, want := range []string{
		"branches/main *graveler.Branch", "commits/c0 problem", "commits/c1 *graveler.Commit", "expirations/c1 graveler.Expiration", "log-names/x/y:u graveler.LogName",
		"log-start/u ref.LogStart", "log/5 problem", "log/u/0000000000000004 problem", "log/u/0000000000000005 ref.LoggedMove", "pins/o graveler.Pin",
		"settings/retention ref.Setting", "tags/v0 problem", "tags/v1 *graveler.Tag", "unknown <nil>", "unknown/x <nil>",
	} {
		require.Contains(t, all, want)
	}
	require.Equal(t, []string{"commits/c0 problem", "commits/c1 *graveler.Commit"}, stored(t, refs, repo.Partition(), ref.CommitsPrefix))
	require.Equal(t, []string{"expirations/c1 graveler.Expiration"}, stored(t, refs, repo.Partition(), ref.ExpirationsPrefix))
	require.Equal(t, []string{"log/u/0000000000000004 problem", "log/u/0000000000000005 ref.LoggedMove"}, stored(t, refs, repo.Partition(), ref.LogPrefix("u")))

	move, err := refs.GetStored(ctx, repo.Partition(), []byte("log/u/0000000000000005"))
	require.NoError(t, err)
	require.Equal(t, ref.LoggedMove{UID: "u", Move: graveler.Move{Time: 5, Op: graveler.OpCreate, New: "c1"}}, move.Record)
	start, err := refs.GetStored(ctx, repo.Partition(), []byte("log-start/u"))
	require.NoError(t, err)
	require.Equal(t, ref.LogStart{UID: "u", Time: 7}, start.Record)
	_, err = refs.GetStored(ctx, repo.Partition(), ref.CommitKey("c2"))
	require.ErrorIs(t, err, graveler.ErrNotFound)
	for range refs.ScanStored(ctx, repo.Partition(), "") {
		break
	}
}

// What tools can show raw, a scan must know too: a kind of record that it does not know would pass unchecked.
func TestWhatDecodeKnowsAScanOfWhatIsStoredKnows(t *testing.T) {
	store := memStore(t)
	ctx, refs := t.Context(), ref.New(store)
	for _, at := range [][2]string{
		{"graveler", "repos/x"}, {"cleanup-tokens", "x"}, {"lake-u", "branches/x"}, {"lake-u", "commits/x"}, {"lake-u", "tags/x"}, {"lake-u", "log/u/x"}, {"lake-u", "log-names/x:u"},
		{"lake-u", "log-start/u"}, {"lake-u", "pins/x"}, {"lake-u", "expirations/x"}, {"lake-u", "settings/x"}, {"lake-u", "setting-chunks/x"},
	} {
		_, known := ref.Decode(at[0], []byte(at[1]), nil)
		require.True(t, known, at)
		require.NoError(t, store.Set(ctx, []byte(at[0]), []byte(at[1]), bytes.Repeat([]byte{0xff}, 3)))
		s, err := refs.GetStored(ctx, at[0], []byte(at[1]))
		require.NoError(t, err)
		require.ErrorIs(t, s.Problem, graveler.ErrCorrupt, at)
	}
}
