// SPDX-License-Identifier: Apache-2.0

package ref_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
	"github.com/moraine-store/moraine/pkg/kv"
)

func TestEveryRecordStandsUnderItsKeyAndDecodes(t *testing.T) {
	store := memStore(t)
	ctx, refs, repo := t.Context(), ref.New(store), repository()
	_, err := refs.PutRepository(ctx, repo)
	require.NoError(t, err)
	_, err = refs.PutBranch(ctx, repo, branch())
	require.NoError(t, err)
	require.NoError(t, refs.PutCommit(ctx, repo, &graveler.Commit{ID: "c1"}))
	require.NoError(t, refs.CreateTag(ctx, repo, &graveler.Tag{ID: "v1/rc", Commit: "c1"}))
	require.NoError(t, refs.PutMove(ctx, repo, uid, graveler.Move{Time: 1_700_000_000_000_000_000, Op: graveler.OpCreate, New: "c1"}))
	require.NoError(t, refs.PutLogName(ctx, repo, "feature/x", uid))
	require.NoError(t, refs.PutLogStart(ctx, repo, uid, 7))
	require.NoError(t, refs.PutPin(ctx, repo, graveler.Pin{Owner: "lifecycle"}))
	require.NoError(t, refs.PutExpiration(ctx, repo, graveler.Expiration{Commit: "c1", At: 7}))
	_, err = refs.PutSetting(ctx, repo, "retention", []byte("keep"), nil)
	require.NoError(t, err)
	require.NoError(t, refs.PutCleanup(ctx, graveler.Cleanup{Partition: "lake-main:t1"}))
	require.NoError(t, refs.AdvanceWatermark(ctx, 7))

	for partition, want := range map[string]map[string]proto.Message{
		"graveler":             {"repos/lake": &refpb.RepositoryData{}},
		"cleanup-tokens":       {"lake-main:t1": &refpb.CleanupData{}},
		"kv-internal-metadata": {"clock/watermark": &refpb.ClockData{}},
		"lake-" + uid: {
			"branches/main":                    &refpb.BranchData{},
			"commits/c1":                       &refpb.CommitData{},
			"tags/v1/rc":                       &refpb.TagData{},
			"log/" + uid + "/17979cfe362a0000": &refpb.MoveData{},
			"log-names/feature/x:" + uid:       &refpb.LogNameData{},
			"log-start/" + uid:                 &refpb.LogStartData{},
			"pins/lifecycle":                   &refpb.PinData{},
			"expirations/c1":                   &refpb.ExpirationData{},
			"settings/retention":               &refpb.SettingData{},
		},
	} {
		require.Len(t, keys(t, store, partition), len(want), partition)
		for key, kind := range want {
			item, err := store.Get(ctx, []byte(partition), []byte(key))
			require.NoError(t, err, key)
			m, ok := ref.Decode(partition, []byte(key), item.Value)
			require.True(t, ok, key)
			require.IsType(t, kind, m, key)
		}
	}
}

func TestWhatIsNoRecordIsNotDecoded(t *testing.T) {
	for _, c := range [][3]string{
		{"graveler", "other", ""},
		{"graveler", "repos/lake", "\xff"},
		{"kv-internal-metadata", "kv/schema/version", "1"},
		{"lake-" + uid, "unheard/of", ""},
		{"lake-" + uid, "branches", ""},
		{"lake-main:" + uid, "branches/main", ""},
	} {
		_, ok := ref.Decode(c[0], []byte(c[1]), []byte(c[2]))
		require.False(t, ok, c)
	}
}

// Whatever is stored, reading it neither panics nor passes for another record; and a branch that can
// be read can be written back.
func FuzzReading(f *testing.F) {
	for key, m := range map[string]proto.Message{
		"branches/main":          &refpb.BranchData{Id: "main", Uid: uid, State: 1, ItemCounter: 1, Items: []*refpb.Item{{Number: 1, Kind: &refpb.Item_Token{Token: "t"}}}},
		"commits/c1":             &refpb.CommitData{Id: "c1", Parents: []string{"c0"}},
		"tags/v1":                &refpb.TagData{Id: "v1", Commit: "c1"},
		"log/u/0000000000000005": &refpb.MoveData{Time: 5, Op: 1},
		"settings/retention":     &refpb.SettingData{Name: "retention", Version: 1, Data: []byte{0}},
	} {
		value, err := kv.MarshalMessage(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(repository().Partition(), []byte(key), value)
	}
	f.Fuzz(func(t *testing.T, partition string, key, value []byte) {
		ref.Decode(partition, key, value)
		store := memStore(t)
		if store.Set(t.Context(), []byte(partition), key, value) != nil {
			return // no key
		}
		refs := ref.New(store)
		for _, err := range readAll(t, refs) {
			require.ErrorIs(t, err, graveler.ErrCorrupt)
		}
		b, err := refs.GetBranch(t.Context(), repository(), "main")
		if err != nil {
			return
		}
		require.Equal(t, graveler.BranchID("main"), b.ID)
		stamp, err := refs.PutBranch(t.Context(), repository(), b)
		require.NoError(t, err)
		again, err := refs.GetBranch(t.Context(), repository(), "main")
		require.NoError(t, err)
		b.Stamp = stamp
		require.Equal(t, b, again)
	})
}
