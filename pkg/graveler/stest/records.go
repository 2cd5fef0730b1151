// SPDX-License-Identifier: Apache-2.0

package stest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

func writesLandOnlyOnTheRecordThatWasRead(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	kinds := map[string]struct {
		put    func(nonce string, s graveler.Stamp) (graveler.Stamp, error)
		remove func(s graveler.Stamp) error
	}{
		"repository": {
			func(nonce string, s graveler.Stamp) (graveler.Stamp, error) {
				r := repository()
				r.ID, r.Nonce, r.Stamp = "pond", nonce, s
				return refs.PutRepository(ctx, r)
			},
			func(s graveler.Stamp) error {
				return refs.RemoveRepository(ctx, &graveler.Repository{ID: "pond", Stamp: s})
			},
		},
		"branch": {
			func(nonce string, s graveler.Stamp) (graveler.Stamp, error) {
				b := branch()
				b.Nonce, b.Stamp = nonce, s
				return refs.PutBranch(ctx, repo, b)
			},
			func(s graveler.Stamp) error {
				return refs.RemoveBranch(ctx, repo, &graveler.Branch{ID: "main", Stamp: s})
			},
		},
		"setting": {
			func(nonce string, s graveler.Stamp) (graveler.Stamp, error) {
				return refs.PutSetting(ctx, repo, "retention", []byte(nonce), s)
			},
			func(s graveler.Stamp) error { return refs.RemoveSetting(ctx, repo, "retention", s) },
		},
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, k.remove(nil), "there is nothing to remove")

			first, err := k.put("1", nil)
			require.NoError(t, err)
			_, err = k.put("2", nil)
			require.ErrorIs(t, err, graveler.ErrChanged)
			require.ErrorIs(t, k.remove(nil), graveler.ErrChanged)

			second, err := k.put("2", first)
			require.NoError(t, err)
			_, err = k.put("3", first)
			require.ErrorIs(t, err, graveler.ErrChanged)
			require.ErrorIs(t, k.remove(first), graveler.ErrChanged)

			require.NoError(t, k.remove(second))
			_, err = k.put("3", second)
			require.ErrorIs(t, err, graveler.ErrChanged)
			require.ErrorIs(t, k.remove(second), graveler.ErrChanged)
			_, err = k.put("4", nil)
			require.NoError(t, err)
		})
	}
}

func tagsAreCreatedOnceAndRemovedAsRead(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	require.NoError(t, refs.CreateTag(ctx, repo, &graveler.Tag{ID: "v1", Commit: "c1"}))
	err := refs.CreateTag(ctx, repo, &graveler.Tag{ID: "v1", Commit: "c2"})
	require.ErrorIs(t, err, graveler.ErrExists)
	require.EqualError(t, err, "create tag lake/v1: exists already")

	old, err := refs.GetTag(ctx, repo, "v1")
	require.NoError(t, err)
	require.Equal(t, graveler.CommitID("c1"), old.Commit)
	require.ErrorIs(t, refs.RemoveTag(ctx, repo, &graveler.Tag{ID: "v1"}), graveler.ErrChanged)
	require.NoError(t, refs.RemoveTag(ctx, repo, old))
	require.NoError(t, refs.CreateTag(ctx, repo, &graveler.Tag{ID: "v1", Commit: "c2"}))
	require.ErrorIs(t, refs.RemoveTag(ctx, repo, old), graveler.ErrChanged)
	require.NoError(t, refs.RemoveTag(ctx, repo, &graveler.Tag{ID: "v2"}), "there is nothing to remove")
}

func whatIsNotThereIsNamed(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), repository()
	for _, c := range []struct {
		get  func() error
		want error
		text string
	}{
		{func() error { _, err := refs.GetRepository(ctx, "lake"); return err }, graveler.ErrRepositoryNotFound, "get repository lake: repository not found"},
		{func() error { _, err := refs.GetBranch(ctx, repo, "a/b"); return err }, graveler.ErrBranchNotFound, "get branch lake/a/b: branch not found"},
		{func() error { _, err := refs.GetTag(ctx, repo, "v1"); return err }, graveler.ErrTagNotFound, "get tag lake/v1: tag not found"},
		{func() error { _, err := refs.GetCommit(ctx, repo, "c1"); return err }, graveler.ErrCommitNotFound, "get commit c1 of lake: commit not found"},
		{func() error { _, _, err := refs.GetSetting(ctx, repo, "retention"); return err }, graveler.ErrSettingNotFound, "get setting retention of lake: setting not found"},
	} {
		for _, there := range []string{"no repository", "a repository"} {
			err := c.get()
			require.ErrorIs(t, err, c.want, there)
			require.ErrorIs(t, err, graveler.ErrNotFound, there)
			require.EqualError(t, err, c.text, there)
			if c.want == graveler.ErrRepositoryNotFound {
				Repository(t, refs)
				break
			}
		}
	}
}

func whatCouldNotBeReadBackIsNotWritten(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	putRepository := func(change func(*graveler.Repository)) error {
		r := repository()
		r.ID = "pond"
		change(r)
		_, err := refs.PutRepository(ctx, r)
		return err
	}
	putBranch := func(change func(*graveler.Branch)) error {
		b := branch()
		change(b)
		_, err := refs.PutBranch(ctx, repo, b)
		return err
	}
	for name, c := range map[string]struct{ got, want error }{
		"state of repository":  {putRepository(func(r *graveler.Repository) { r.State = 0 }), graveler.ErrInvalidValue},
		"UID of repository":    {putRepository(func(r *graveler.Repository) { r.UID = "" }), graveler.ErrInvalidValue},
		"not UTF-8":            {putRepository(func(r *graveler.Repository) { r.Namespace = "\xff" }), graveler.ErrInvalidValue},
		"time":                 {putRepository(func(r *graveler.Repository) { r.CreatedAt = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }), graveler.ErrInvalidValue},
		"state of branch":      {putBranch(func(b *graveler.Branch) { b.State = 7 }), graveler.ErrInvalidValue},
		"branch without name":  {putBranch(func(b *graveler.Branch) { b.ID = "" }), graveler.ErrInvalidValue},
		"item of two kinds":    {putBranch(func(b *graveler.Branch) { b.Items[1].Prefix = graveler.Key("p") }), graveler.ErrInvalidValue},
		"item out of order":    {putBranch(func(b *graveler.Branch) { b.Items[1].Number = 2 }), graveler.ErrInvalidValue},
		"item of the future":   {putBranch(func(b *graveler.Branch) { b.ItemCounter = 1 }), graveler.ErrInvalidValue},
		"move without op":      {putBranch(func(b *graveler.Branch) { b.LastMove.Op = 0 }), graveler.ErrInvalidValue},
		"actor not UTF-8":      {putBranch(func(b *graveler.Branch) { b.LastMove.Actor = "\xff" }), graveler.ErrInvalidValue},
		"too large":            {putBranch(func(b *graveler.Branch) { b.Base = graveler.MetaRangeID(make([]byte, kv.MaxValueBytes)) }), graveler.ErrTooLarge},
		"commit without ID":    {refs.PutCommit(ctx, repo, &graveler.Commit{}), graveler.ErrInvalidValue},
		"message not UTF-8":    {refs.PutCommit(ctx, repo, &graveler.Commit{ID: "c1", Message: "\xff"}), graveler.ErrInvalidValue},
		"metadata not UTF-8":   {refs.PutCommit(ctx, repo, &graveler.Commit{ID: "c1", Metadata: map[string]string{"k": "\xff"}}), graveler.ErrInvalidValue},
		"tag without commit":   {refs.CreateTag(ctx, repo, &graveler.Tag{ID: "v1"}), graveler.ErrInvalidValue},
		"move backwards":       {refs.PutMove(ctx, repo, uid, graveler.Move{Time: 5, Previous: 5, Op: graveler.OpCommit}), graveler.ErrInvalidValue},
		"negative time":        {refs.PutMove(ctx, repo, uid, graveler.Move{Time: -5, Previous: -6, Op: graveler.OpCommit}), graveler.ErrInvalidValue},
		"move of no branch":    {refs.PutMove(ctx, repo, "", graveler.Move{Time: 5, Op: graveler.OpCommit}), graveler.ErrInvalidValue},
		"log in another log":   {refs.PutMove(ctx, repo, "a/b", graveler.Move{Time: 5, Op: graveler.OpCommit}), graveler.ErrInvalidValue},
		"branch with a colon":  {refs.PutLogName(ctx, repo, "a:b", uid), graveler.ErrInvalidName},
		"cleanup of nothing":   {refs.PutCleanup(ctx, graveler.Cleanup{}), graveler.ErrInvalidValue},
		"pin of nobody":        {refs.PutPin(ctx, repo, graveler.Pin{}), graveler.ErrInvalidValue},
		"pin of what is not":   {refs.PutPin(ctx, repo, graveler.Pin{Owner: "o", Trees: []graveler.MetaRangeID{"\xff"}}), graveler.ErrInvalidValue},
		"namespace of cleanup": {refs.PutCleanup(ctx, graveler.Cleanup{Partition: "p", Namespace: "\xff"}), graveler.ErrInvalidValue},
	} {
		require.ErrorIs(t, c.got, c.want, name)
	}
	require.Len(t, Collect(t, refs.ScanRepositories(ctx, "")), 1)
	require.Empty(t, Collect(t, refs.ScanBranches(ctx, repo, "")))
	require.Empty(t, Collect(t, refs.ScanCommits(ctx, repo, "")))
	require.Empty(t, Collect(t, refs.ScanTags(ctx, repo, "")))
	require.Empty(t, Collect(t, refs.ScanLogNames(ctx, repo, "")))
	require.Empty(t, Collect(t, refs.ScanPins(ctx, repo)))
	require.Empty(t, Collect(t, refs.ScanCleanups(ctx)))
}

func recordsComeBackWithEveryField(t *testing.T, refs graveler.Refs) {
	const seeds = 12
	ctx := t.Context()
	for i, repo := range drawn[graveler.Repository](seeds) {
		var err error
		repo.Stamp, err = refs.PutRepository(ctx, repo)
		require.NoError(t, err)
		got, err := refs.GetRepository(ctx, repo.ID)
		require.NoError(t, err)
		require.Equal(t, repo, got)
		require.Contains(t, Collect(t, refs.ScanRepositories(ctx, repo.ID)), repo)
		if i > 0 {
			require.NoError(t, refs.RemoveRepository(ctx, repo))
		}
	}
	repo := Repository(t, refs)
	for _, b := range drawn[graveler.Branch](seeds) {
		var err error
		b.Stamp, err = refs.PutBranch(ctx, repo, b)
		require.NoError(t, err)
		got, err := refs.GetBranch(ctx, repo, b.ID)
		require.NoError(t, err)
		require.Equal(t, b, got)
		require.Equal(t, []*graveler.Branch{b}, Collect(t, refs.ScanBranches(ctx, repo, "")))
		require.NoError(t, refs.RemoveBranch(ctx, repo, b))
	}
	for _, c := range drawn[graveler.Commit](seeds) {
		for range 2 {
			require.NoError(t, refs.PutCommit(ctx, repo, c))
		}
		got, err := refs.GetCommit(ctx, repo, c.ID)
		require.NoError(t, err)
		require.Equal(t, c, got)
		require.Contains(t, Collect(t, refs.ScanCommits(ctx, repo, "")), c)
	}
	for _, tag := range drawn[graveler.Tag](seeds) {
		require.NoError(t, refs.CreateTag(ctx, repo, tag))
		got, err := refs.GetTag(ctx, repo, tag.ID)
		require.NoError(t, err)
		require.NotNil(t, got.Stamp)
		tag.Stamp = got.Stamp
		require.Equal(t, tag, got)
		require.Equal(t, []*graveler.Tag{tag}, Collect(t, refs.ScanTags(ctx, repo, "")))
		require.NoError(t, refs.RemoveTag(ctx, repo, tag))
	}
	for _, c := range drawn[graveler.Cleanup](seeds) {
		require.NoError(t, refs.PutCleanup(ctx, *c))
		require.Equal(t, []graveler.Cleanup{*c}, Collect(t, refs.ScanCleanups(ctx)))
		require.NoError(t, refs.RemoveCleanup(ctx, c.Partition))
	}
}

func recordsWithNothingOptionalComeBack(t *testing.T, refs graveler.Refs) {
	ctx := t.Context()
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
	require.NoError(t, refs.PutCommit(ctx, repo, &graveler.Commit{ID: "c2"}))
	gotCommit, err = refs.GetCommit(ctx, repo, "c2")
	require.NoError(t, err)
	require.True(t, gotCommit.CreatedAt.IsZero())
}

// A store may find nothing, or that the repository is gone; it must not mistake what is there for what was.
func aRepositoryIsAnotherThanItsPredecessor(t *testing.T, refs graveler.Refs) {
	ctx, first := t.Context(), Repository(t, refs)
	b := branch()
	_, err := refs.PutBranch(ctx, first, b)
	require.NoError(t, err)
	require.NoError(t, refs.PutCommit(ctx, first, &graveler.Commit{ID: "c1"}))
	require.NoError(t, refs.CreateTag(ctx, first, &graveler.Tag{ID: "v1", Commit: "c1"}))
	require.NoError(t, refs.DropPartition(ctx, first.Partition()))
	require.Empty(t, Collect(t, refs.ScanBranches(ctx, first, "")))
	require.NoError(t, refs.PutCommit(ctx, first, &graveler.Commit{ID: "late"}), "its record is still there")
	require.NoError(t, refs.RemoveRepository(ctx, first))

	second := repository()
	second.UID = "cv0example0000000009"
	_, err = refs.PutRepository(ctx, second)
	require.NoError(t, err)
	require.Empty(t, Collect(t, refs.ScanCommits(ctx, second, "")))
	b.Stamp, err = refs.PutBranch(ctx, second, b)
	require.NoError(t, err)
	require.NoError(t, refs.PutCommit(ctx, second, &graveler.Commit{ID: "c1"}))
	require.NoError(t, refs.CreateTag(ctx, second, &graveler.Tag{ID: "v1", Commit: "c1"}))
	_, err = refs.PutSetting(ctx, second, "retention", nil, nil)
	require.NoError(t, err)

	_, err = refs.GetBranch(ctx, first, b.ID)
	require.ErrorIs(t, err, graveler.ErrBranchNotFound)
	_, err = refs.GetCommit(ctx, first, "c1")
	require.ErrorIs(t, err, graveler.ErrCommitNotFound)
	require.Empty(t, Collect(t, refs.ScanTags(ctx, first, "")))
	require.ErrorIs(t, refs.RemoveBranch(ctx, first, b), graveler.ErrChanged)
	if err := refs.PutCommit(ctx, first, &graveler.Commit{ID: "later"}); err != nil {
		require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
	}
	require.NoError(t, refs.DropPartition(ctx, first.Partition()))

	require.Len(t, Collect(t, refs.ScanBranches(ctx, second, "")), 1)
	require.Len(t, Collect(t, refs.ScanCommits(ctx, second, "")), 1)
	require.Len(t, Collect(t, refs.ScanTags(ctx, second, "")), 1)
	require.Len(t, Collect(t, refs.ScanSettings(ctx, second)), 1)
}

func concurrentWritersOfABranchTakeTurns(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	_, err := refs.PutBranch(ctx, repo, &graveler.Branch{ID: "main", UID: uid, State: graveler.BranchLive})
	require.NoError(t, err)
	const writers, each = 4, 5
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for done := 0; done < each; {
				b, err := refs.GetBranch(ctx, repo, "main")
				if err == nil {
					b.ItemCounter++
					_, err = refs.PutBranch(ctx, repo, b)
				}
				switch {
				case err == nil:
					done++
				case !errors.Is(err, graveler.ErrChanged):
					t.Errorf("put: %v", err)
					return
				}
			}
		})
	}
	running.Wait()
	b, err := refs.GetBranch(ctx, repo, "main")
	require.NoError(t, err)
	require.EqualValues(t, writers*each, b.ItemCounter, "every write counted once")
}

func whatPrecedesABranchRecordIsThere(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	b, move := branch(), graveler.Move{Time: 9, Op: graveler.OpCreate, New: "c0"}
	commit, cleanup := graveler.Commit{ID: "c1", Version: 1, Generation: 1}, graveler.Cleanup{Partition: "lake-main:t0", RepositoryID: "lake", Branch: "main"}
	before := graveler.Preceding{Commit: &commit, Move: &move, Cleanups: []graveler.Cleanup{cleanup}}
	for _, bad := range []graveler.Preceding{{Commit: &graveler.Commit{}}, {Commit: &commit, Move: &graveler.Move{}}, {Commit: &commit, Cleanups: []graveler.Cleanup{{}}}} {
		_, err := refs.PublishBranch(ctx, repo, b, bad)
		require.ErrorIs(t, err, graveler.ErrInvalidValue)
		_, err = refs.GetBranch(ctx, repo, b.ID)
		require.ErrorIs(t, err, graveler.ErrBranchNotFound)
		_, err = refs.GetCommit(ctx, repo, "c1")
		require.ErrorIs(t, err, graveler.ErrCommitNotFound, "bad input is refused before anything is written")
	}
	for range 2 {
		stamp, err := refs.PublishBranch(ctx, repo, b, before)
		require.NoError(t, err)
		_, err = refs.PublishBranch(ctx, repo, b, before)
		require.ErrorIs(t, err, graveler.ErrChanged)
		b.Stamp, b.Nonce = stamp, "n2"
		got, err := refs.GetCommit(ctx, repo, "c1")
		require.NoError(t, err)
		require.Equal(t, &commit, got)
		require.Equal(t, []graveler.Move{move}, Collect(t, refs.ScanMoves(ctx, repo, b.UID, 0, 99)))
		require.Equal(t, []graveler.Cleanup{cleanup}, Collect(t, refs.ScanCleanups(ctx)))
	}
}

func aCallOfACanceledContextDoesNothing(t *testing.T, refs graveler.Refs) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := refs.GetRepository(ctx, "lake")
	require.ErrorIs(t, err, context.Canceled)
	_, err = refs.PutRepository(ctx, repository())
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, LastError(refs.ScanRepositories(ctx, "")), context.Canceled)
	require.Empty(t, Collect(t, refs.ScanRepositories(t.Context(), "")))
}
