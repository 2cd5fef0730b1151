// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

func TestRefExpressions(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	var commits []graveler.Commit
	for _, text := range []string{"1", "2", "3"} {
		f.set(t, "a", text)
		commits = append(commits, f.commit(t, text))
	}
	_, err := f.CreateTag(ctx, "lake", "v1.0", "main~2")
	require.NoError(t, err)
	f.set(t, "a", "uncommitted")

	last := string(commits[2].ID)
	for expr, message := range map[string]string{
		"main": "3", "main@": "3", "main$": "3", "main~": "2", "main~2": "1", "main^": "2", "main^1~1": "1", "main^0": "3", "main~0": "3",
		"main~1^": "1", "main@~1": "2", "v1.0": "1", last: "3", last[:12]: "3", last + "~1": "2", "v1.0~": "Repository created",
	} {
		c, err := f.ResolveRef(ctx, "lake", expr)
		require.NoError(t, err, expr)
		require.Equal(t, message, c.Message, expr)
	}
	for expr, text := range map[string]string{"main": "uncommitted", "main$": "uncommitted", "main@": "3", "main~0": "3", "v1.0": "1", last[:8]: "3"} {
		v, err := f.Get(ctx, "lake", expr, key("a"))
		require.NoError(t, err, expr)
		require.Equal(t, text, string(v.Data), expr)
		require.Equal(t, []string{"a=" + text}, show(t, f.Graveler, expr, graveler.ListOptions{}), expr)
	}
	for _, expr := range []string{"", "~1", "main~x", "main$~1", "main^99999999999999999999", "a b", "main~1@", "a..b", "@", "main@{1}"} {
		_, err := f.ResolveRef(ctx, "lake", expr)
		require.ErrorIs(t, err, graveler.ErrInvalidRef, expr)
	}
	for _, expr := range []string{"nowhere", "main~9", "main^2", strings.Repeat("0", 64), "v1.0@", "nowhere$", "0000"} {
		_, err := f.ResolveRef(ctx, "lake", expr)
		require.ErrorIs(t, err, graveler.ErrNotFound, expr)
		_, err = f.Get(ctx, "lake", expr, key("a"))
		require.ErrorIs(t, err, graveler.ErrNotFound, expr)
	}
	_, err = f.ResolveRef(ctx, "nowhere", "main")
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
}

func TestAnAmbiguousCommitPrefixIsRefused(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	repo, err := f.GetRepository(ctx, "lake")
	require.NoError(t, err)
	for _, last := range []string{"0", "1"} {
		c := graveler.Commit{ID: graveler.CommitID(strings.Repeat("ab", 31) + "a" + last), Version: graveler.CommitVersion, Generation: 1}
		require.NoError(t, f.config.Refs.PutCommit(ctx, &repo, &c))
	}
	_, err = f.ResolveRef(ctx, "lake", "abab")
	require.ErrorIs(t, err, graveler.ErrAmbiguousRef)
}

func FuzzRefExpression(f *testing.F) {
	for _, seed := range []string{"main", "main~1^2@", "v1$", "~", "^^^", "main@~", "\x00", "a/b.lock~3"} {
		f.Add(seed)
	}
	store := newFixture(f)
	f.Fuzz(func(t *testing.T, expr string) {
		_, err := store.ResolveRef(context.Background(), "lake", expr)
		if err != nil {
			for _, known := range []error{graveler.ErrInvalidRef, graveler.ErrNotFound, graveler.ErrAmbiguousRef} {
				if errors.Is(err, known) {
					return
				}
			}
			t.Fatalf("%q: %v", expr, err)
		}
	})
}

// A name that is accepted names what was made under it, alone and in expressions, and appears in listings; another one changes nothing.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"dev", "feature/x", "a@b", "a.lock", "-a", "ünï/ço", "0123abcd", "a$", "HEAD", "\xff"} {
		f.Add(seed)
	}
	ctx := context.Background()
	store := newFixture(f)
	f.Fuzz(func(t *testing.T, name string) {
		if name == "main" {
			return
		}
		b, err := store.CreateBranch(ctx, "lake", graveler.BranchID(name), "main")
		if err != nil {
			require.ErrorIs(t, err, graveler.ErrInvalidName)
			_, err := store.CreateTag(ctx, "lake", graveler.TagID(name), "main")
			require.ErrorIs(t, err, graveler.ErrInvalidName)
			return
		}
		for _, ref := range []string{name, name + "@", name + "$", name + "~0", name + "^0"} {
			c, err := store.ResolveRef(ctx, "lake", ref)
			require.NoError(t, err, ref)
			require.Equal(t, b.Head, c.ID)
		}
		require.Len(t, collect(t, store.ListBranches(ctx, "lake", "")), 2)
		require.Len(t, collect(t, store.BranchLog(ctx, "lake", b.ID, 0)), 1)
		require.NoError(t, store.DeleteBranch(ctx, "lake", b.ID, true))
		require.Len(t, collect(t, store.ListBranches(ctx, "lake", "")), 1)
	})
}

func TestNames(t *testing.T) {
	for _, good := range []string{"main", "feature/x", "v1.0", "a@b", "a$b", "ünïcode", strings.Repeat("x", 200)} {
		require.NoError(t, graveler.ValidateBranchID(graveler.BranchID(good)), good)
		require.NoError(t, graveler.ValidateTagID(graveler.TagID(good)), good)
	}
	for _, bad := range []string{
		"", "a b", "a:b", "a~1", "a^", "a?", "a*", "a[", `a\b`, "a..b", "a@{b", "a.", "a@", "a$", "-a", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b",
		"a\x00b", "a\x7f", "a\xff", strings.Repeat("x", 201), strings.Repeat("0a", 32),
	} {
		require.ErrorIs(t, graveler.ValidateBranchID(graveler.BranchID(bad)), graveler.ErrInvalidName, bad)
	}
	for _, bad := range []string{"", "ab", "-abc", "ABC", "a_b_c", strings.Repeat("x", 64), "a/bc"} {
		require.ErrorIs(t, graveler.ValidateRepositoryID(graveler.RepositoryID(bad)), graveler.ErrInvalidName, bad)
	}
	f := newFixture(t)
	ctx := context.Background()
	require.ErrorIs(t, f.Set(ctx, "lake", "main", nil, value("x")), graveler.ErrInvalidName)
	require.ErrorIs(t, f.Set(ctx, "lake", "main", key(strings.Repeat("k", 1025)), value("x")), graveler.ErrTooLarge)
	require.NoError(t, f.Set(ctx, "lake", "main", key("\x00"+strings.Repeat("k", 1279)), value("x")))
	require.NoError(t, f.Set(ctx, "lake", "main", key(strings.Repeat("k", 1024)), graveler.Value{Identity: []byte{1}, Data: make([]byte, graveler.MaxValueBytes-1)}))
	require.ErrorIs(t, f.Set(ctx, "lake", "main", key("k"), graveler.Value{Identity: []byte{1}, Data: make([]byte, graveler.MaxValueBytes)}), graveler.ErrTooLarge)
	require.ErrorIs(t, f.Set(ctx, "lake", "main", key("k"), graveler.Value{Data: []byte("x")}), graveler.ErrInvalidValue)
}
