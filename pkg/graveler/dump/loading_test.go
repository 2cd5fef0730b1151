// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// loadingOf begins to load a repository that has the first commit of lake, and returns a branch that can be put on it.
func loadingOf(t *testing.T, s store) (*graveler.Loading, graveler.Branch) {
	t.Helper()
	ctx := t.Context()
	lake, err := s.GetRepository(ctx, "lake")
	require.NoError(t, err)
	head, err := s.ResolveRef(ctx, "lake", "main")
	require.NoError(t, err)
	l, err := s.LoadRepository(ctx, "copy", graveler.LoadParams{DefaultBranch: "main", Files: lake.Namespace})
	require.NoError(t, err)
	require.NoError(t, l.PutCommit(ctx, head))
	return l, graveler.Branch{ID: "main", UID: "u", Head: head.ID, LastMove: graveler.Move{Time: 5, Op: graveler.OpCreate, New: head.ID}}
}

// What cannot be in a repository is refused, at once or at the end, and all that was loaded goes.
func TestLoadingRefusesWhatCannotBe(t *testing.T) {
	branch := func(edit func(*graveler.Branch)) func(*testing.T, *graveler.Loading, graveler.Branch) error {
		return func(t *testing.T, l *graveler.Loading, b graveler.Branch) error {
			edit(&b)
			_, err := l.PutBranch(t.Context(), b)
			return err
		}
	}
	pin := func(p graveler.Pin) func(*testing.T, *graveler.Loading, graveler.Branch) error {
		return func(t *testing.T, l *graveler.Loading, _ graveler.Branch) error { return l.PutPin(t.Context(), p) }
	}
	for name, c := range map[string]struct {
		put  func(*testing.T, *graveler.Loading, graveler.Branch) error
		want error
	}{
		"no commit":                 {func(t *testing.T, l *graveler.Loading, _ graveler.Branch) error { return l.PutCommit(t.Context(), nil) }, graveler.ErrInvalidValue},
		"a branch that never moved": {branch(func(b *graveler.Branch) { b.ID, b.UID, b.LastMove = "dev", "v", graveler.Move{} }), graveler.ErrInvalidValue},
		"a branch that was deleted": {branch(func(b *graveler.Branch) { b.ID, b.UID, b.LastMove.Op = "dev", "v", graveler.OpDelete }), graveler.ErrInvalidValue},
		"a branch without UID":      {branch(func(b *graveler.Branch) { b.ID, b.UID = "dev", "" }), graveler.ErrInvalidValue},
		"a UID with a slash":        {branch(func(b *graveler.Branch) { b.ID, b.UID = "dev", "a/b" }), graveler.ErrInvalidValue},
		"a UID that is not UTF-8":   {branch(func(b *graveler.Branch) { b.ID, b.UID = "dev", "\xff" }), graveler.ErrInvalidValue},
		"a long UID":                {branch(func(b *graveler.Branch) { b.ID, b.UID = "dev", strings.Repeat("u", 1<<20) }), graveler.ErrInvalidValue},
		"two branches of one UID":   {branch(func(b *graveler.Branch) { b.ID = "dev" }), graveler.ErrInvalidValue},
		"a deleted branch with the UID of another": {func(t *testing.T, l *graveler.Loading, b graveler.Branch) error {
			return l.PutLog(t.Context(), graveler.LogName{Branch: "dev", UID: b.UID})
		}, graveler.ErrInvalidValue},
		"a move of no branch": {func(t *testing.T, l *graveler.Loading, b graveler.Branch) error {
			return l.PutMove(t.Context(), "stray", graveler.Move{Time: 3, Op: graveler.OpCreate, New: b.Head})
		}, graveler.ErrInvalidValue},
		"the start of the log of no branch": {func(t *testing.T, l *graveler.Loading, _ graveler.Branch) error {
			return l.PutLogStart(t.Context(), "stray", 3)
		}, graveler.ErrInvalidValue},
		"a log that starts before all time": {func(t *testing.T, l *graveler.Loading, b graveler.Branch) error {
			return l.PutLogStart(t.Context(), b.UID, -1)
		}, graveler.ErrInvalidValue},
		"a tag with the name of a branch": {func(t *testing.T, l *graveler.Loading, b graveler.Branch) error {
			return l.PutTag(t.Context(), graveler.Tag{ID: "main", Commit: b.Head})
		}, graveler.ErrInvalidValue},
		"an expiration of no commit": {func(t *testing.T, l *graveler.Loading, _ graveler.Branch) error {
			return l.PutExpiration(t.Context(), graveler.Expiration{})
		}, graveler.ErrInvalidValue},
		"a pin of an owner with a long name": {pin(graveler.Pin{Owner: strings.Repeat("o", 201)}), graveler.ErrInvalidName},
		"a pin of no branch's log":           {pin(graveler.Pin{Owner: "o", Logs: map[string]int64{"a/b": 1}}), graveler.ErrInvalidValue},
		"retention rules that are none": {func(t *testing.T, l *graveler.Loading, _ graveler.Branch) error {
			return l.PutSetting(t.Context(), graveler.Setting{Name: "retention", Document: []byte("{")})
		}, graveler.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := newLake(t, memtrees.New())
			l, b := loadingOf(t, s)
			_, err := l.PutBranch(ctx, b)
			require.NoError(t, err)
			if err = c.put(t, l, b); err == nil {
				_, err = l.Finish(ctx)
			}
			require.ErrorIs(t, err, c.want)
			require.NoError(t, l.Abort(ctx))
			_, err = s.GetRepository(ctx, "copy")
			require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
		})
	}
}

// When a load has ended its calls write no more into what has become of it.
func TestALoadThatHasEndedWritesNoMore(t *testing.T) {
	ctx := t.Context()
	for _, end := range []string{"finish", "abort"} {
		s := newLake(t, memtrees.New())
		l, b := loadingOf(t, s)
		b, err := l.PutBranch(ctx, b)
		require.NoError(t, err)
		if end == "finish" {
			_, err = l.Finish(ctx)
		} else {
			err = l.Abort(ctx)
		}
		require.NoError(t, err)
		late := b
		late.ID, late.UID = "late", "late"
		_, err = l.PutBranch(ctx, late)
		require.ErrorIs(t, err, graveler.ErrClosed, end)
		_, err = l.Finish(ctx)
		require.ErrorIs(t, err, graveler.ErrClosed, end)
		for what, err := range map[string]error{
			"tag":        l.PutTag(ctx, graveler.Tag{ID: "late", Commit: b.Head}),
			"move":       l.PutMove(ctx, b.UID, graveler.Move{Time: 4, Op: graveler.OpCreate, New: b.Head}),
			"log":        l.PutLog(ctx, graveler.LogName{Branch: "late", UID: "late"}),
			"log start":  l.PutLogStart(ctx, b.UID, 3),
			"setting":    l.PutSetting(ctx, graveler.Setting{Name: "late", Document: []byte("x")}),
			"pin":        l.PutPin(ctx, graveler.Pin{Owner: "late"}),
			"expiration": l.PutExpiration(ctx, graveler.Expiration{Commit: b.Head}),
			"entries":    l.Stage(ctx, b, []graveler.Entry{{Key: key("late")}}),
		} {
			require.ErrorIs(t, err, graveler.ErrClosed, "%s after %s", what, end)
		}
		require.NoError(t, l.Abort(ctx))
		_, err = s.GetRepository(ctx, "copy")
		if end == "abort" {
			require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
			continue
		}
		require.NoError(t, err)
		_, err = s.GetBranch(ctx, "copy", "late")
		require.ErrorIs(t, err, graveler.ErrBranchNotFound)
	}
}
