// SPDX-License-Identifier: Apache-2.0

package fsck_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Of a healthy store with any past one record is removed, whichever. It is missed, unless nothing can know of it, or nothing needs it.
func TestARemovedRecordIsMissed(t *testing.T) {
	reasons := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		f := runHistory(t, 40)
		places, picks := f.places(t), newSeeded(t)
		for range 4 {
			p := places[picks.pick(len(places))]
			reason, value := f.notMissed(t, p), f.value(t, p)
			f.remove(t, p)
			damage, _, _ := f.check(t, fsck.Options{})
			if reason == "" {
				require.NotEmpty(t, damage, "%q", p)
			}
			reasons[reason]++
			f.write(t, p, value)
		}
		f.requireHealthy(t)
	})
	t.Log(reasons)
}

// notMissed says why a check need not notice that a record is gone; "" where it must.
func (f *fixture) notMissed(t require.TestingT, p place) string {
	switch p.partition {
	case ref.RepositoriesPartition:
		return "nothing but its record names a repository"
	case ref.CleanupsPartition:
		return "a partition stays for ever, and nothing is lost"
	case kv.SchemaPartition:
		return "the watermark is made anew"
	}
	r := f.owner(t, p.partition)
	if r == nil {
		return "nothing but itself names a staged entry"
	}
	if r.State != graveler.RepositoryActive {
		return "the repository is about to go"
	}
	for prefix, reason := range map[string]string{
		"tags/": "nothing but its record names a tag", "pins/": "nothing but its record names a pin", "settings/": "nothing but its head names a document",
	} {
		if strings.HasPrefix(p.key, prefix) {
			return reason
		}
	}
	s, err := f.refs.GetStored(ctx, r.Partition(), []byte(p.key))
	require.NoError(t, err)
	switch record := s.Record.(type) {
	case *graveler.Commit:
		if !f.commitsNamed(t, r)[record.ID] {
			return "nothing refers to the commit"
		}
	case *graveler.Branch:
		moved := len(f.keys(t, r.Partition(), ref.LogPrefix(record.UID))) > 0
		switch {
		case record.State == graveler.BranchDeleted && f.logged(t, r, record):
			return "the deletion is finished thereby"
		case record.ID != r.DefaultBranch && !moved:
			return "as if the creation of the branch had been cut off, which is a note"
		}
	case ref.LoggedMove:
		if start, err := f.refs.LogStart(ctx, r, record.UID); record.Time < start {
			require.NoError(t, err)
			return "the move was about to be removed"
		}
		if b := f.branchOf(t, r, record.UID); b != nil && b.LastMove == record.Move {
			return "the record of the branch has the move too"
		}
	case graveler.LogName:
		if f.branchOf(t, r, record.UID) == nil && len(f.keys(t, r.Partition(), ref.LogPrefix(record.UID))) == 0 {
			return "the log is empty"
		}
	case ref.LogStart:
		if !f.isCut(t, r, record.UID) {
			return "the log is whole"
		}
	case graveler.Expiration:
		if f.isWhole(t, r, record.Commit) {
			return "the tree is whole"
		}
	case ref.SettingChunk:
		if !f.isNeeded(t, r, p.key) {
			return "no document needs the chunk"
		}
	}
	return ""
}

// owner is the repository that a partition is of, nil for tokens.
func (f *fixture) owner(t require.TestingT, partition string) *graveler.Repository {
	for r, err := range f.refs.ScanRepositories(ctx, "") {
		require.NoError(t, err)
		if r.Partition() == partition {
			return r
		}
	}
	return nil
}

// commitsNamed are those that a branch, a tag or a move leads to.
func (f *fixture) commitsNamed(t require.TestingT, r *graveler.Repository) map[graveler.CommitID]bool {
	roots, _, err := f.roots(r)
	require.NoError(t, err)
	named, err := f.reached(r, roots)
	require.NoError(t, err)
	return named
}

func (f *fixture) branchOf(t require.TestingT, r *graveler.Repository, uid string) *graveler.Branch {
	for b, err := range f.refs.ScanBranches(ctx, r, "") {
		require.NoError(t, err)
		if b.UID == uid {
			return b
		}
	}
	return nil
}

func (f *fixture) logged(t require.TestingT, r *graveler.Repository, b *graveler.Branch) bool {
	for m, err := range f.refs.ScanMoves(ctx, r, b.UID, b.LastMove.Time, b.LastMove.Time) {
		require.NoError(t, err)
		return m == b.LastMove
	}
	return false
}

// isCut reports whether a log has lost its beginning.
func (f *fixture) isCut(t require.TestingT, r *graveler.Repository, uid string) bool {
	for m, err := range f.refs.ScanMoves(ctx, r, uid, 0, 1<<62) {
		require.NoError(t, err)
		return m.Previous != 0
	}
	b := f.branchOf(t, r, uid)
	return b != nil && b.LastMove.Previous != 0
}

func (f *fixture) isWhole(t require.TestingT, r *graveler.Repository, id graveler.CommitID) bool {
	c, err := f.refs.GetCommit(ctx, r, id)
	require.NoError(t, err)
	trees := f.openTrees(t)
	defer func() { require.NoError(t, trees.Close()) }()
	return trees.Walk(ctx, r.Namespace, c.Tree, func(file graveler.TreeFile) (bool, error) { return true, trees.CheckFile(ctx, r.Namespace, file) }) == nil
}

// isNeeded tries whether the documents can do without a record.
func (f *fixture) isNeeded(t require.TestingT, r *graveler.Repository, key string) bool {
	p := place{r.Partition(), key}
	value := f.value(t, p)
	f.remove(t, p)
	defer f.write(t, p, value)
	_, _, err := f.refs.GetSetting(ctx, r, "protection")
	return errors.Is(err, graveler.ErrCorrupt)
}

// Of a healthy store with any past one record is overwritten, whichever.
func TestAnOverwrittenRecordIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := runHistory(t, 40)
		places, picks := f.places(t), newSeeded(t)
		for range 4 {
			p := places[picks.pick(len(places))]
			if f.isUnlisted(t, p.partition) {
				continue // it waits to be dropped, and nobody reads it
			}
			value := f.value(t, p)
			f.write(t, p, []byte("\xff"))
			damage, _, _ := f.check(t, fsck.Options{})
			require.NotEmpty(t, damage, "%q", p)
			require.True(t, slices.ContainsFunc(damage, func(d fsck.Finding) bool {
				return d.Kind == fsck.BadRecord && strings.Contains(d.What, p.partition) || d.Kind == fsck.BadSetting
			}), "%+v", damage)
			f.write(t, p, value)
		}
		f.requireHealthy(t)
	})
}

// isUnlisted reports whether a partition is neither a repository's that can be used, nor listed by one of its branches, nor one that all share.
func (f *fixture) isUnlisted(t require.TestingT, partition string) bool {
	shared := []string{ref.RepositoriesPartition, ref.CleanupsPartition, kv.SchemaPartition}
	for r, err := range f.refs.ScanRepositories(ctx, "") {
		require.NoError(t, err)
		if r.State != graveler.RepositoryActive {
			continue
		}
		shared = append(shared, r.Partition())
		for b, err := range f.refs.ScanBranches(ctx, r, "") {
			require.NoError(t, err)
			shared = append(shared, listed(b)...)
		}
	}
	return !slices.Contains(shared, partition)
}

// Every byte of a commit counts.
func TestAFlippedByteOfACommitIsFound(t *testing.T) {
	f := newFixture(t)
	_, err := f.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	f.set(t, "lake", "main", "a", "1")
	c, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "m", Committer: "ann", Metadata: map[string]string{"k": "v"}})
	require.NoError(t, err)
	p := place{f.repository(t, "lake").Partition(), string(ref.CommitKey(c.Commit.ID))}
	whole := f.value(t, p)
	for at := range whole {
		for _, mask := range []byte{1, 0x80} {
			flipped := bytes.Clone(whole)
			flipped[at] ^= mask
			f.write(t, p, flipped)
			damage, _, _ := f.check(t, fsck.Options{Quick: true})
			require.NotEmpty(t, damage, "byte %d ^ %x", at, mask)
		}
	}
}

// Of a healthy store with any past one file is removed, or one of its bytes flipped.
func TestADamagedFileIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := runHistory(t, 40)
		for r, err := range f.refs.ScanRepositories(ctx, "") {
			require.NoError(t, err)
			names := f.files(t, r)
			if len(names) == 0 || r.State != graveler.RepositoryActive {
				continue
			}
			name := names[newSeeded(t).pick(len(names))]
			id := name[strings.LastIndex(name, "/")+1:]
			needed := f.filesNeeded(t, r)[id]
			whole, err := f.blocks.Get(ctx, name)
			require.NoError(t, err)
			for _, quick := range []bool{false, true} {
				require.NoError(t, f.blocks.Delete(ctx, name))
				damage, _, _ := f.check(t, fsck.Options{Quick: quick})
				requireFile(t, damage, needed, id, fsck.MissingFile)

				flipped := bytes.Clone(whole)
				flipped[rapid.IntRange(0, len(whole)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
				require.NoError(t, f.blocks.Put(ctx, name, flipped))
				damage, _, _ = f.check(t, fsck.Options{Quick: quick})
				if !quick {
					requireFile(t, damage, needed, id, fsck.BadFile)
				}
				require.NoError(t, f.blocks.Delete(ctx, name))
				require.NoError(t, f.blocks.Put(ctx, name, whole))
			}
			f.requireHealthy(t)
		}
	})
}

func requireFile(t require.TestingT, damage []fsck.Finding, needed bool, id string, kind fsck.Kind) {
	if !needed {
		require.Empty(t, damage)
		return
	}
	require.Len(t, damage, 1)
	require.Equal(t, kind, damage[0].Kind)
	require.Equal(t, id, damage[0].File)
}

// filesNeeded are those of trees that must be whole.
func (f *fixture) filesNeeded(t require.TestingT, r *graveler.Repository) map[string]bool {
	roots, trees, err := f.roots(r)
	require.NoError(t, err)
	reached, err := f.reached(r, roots)
	require.NoError(t, err)
	for c, err := range f.refs.ScanCommits(ctx, r, "") {
		require.NoError(t, err)
		_, expired := f.refs.GetExpiration(ctx, r, c.ID)
		if expired != nil && reached[c.ID] || f.stoodOn(t, r, c.ID) {
			trees[c.Tree] = true
		}
	}
	needed := map[string]bool{}
	for tree := range trees {
		require.NoError(t, f.trees.Walk(ctx, r.Namespace, tree, func(file graveler.TreeFile) (bool, error) {
			needed[file.ID] = true
			return true, nil
		}))
	}
	return needed
}

// stoodOn reports whether a branch or a tag stands on a commit.
func (f *fixture) stoodOn(t require.TestingT, r *graveler.Repository, id graveler.CommitID) bool {
	for b, err := range f.refs.ScanBranches(ctx, r, "") {
		require.NoError(t, err)
		if b.Head == id && b.State == graveler.BranchLive {
			return true
		}
	}
	for tag, err := range f.refs.ScanTags(ctx, r, "") {
		require.NoError(t, err)
		if tag.Commit == id {
			return true
		}
	}
	return false
}
