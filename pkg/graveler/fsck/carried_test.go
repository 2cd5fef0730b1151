// SPDX-License-Identifier: Apache-2.0

package fsck_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
)

// carry stores a carried commit that nothing leads to, but for those that have it as their parent.
func (s *scene) carry(digit string, tree graveler.MetaRangeID, generation int64, parents ...graveler.CommitID) graveler.CommitID {
	c := graveler.Commit{
		ID: graveler.CommitID(strings.Repeat(digit, 64)), Version: graveler.CarriedVersion, Tree: tree, Parents: parents, Generation: generation, LogTime: generation,
	}
	c.Nonce = c.Digest()
	require.NoError(s, s.refs.PutCommit(ctx, s.repo, &c))
	return c.ID
}

// abandonedTree returns a tree that nothing refers to, and its files.
func (s *scene) abandonedTree() (tree graveler.MetaRangeID, files []string) {
	_, err := s.CreateBranch(ctx, "lake", "temporary", string(s.first.ID))
	require.NoError(s, err)
	s.set(s, "lake", "temporary", "k", "carried")
	require.NoError(s, s.Compact(ctx, "lake", "temporary"))
	tree = s.branch("temporary").Base
	require.NoError(s, s.DeleteBranch(ctx, "lake", "temporary", true))
	require.NoError(s, s.trees.Walk(ctx, s.repo.Namespace, tree, func(f graveler.TreeFile) (bool, error) {
		files = append(files, f.ID)
		return true, nil
	}))
	require.Len(s, files, 2, "a metarange and a range")
	return tree, files
}

// What was carried over came whole, and nothing of it goes but by an expiration: it is checked whether something leads there or not.
func TestWhatWasCarriedIsCheckedThoughNothingLeadsThere(t *testing.T) {
	s := newScene(t)
	tree, files := s.abandonedTree()
	_, notes, _ := s.check(t, fsck.Options{})
	require.Len(t, notes, 1)
	require.Contains(t, notes[0].What, "2 files that no commit in the store refers to, ")

	first := s.carry("f", tree, 1)
	second := s.carry("0", tree, 2, first)
	damage, notes, counts := s.check(t, fsck.Options{})
	require.Empty(t, damage)
	require.Empty(t, notes)
	require.Zero(t, counts.UnreachedCommits)

	altered := func(data []byte) []byte { return append(data[:len(data)-1], data[len(data)-1]^1) }
	for _, id := range files {
		name := s.fileOf(graveler.MetaRangeID(id))
		c := s.copy(t)
		c.alterFile(t, name, altered)
		damage, _, _ = c.check(t, fsck.Options{})
		require.Equal(t, []fsck.Kind{fsck.BadFile}, kinds(damage))
		require.Equal(t, id, damage[0].File)
		require.NoError(t, c.blocks.Delete(ctx, name))
		for _, quick := range []bool{false, true} {
			damage, _, _ = c.check(t, fsck.Options{Quick: quick})
			require.Len(t, damage, 1)
			require.Equal(t, []any{fsck.MissingFile, id, second}, []any{damage[0].Kind, damage[0].File, damage[0].Commit})
		}
	}
	c := s.copy(t)
	c.remove(t, c.record(string(ref.CommitKey(first))))
	damage, _, _ = c.check(t, fsck.Options{})
	require.Equal(t, []fsck.Kind{fsck.MissingCommit}, kinds(damage))
	require.Equal(t, first, damage[0].Commit)

	for _, id := range []graveler.CommitID{first, second} {
		require.NoError(t, s.refs.PutExpiration(ctx, s.repo, graveler.Expiration{Commit: id, At: 1}))
	}
	damage, notes, counts = s.check(t, fsck.Options{})
	require.Empty(t, damage)
	require.Equal(t, 2, counts.ExpiredCommits)
	require.Len(t, notes, 1)
	require.Contains(t, notes[0].What, "2 files that no tree that was looked at refers to, ")
	require.NoError(t, s.blocks.Delete(ctx, s.fileOf(tree)))
	s.requireHealthy(t)
}

// It is not said that no commit refers to a file where a commit may, of which not all was looked at.
func TestFilesAreOnlySaidToBeNobodysWhereAllWasLookedAt(t *testing.T) {
	for name, hide := range map[string]func(s *scene, tree graveler.MetaRangeID){
		"a commit that nothing leads to": func(s *scene, tree graveler.MetaRangeID) {
			cut := s.second
			cut.Nonce, cut.Tree = "cut off", tree
			cut.ID = cut.ComputeID()
			require.NoError(s, s.refs.PutCommit(ctx, s.repo, &cut))
		},
		"a commit that has expired": func(s *scene, tree graveler.MetaRangeID) {
			require.NoError(s, s.refs.PutExpiration(ctx, s.repo, graveler.Expiration{Commit: s.carry("0", tree, 1), At: 1}))
		},
		"a commit that does not decode": func(s *scene, tree graveler.MetaRangeID) {
			s.write(s, s.record(string(ref.CommitKey(s.carry("0", tree, 1)))), []byte("\xff"))
		},
		"a commit whose metarange is damaged": func(s *scene, tree graveler.MetaRangeID) {
			s.carry("0", tree, 1)
			s.alterFile(s, s.fileOf(tree), func(data []byte) []byte { return append(data, 0) })
		},
		"a commit whose metarange has gone": func(s *scene, tree graveler.MetaRangeID) {
			s.carry("0", tree, 1)
			require.NoError(s, s.blocks.Delete(ctx, s.fileOf(tree)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tree, _ := s.abandonedTree()
			hide(s, tree)
			_, notes, _ := s.check(t, fsck.Options{})
			require.Equal(t, []fsck.Kind{fsck.OrphanFiles}, kinds(notes))
			require.Contains(t, notes[0].What, " that no tree that was looked at refers to, ")
		})
	}
}
