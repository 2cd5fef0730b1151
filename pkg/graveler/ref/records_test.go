// SPDX-License-Identifier: Apache-2.0

package ref_test

import (
	"context"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// fill sets every field, also those that are added after this was written, to something that is not
// its zero value. Stamps stay nil.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Interface().(type) {
	case graveler.Stamp:
		return
	case graveler.Key:
		v.SetBytes(rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "key"))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(0, rapid.Int64().Draw(t, "time")).UTC()))
		return
	case graveler.RepositoryState:
		v.SetInt(rapid.Int64Range(1, 3).Draw(t, "state"))
		return
	case graveler.BranchState:
		v.SetInt(rapid.Int64Range(1, 2).Draw(t, "state"))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.StringN(1, 20, -1).Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64Range(1, math.MaxInt32).Draw(t, "int"))
	case reflect.Uint8:
		v.SetUint(rapid.Uint64Range(1, math.MaxUint8).Draw(t, "byte"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64Min(1).Draw(t, "uint"))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
		repair(t, v)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(1, 4).Draw(t, "length"), 4))
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(1, 4).Draw(t, "length") {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key)
			fill(t, value)
			v.SetMapIndex(key, value)
		}
	default:
		t.Fatalf("no values for %s", v.Type())
	}
}

// repair makes structs valid whose fields depend on one another.
func repair(t *rapid.T, v reflect.Value) {
	switch s := v.Addr().Interface().(type) {
	case *graveler.Move:
		s.Time += s.Previous
	case *graveler.Item:
		if rapid.Bool().Draw(t, "token") {
			s.Prefix = nil
		} else {
			s.Token = ""
		}
	}
}

func full[T any](t *rapid.T) *T {
	v := new(T)
	fill(t, reflect.ValueOf(v).Elem())
	return v
}

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
			require.Equal(t, []*graveler.Repository{repo}, collect(t, refs.ScanRepositories(ctx, "")))
			requireEveryFieldStored(t, store, "graveler", "repos/"+string(repo.ID))
		},
		"branch": func(t *rapid.T, store kv.Store, refs *ref.Store, repo *graveler.Repository) {
			b := full[graveler.Branch](t)
			for i := range b.Items {
				b.Items[i].Number = uint64(len(b.Items) - i)
			}
			b.ItemCounter = max(b.ItemCounter, uint64(len(b.Items)))
			stamp, err := refs.PutBranch(ctx, repo, b)
			require.NoError(t, err)
			b.Stamp = stamp
			got, err := refs.GetBranch(ctx, repo, b.ID)
			require.NoError(t, err)
			require.Equal(t, b, got)
			require.Equal(t, []*graveler.Branch{b}, collect(t, refs.ScanBranches(ctx, repo, "")))
			requireEveryFieldStored(t, store, repo.Partition(), "branches/"+string(b.ID))
		},
		"commit": func(t *rapid.T, store kv.Store, refs *ref.Store, repo *graveler.Repository) {
			c := full[graveler.Commit](t)
			require.NoError(t, refs.PutCommit(ctx, repo, c))
			require.NoError(t, refs.PutCommit(ctx, repo, c))
			got, err := refs.GetCommit(ctx, repo, c.ID)
			require.NoError(t, err)
			require.Equal(t, c, got)
			require.Equal(t, []*graveler.Commit{c}, collect(t, refs.ScanCommits(ctx, repo, "")))
			requireEveryFieldStored(t, store, repo.Partition(), "commits/"+string(c.ID))
		},
		"tag": func(t *rapid.T, store kv.Store, refs *ref.Store, repo *graveler.Repository) {
			tag := full[graveler.Tag](t)
			require.NoError(t, refs.CreateTag(ctx, repo, tag))
			got, err := refs.GetTag(ctx, repo, tag.ID)
			require.NoError(t, err)
			require.NotNil(t, got.Stamp)
			tag.Stamp = got.Stamp
			require.Equal(t, tag, got)
			require.Equal(t, []*graveler.Tag{tag}, collect(t, refs.ScanTags(ctx, repo, "")))
			requireEveryFieldStored(t, store, repo.Partition(), "tags/"+string(tag.ID))
		},
		"cleanup": func(t *rapid.T, store kv.Store, refs *ref.Store, repo *graveler.Repository) {
			c := full[graveler.Cleanup](t)
			require.NoError(t, refs.PutCleanup(ctx, *c))
			require.Equal(t, []graveler.Cleanup{*c}, collect(t, refs.ScanCleanups(ctx)))
			requireEveryFieldStored(t, store, "cleanup-tokens", c.Partition)
		},
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			repo := full[graveler.Repository](t)
			repo.ID, repo.UID = "lake", uid
			store := mem.New()
			defer func() { require.NoError(t, store.Close()) }()
			test(t, store, ref.New(store), repo)
		}))
	}
}

func TestRecordsWithNothingOptionalComeBack(t *testing.T) {
	eachEngine(t, func(t *testing.T, store kv.Store) {
		ctx, refs := t.Context(), ref.New(store)
		repo := &graveler.Repository{ID: "lake", UID: uid, State: graveler.RepositoryCreating}
		_, err := refs.PutRepository(ctx, repo)
		require.NoError(t, err)
		gotRepo, err := refs.GetRepository(ctx, "lake")
		require.NoError(t, err)
		require.True(t, gotRepo.CreatedAt.IsZero())

		b := &graveler.Branch{ID: "a/b", UID: uid, State: graveler.BranchLive, ItemCounter: 1, Items: []graveler.Item{{Number: 1}}}
		b.Stamp, err = refs.PutBranch(ctx, repo, b)
		require.NoError(t, err)
		got, err := refs.GetBranch(ctx, repo, "a/b")
		require.NoError(t, err)
		require.Empty(t, got.Items[0].Prefix)
		got.Items[0].Prefix = nil
		require.Equal(t, b, got)

		c := &graveler.Commit{ID: "c1", CreatedAt: time.Unix(0, 0).UTC()}
		require.NoError(t, refs.PutCommit(ctx, repo, c))
		gotCommit, err := refs.GetCommit(ctx, repo, "c1")
		require.NoError(t, err)
		require.Equal(t, c, gotCommit, "the epoch is a time like any other")
	})
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
