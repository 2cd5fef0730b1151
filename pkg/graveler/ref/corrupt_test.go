// SPDX-License-Identifier: Apache-2.0

package ref_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
	"github.com/moraine-store/moraine/pkg/graveler/stest"
	"github.com/moraine-store/moraine/pkg/kv"
)

func TestDamagedRecordsAreErrorsThatNameThem(t *testing.T) {
	live, active := refpb.BranchState_BRANCH_STATE_LIVE, refpb.RepositoryState_REPOSITORY_STATE_ACTIVE
	lake := repository().Partition()
	for name, c := range map[string]struct {
		partition, key string
		record         proto.Message // nil: bytes that are no message
	}{
		"repository, no message":    {"graveler", "repos/lake", nil},
		"repository, other name":    {"graveler", "repos/lake", &refpb.RepositoryData{Id: "pond", Uid: uid, State: active}},
		"repository, no UID":        {"graveler", "repos/lake", &refpb.RepositoryData{Id: "lake", State: active}},
		"repository, unknown state": {"graveler", "repos/lake", &refpb.RepositoryData{Id: "lake", Uid: uid, State: 9}},
		"branch, no message":        {lake, "branches/main", nil},
		"branch, other name":        {lake, "branches/main", &refpb.BranchData{Id: "dev", Uid: uid, State: live}},
		"branch, no state":          {lake, "branches/main", &refpb.BranchData{Id: "main", Uid: uid}},
		"branch, item of no kind":   {lake, "branches/main", &refpb.BranchData{Id: "main", Uid: uid, State: live, ItemCounter: 1, Items: []*refpb.Item{{Number: 1}}}},
		"branch, item of no token": {lake, "branches/main", &refpb.BranchData{
			Id: "main", Uid: uid, State: live, ItemCounter: 1, Items: []*refpb.Item{{Number: 1, Kind: &refpb.Item_Token{}}}}},
		"branch, item of the future": {lake, "branches/main", &refpb.BranchData{
			Id: "main", Uid: uid, State: live, Items: []*refpb.Item{{Number: 1, Kind: &refpb.Item_Token{Token: "t"}}}}},
		"branch, impossible move": {lake, "branches/main", &refpb.BranchData{
			Id: "main", Uid: uid, State: live, LastMove: &refpb.MoveData{Time: 1, Previous: 2, Op: 1}}},
		"commit, no message":    {lake, "commits/c1", nil},
		"commit, other ID":      {lake, "commits/c1", &refpb.CommitData{Id: "c2"}},
		"tag, no message":       {lake, "tags/v1", nil},
		"tag, other name":       {lake, "tags/v1", &refpb.TagData{Id: "v2", Commit: "c1"}},
		"tag, no commit":        {lake, "tags/v1", &refpb.TagData{Id: "v1"}},
		"move, no message":      {lake, "log/u/0000000000000005", nil},
		"move, other time":      {lake, "log/u/0000000000000005", &refpb.MoveData{Time: 6, Op: 1}},
		"move, no operation":    {lake, "log/u/0000000000000005", &refpb.MoveData{Time: 5}},
		"move, negative time":   {lake, "log/u/ffffffffffffffff", &refpb.MoveData{Time: -1, Op: 1}},
		"move, malformed key":   {lake, "log/u/5", &refpb.MoveData{Time: 5, Op: 1}},
		"log name, no message":  {lake, "log-names/main:u", nil},
		"log name, other":       {lake, "log-names/main:u", &refpb.LogNameData{Branch: "main", BranchUid: "v"}},
		"setting, no message":   {lake, "settings/retention", nil},
		"setting, other name":   {lake, "settings/retention", &refpb.SettingData{Name: "lifecycle"}},
		"setting, no S2 block":  {lake, "settings/retention", &refpb.SettingData{Name: "retention", Version: 1}},
		"cleanup, no message":   {"cleanup-tokens", "t", nil},
		"cleanup, other":        {"cleanup-tokens", "t", &refpb.CleanupData{Partition: "u"}},
		"watermark, no message": {kv.SchemaPartition, "clock/watermark", nil},
	} {
		t.Run(name, func(t *testing.T) {
			store := memStore(t)
			value := []byte("\xff")
			if c.record != nil {
				var err error
				value, err = kv.MarshalMessage(c.record)
				require.NoError(t, err)
			}
			require.NoError(t, store.Set(t.Context(), []byte(c.partition), []byte(c.key), value))
			errs := readAll(t, ref.New(store))
			require.NotEmpty(t, errs)
			for _, err := range errs {
				require.ErrorIs(t, err, graveler.ErrCorrupt)
				require.ErrorContains(t, err, c.partition)
				require.ErrorContains(t, err, c.key)
			}
		})
	}
}

// readAll reads everything that the test plants damage in, and returns the errors but "not found".
func readAll(t *testing.T, refs *ref.Store) []error {
	ctx, repo := t.Context(), repository()
	_, repositoryErr := refs.GetRepository(ctx, "lake")
	_, branchErr := refs.GetBranch(ctx, repo, "main")
	_, commitErr := refs.GetCommit(ctx, repo, "c1")
	_, tagErr := refs.GetTag(ctx, repo, "v1")
	_, _, settingErr := refs.GetSetting(ctx, repo, "retention")
	_, watermarkErr := refs.Watermark(ctx)
	var errs []error
	for _, err := range []error{
		repositoryErr, stest.LastError(refs.ScanRepositories(ctx, "")),
		branchErr, stest.LastError(refs.ScanBranches(ctx, repo, "")),
		commitErr, stest.LastError(refs.ScanCommits(ctx, repo, "")),
		tagErr, stest.LastError(refs.ScanTags(ctx, repo, "")),
		stest.LastError(refs.ScanMoves(ctx, repo, "u", 0, 1<<62)), stest.LastError(refs.ScanLogNames(ctx, repo, "main")),
		settingErr, stest.LastError(refs.ScanCleanups(ctx)), watermarkErr,
	} {
		if err != nil && !isNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errs
}

func TestADamagedRecordEndsAScanWhereItIs(t *testing.T) {
	store := memStore(t)
	ctx, refs, repo := t.Context(), ref.New(store), repository()
	for _, id := range []graveler.TagID{"a", "b", "c"} {
		require.NoError(t, refs.CreateTag(ctx, repo, &graveler.Tag{ID: id, Commit: "c1"}))
	}
	require.NoError(t, store.Set(ctx, []byte(repo.Partition()), []byte("tags/b"), []byte("\xff")))
	var seen []graveler.TagID
	var errs []error
	for tag, err := range refs.ScanTags(ctx, repo, "") {
		if err != nil {
			require.Nil(t, tag)
			errs = append(errs, err)
			continue
		}
		seen = append(seen, tag.ID)
	}
	require.Equal(t, []graveler.TagID{"a"}, seen)
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], "scan tags of lake")
}
