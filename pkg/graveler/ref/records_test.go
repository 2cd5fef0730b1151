// SPDX-License-Identifier: Apache-2.0

package ref_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
	"github.com/moraine-store/moraine/pkg/graveler/stest"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// requireEveryFieldStored fails for a field of the message that nothing was written to.
func requireEveryFieldStored(t *rapid.T, store kv.Store, partition string, key string) {
	item, err := store.Get(context.Background(), []byte(partition), []byte(key))
	require.NoError(t, err)
	m, ok := ref.Decode(partition, []byte(key), item.Value)
	require.True(t, ok)
	requireEveryFieldSet(t, m.ProtoReflect())
}

func requireEveryFieldSet(t *rapid.T, m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		if field.ContainingOneof() != nil && !field.HasOptionalKeyword() {
			require.NotNil(t, m.WhichOneof(field.ContainingOneof()), field.FullName())
			continue
		}
		require.True(t, m.Has(field), field.FullName())
		if field.Message() == nil || field.IsMap() {
			continue
		}
		if !field.IsList() {
			requireEveryFieldSet(t, m.Get(field).Message())
			continue
		}
		for n := range m.Get(field).List().Len() {
			requireEveryFieldSet(t, m.Get(field).List().Get(n).Message())
		}
	}
}

func TestRecordsComeBackWithEveryField(t *testing.T) {
	ctx := t.Context()
	type check = func(t *rapid.T, store kv.Store, refs *ref.Store, repo *graveler.Repository)
	for name, test := range map[string]check{
		"repository": func(t *rapid.T, store kv.Store, refs *ref.Store, repo *graveler.Repository) {
			stamp, err := refs.PutRepository(ctx, repo)
			require.NoError(t, err)
			repo.Stamp = stamp
			got, err := refs.GetRepository(ctx, repo.ID)
			require.NoError(t, err)
			require.Equal(t, repo, got)
			require.Equal(t, []*graveler.Repository{repo}, stest.Collect(t, refs.ScanRepositories(ctx, "")))
			requireEveryFieldStored(t, store, "graveler", "repos/"+string(repo.ID))
		},
		"branch": func(t *rapid.T, store kv.Store, refs *ref.Store, repo *graveler.Repository) {
			b := stest.Full[graveler.Branch](t)
			stamp, err := refs.PutBranch(ctx, repo, b)
			require.NoError(t, err)
			b.Stamp = stamp
			got, err := refs.GetBranch(ctx, repo, b.ID)
			require.NoError(t, err)
			require.Equal(t, b, got)
			require.Equal(t, []*graveler.Branch{b}, stest.Collect(t, refs.ScanBranches(ctx, repo, "")))
			requireEveryFieldStored(t, store, repo.Partition(), "branches/"+string(b.ID))
		},
		"commit": func(t *rapid.T, store kv.Store, refs *ref.Store, repo *graveler.Repository) {
			c := stest.Full[graveler.Commit](t)
			require.NoError(t, refs.PutCommit(ctx, repo, c))
			require.NoError(t, refs.PutCommit(ctx, repo, c))
			got, err := refs.GetCommit(ctx, repo, c.ID)
			require.NoError(t, err)
			require.Equal(t, c, got)
			require.Equal(t, []*graveler.Commit{c}, stest.Collect(t, refs.ScanCommits(ctx, repo, "")))
			requireEveryFieldStored(t, store, repo.Partition(), "commits/"+string(c.ID))
		},
		"tag": func(t *rapid.T, store kv.Store, refs *ref.Store, repo *graveler.Repository) {
			tag := stest.Full[graveler.Tag](t)
			require.NoError(t, refs.CreateTag(ctx, repo, tag))
			got, err := refs.GetTag(ctx, repo, tag.ID)
			require.NoError(t, err)
			require.NotNil(t, got.Stamp)
			tag.Stamp = got.Stamp
			require.Equal(t, tag, got)
			require.Equal(t, []*graveler.Tag{tag}, stest.Collect(t, refs.ScanTags(ctx, repo, "")))
			requireEveryFieldStored(t, store, repo.Partition(), "tags/"+string(tag.ID))
		},
		"cleanup": func(t *rapid.T, store kv.Store, refs *ref.Store, repo *graveler.Repository) {
			c := stest.Full[graveler.Cleanup](t)
			require.NoError(t, refs.PutCleanup(ctx, *c))
			require.Equal(t, []graveler.Cleanup{*c}, stest.Collect(t, refs.ScanCleanups(ctx)))
			requireEveryFieldStored(t, store, "cleanup-tokens", c.Partition)
		},
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			repo := stest.Full[graveler.Repository](t)
			repo.ID, repo.UID = "lake", uid
			store := mem.New()
			defer func() { require.NoError(t, store.Close()) }()
			test(t, store, ref.New(store), repo)
		}))
	}
}

func TestStoredNumbersAreThoseOfTheModel(t *testing.T) {
	for number, stored := range map[graveler.Op]refpb.Op{
		graveler.OpCreate:     refpb.Op_OP_CREATE,
		graveler.OpCommit:     refpb.Op_OP_COMMIT,
		graveler.OpMerge:      refpb.Op_OP_MERGE,
		graveler.OpRevert:     refpb.Op_OP_REVERT,
		graveler.OpCherryPick: refpb.Op_OP_CHERRY_PICK,
		graveler.OpImport:     refpb.Op_OP_IMPORT,
		graveler.OpReset:      refpb.Op_OP_RESET,
		graveler.OpLifecycle:  refpb.Op_OP_LIFECYCLE,
		graveler.OpMigrate:    refpb.Op_OP_MIGRATE,
		graveler.OpDelete:     refpb.Op_OP_DELETE,
	} {
		require.EqualValues(t, number, stored)
	}
	require.EqualValues(t, graveler.RepositoryCreating, refpb.RepositoryState_REPOSITORY_STATE_CREATING)
	require.EqualValues(t, graveler.RepositoryActive, refpb.RepositoryState_REPOSITORY_STATE_ACTIVE)
	require.EqualValues(t, graveler.RepositoryInDeletion, refpb.RepositoryState_REPOSITORY_STATE_IN_DELETION)
	require.EqualValues(t, graveler.BranchLive, refpb.BranchState_BRANCH_STATE_LIVE)
	require.EqualValues(t, graveler.BranchDeleted, refpb.BranchState_BRANCH_STATE_DELETED)
}

func TestUnknownFieldsSurviveRewriting(t *testing.T) {
	store := memStore(t)
	ctx, refs, repo := t.Context(), ref.New(store), repository()
	_, err := refs.PutRepository(ctx, repo)
	require.NoError(t, err)
	_, err = refs.PutBranch(ctx, repo, branch())
	require.NoError(t, err)
	plant(t, store, "graveler", "repos/lake", &refpb.RepositoryData{}, func(m *refpb.RepositoryData) {
		m.ProtoReflect().SetUnknown(unknownField("repository"))
	})
	plant(t, store, repo.Partition(), "branches/main", &refpb.BranchData{}, func(m *refpb.BranchData) {
		m.ProtoReflect().SetUnknown(unknownField("branch"))
		m.Items[0].ProtoReflect().SetUnknown(unknownField("item 2"))
		m.Items[1].ProtoReflect().SetUnknown(unknownField("item 1"))
		m.LastMove.ProtoReflect().SetUnknown(unknownField("move"))
	})

	r, err := refs.GetRepository(ctx, "lake")
	require.NoError(t, err)
	r.Nonce = "n2"
	_, err = refs.PutRepository(ctx, r)
	require.NoError(t, err)
	storedRepository := &refpb.RepositoryData{}
	_, err = kv.GetMessage(ctx, store, []byte("graveler"), []byte("repos/lake"), storedRepository)
	require.NoError(t, err)
	require.Equal(t, "n2", storedRepository.Nonce)
	require.Equal(t, unknownField("repository"), []byte(storedRepository.ProtoReflect().GetUnknown()))

	rewrite := func(change func(b *graveler.Branch)) *refpb.BranchData {
		b, err := refs.GetBranch(ctx, repo, "main")
		require.NoError(t, err)
		change(b)
		_, err = refs.PutBranch(ctx, repo, b)
		require.NoError(t, err)
		stored := &refpb.BranchData{}
		_, err = kv.GetMessage(ctx, store, []byte(repo.Partition()), []byte("branches/main"), stored)
		require.NoError(t, err)
		require.Equal(t, unknownField("branch"), []byte(stored.ProtoReflect().GetUnknown()))
		return stored
	}
	unknown := func(m proto.Message) string { return string(m.ProtoReflect().GetUnknown()) }

	sealed := rewrite(func(b *graveler.Branch) {
		b.Items, b.ItemCounter = slices.Insert(b.Items, 0, graveler.Item{Number: 3, Token: b.Token}), 3
	})
	require.Empty(t, unknown(sealed.Items[0]))
	require.Equal(t, string(unknownField("item 2")), unknown(sealed.Items[1]))
	require.Equal(t, string(unknownField("item 1")), unknown(sealed.Items[2]))
	require.Equal(t, string(unknownField("move")), unknown(sealed.LastMove))

	moved := rewrite(func(b *graveler.Branch) {
		b.Items = b.Items[:2]
		b.LastMove = graveler.Move{Time: 11, Previous: 10, Op: graveler.OpCommit, Old: "c1", New: "c2"}
	})
	require.Len(t, moved.Items, 2)
	require.Equal(t, string(unknownField("item 2")), unknown(moved.Items[1]))
	require.Empty(t, unknown(moved.LastMove), "they were another move's")
}
