// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// lockFixture is a bucket with object lock, and another branch beside main.
type lockFixture struct {
	*fixture
	lock        Lock // of what putLocked puts
	main, other Bucket
}

func newLockFixture(t testing.TB, lock Lock) *lockFixture {
	t.Helper()
	f := newFixture(t)
	f.enable(t, VersioningEnabled)
	require.NoError(t, f.SetObjectLock(t.Context(), f.name, ObjectLockConfig{Enabled: true}))
	return &lockFixture{f, lock, Bucket{f.name, "main"}, Bucket{f.name, "other"}}
}

// branch commits main and makes the other branch.
func (f *lockFixture) branch(t testing.TB) {
	t.Helper()
	f.commit(t, f.main)
	_, err := f.CreateBranch(t.Context(), f.name, "other", "main")
	require.NoError(t, err)
}

func (f *lockFixture) commit(t testing.TB, b Bucket) string {
	t.Helper()
	c, err := f.Commit(t.Context(), f.name, graveler.BranchID(b.Ref), graveler.CommitParams{AllowEmpty: true})
	require.NoError(t, err)
	return string(c.Commit.ID)
}

func (f *lockFixture) putOn(t testing.TB, b Bucket, key string) string {
	t.Helper()
	f.clock.Add(int64(time.Second))
	o, err := f.Put(t.Context(), b, key, Object{}, Conditions{})
	require.NoError(t, err)
	return o.VersionID
}

func (f *lockFixture) putLocked(t testing.TB, b Bucket, key string) string {
	t.Helper()
	f.clock.Add(int64(time.Second))
	o, err := f.Put(t.Context(), b, key, Object{Lock: f.lock}, Conditions{})
	require.NoError(t, err)
	return o.VersionID
}

func (f *lockFixture) removeOn(t testing.TB, b Bucket, key, version string) Deleted {
	t.Helper()
	f.clock.Add(int64(time.Second))
	d, err := f.Catalog.Delete(t.Context(), b, key, DeleteParams{VersionID: version, BypassGovernance: true})
	require.NoError(t, err)
	return d
}

func (f *lockFixture) merge(p graveler.MergeParams) error {
	_, err := f.Merge(context.Background(), f.name, "other", "main", p)
	return err
}

func noEntries(func(graveler.Entry, error) bool) {}

// movesThatDrop are moves of main each of which would take from it, or from what it brings to its head, the version that putLocked has put.
var movesThatDrop = map[string]func(t testing.TB, f *lockFixture) func() error{
	"a merge in which the source wins": func(t testing.TB, f *lockFixture) func() error {
		f.branch(t)
		f.putLocked(t, f.main, "k")
		f.putOn(t, f.other, "k")
		f.commit(t, f.main)
		f.commit(t, f.other)
		return func() error { return f.merge(graveler.MergeParams{Strategy: graveler.SourceWins}) }
	},
	"a merge in which the source wins over what was made current again": func(t testing.TB, f *lockFixture) func() error {
		f.putLocked(t, f.main, "k")
		second := f.putOn(t, f.main, "k")
		f.branch(t)
		f.removeOn(t, f.main, "k", second)
		f.putOn(t, f.other, "k")
		f.commit(t, f.main)
		f.commit(t, f.other)
		return func() error {
			return f.merge(graveler.MergeParams{StrategyFor: []graveler.PrefixStrategy{{Strategy: graveler.SourceWins}}})
		}
	},
	"a merge of a removal": func(t testing.TB, f *lockFixture) func() error {
		version := f.putLocked(t, f.main, "k")
		f.putOn(t, f.main, "k")
		f.branch(t)
		require.NoError(t, f.PutLegalHold(t.Context(), f.other, "k", version, false))
		f.removeOn(t, f.other, "k", version)
		f.commit(t, f.other)
		return func() error { return f.merge(graveler.MergeParams{}) }
	},
	"a fast-forward to where the lock was lifted": func(t testing.TB, f *lockFixture) func() error {
		version := f.putLocked(t, f.main, "k")
		f.putOn(t, f.main, "k")
		f.branch(t)
		require.NoError(t, f.PutLegalHold(t.Context(), f.other, "k", version, false))
		require.NoError(t, f.PutRetention(t.Context(), f.other, "k", version, Retention{}, true))
		f.putOn(t, f.other, "another")
		f.commit(t, f.other)
		return func() error { return f.merge(graveler.MergeParams{FastForward: true}) }
	},
	"a merge below what is uncommitted": func(t testing.TB, f *lockFixture) func() error {
		f.putOn(t, f.main, "k")
		f.branch(t)
		f.putOn(t, f.main, "k")
		f.putLocked(t, f.other, "k")
		f.commit(t, f.other)
		return func() error { return f.merge(graveler.MergeParams{AllowDirty: true}) }
	},
	"a revert": func(t testing.TB, f *lockFixture) func() error {
		f.putOn(t, f.main, "k")
		f.commit(t, f.main)
		f.putLocked(t, f.main, "k")
		f.commit(t, f.main)
		return func() error {
			_, err := f.Revert(context.Background(), f.name, "main", "main", graveler.PickParams{})
			return err
		}
	},
	"a cherry-pick in which the source wins": func(t testing.TB, f *lockFixture) func() error {
		f.branch(t)
		f.putLocked(t, f.main, "k")
		f.putOn(t, f.other, "k")
		f.commit(t, f.main)
		f.commit(t, f.other)
		return func() error {
			_, err := f.CherryPick(context.Background(), f.name, "main", "other", graveler.PickParams{Strategy: graveler.SourceWins})
			return err
		}
	},
	"a reset to a ref": func(t testing.TB, f *lockFixture) func() error {
		f.commit(t, f.main)
		f.putLocked(t, f.main, "k")
		f.commit(t, f.main)
		return func() error {
			_, err := f.Reset(context.Background(), f.name, "main", "main~", graveler.ResetParams{})
			return err
		}
	},
	"a reset to a move": func(t testing.TB, f *lockFixture) func() error {
		f.commit(t, f.main)
		b, err := f.GetBranch(t.Context(), f.name, "main")
		require.NoError(t, err)
		f.putLocked(t, f.main, "k")
		f.commit(t, f.main)
		return func() error {
			_, err := f.ResetToMove(context.Background(), f.name, "main", b.LastMove.Time, graveler.ResetParams{})
			return err
		}
	},
	"a reset of what is staged": func(t testing.TB, f *lockFixture) func() error {
		f.putLocked(t, f.main, "k")
		return func() error { return f.ResetStaged(context.Background(), f.name, "main", nil) }
	},
	"a reset of a part of what is staged": func(t testing.TB, f *lockFixture) func() error {
		f.putLocked(t, f.main, "k")
		f.putOn(t, f.main, "k")
		f.putOn(t, f.main, "another")
		return func() error {
			return f.ResetStaged(context.Background(), f.name, "main", graveler.Key("k"), VersionsBelow("k"))
		}
	},
	"a reset of a staged key without its versions": func(t testing.TB, f *lockFixture) func() error {
		f.putLocked(t, f.main, "k")
		return func() error { return f.ResetStagedKey(context.Background(), f.name, "main", graveler.Key("k")) }
	},
	"a reset that takes back the lock": func(t testing.TB, f *lockFixture) func() error {
		version := f.putOn(t, f.main, "k")
		f.commit(t, f.main)
		require.NoError(t, f.PutLegalHold(t.Context(), f.main, "k", version, f.lock.LegalHold))
		if f.lock.Mode != LockNone {
			require.NoError(t, f.PutRetention(t.Context(), f.main, "k", version, Retention{f.lock.Mode, f.lock.RetainUntil}, false))
		}
		f.putOn(t, f.main, "k")
		return func() error { return f.ResetStaged(context.Background(), f.name, "main", nil) }
	},
	"an import that replaces everything": func(t testing.TB, f *lockFixture) func() error {
		f.putLocked(t, f.main, "k")
		f.putOn(t, f.main, "k")
		f.commit(t, f.main)
		return func() error {
			_, err := f.Import(context.Background(), f.name, "main", noEntries, graveler.ImportParams{Prefixes: []graveler.Key{{}}})
			return err
		}
	},
	"an import over an object": func(t testing.TB, f *lockFixture) func() error {
		f.putLocked(t, f.main, "k")
		f.commit(t, f.main)
		value, err := Encode(Object{PhysicalAddress: "imported"})
		require.NoError(t, err)
		return func() error {
			entries := func(yield func(graveler.Entry, error) bool) {
				yield(graveler.Entry{Key: graveler.Key("k"), Value: &value}, nil)
			}
			_, err := f.Import(context.Background(), f.name, "main", entries, graveler.ImportParams{})
			return err
		}
	},
	"a change of the tree": func(t testing.TB, f *lockFixture) func() error {
		f.putLocked(t, f.main, "k")
		f.commit(t, f.main)
		return func() error {
			changes := func(yield func(graveler.Entry, error) bool) { yield(graveler.Entry{Key: graveler.Key("k")}, nil) }
			_, err := f.ChangeTree(context.Background(), f.name, "main", graveler.ChangeTreeParams{Op: graveler.OpLifecycle},
				func(context.Context, *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) { return changes, nil })
			return err
		}
	},
}

func TestNoMoveOfABranchDropsALockedVersion(t *testing.T) {
	until := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	for lockName, lock := range map[string]Lock{
		"legal hold": {LegalHold: true}, "governance": {Mode: LockGovernance, RetainUntil: until}, "compliance": {Mode: LockCompliance, RetainUntil: until},
	} {
		for name, prepare := range movesThatDrop {
			if lock.Mode == LockCompliance && slices.Contains([]string{"a merge of a removal", "a fast-forward to where the lock was lifted"}, name) {
				continue // nobody can do that on the other branch either
			}
			t.Run(lockName+"/"+name, func(t *testing.T) {
				f := newLockFixture(t, lock)
				move := prepare(t, f)
				before, err := f.GetBranch(t.Context(), f.name, "main")
				require.NoError(t, err)
				versions := allVersions(t, f, f.main)
				require.ErrorIs(t, move(), AccessDenied)
				after, err := f.GetBranch(t.Context(), f.name, "main")
				require.NoError(t, err)
				require.Equal(t, before.Head, after.Head)
				require.Equal(t, before.LastMove, after.LastMove)
				require.Equal(t, versions, allVersions(t, f, f.main))
				if lock.Mode != LockNone { // when it has ended nothing is in the way
					f.clock.Store(until.Add(apart).UnixNano())
					require.NoError(t, move())
				}
			})
		}
	}
}

func TestMovesGoOnWhereNothingIsLocked(t *testing.T) {
	for name, prepare := range movesThatDrop {
		if name == "a reset that takes back the lock" {
			continue // there is none
		}
		t.Run(name, func(t *testing.T) { require.NoError(t, prepare(t, newLockFixture(t, Lock{}))()) })
	}
}

// allVersions returns all versions that a branch shows.
func allVersions(t testing.TB, f *lockFixture, b Bucket) (all []ListedVersion) {
	t.Helper()
	for v, err := range f.Versions(t.Context(), b, "", "") {
		require.NoError(t, err)
		all = append(all, v)
	}
	return all
}

// What is locked may change its place: become noncurrent, or current again, and come from another branch.
func TestMovesMayCarryLockedVersions(t *testing.T) {
	f := newLockFixture(t, Lock{LegalHold: true})
	hidden := f.putLocked(t, f.main, "hidden")
	marker := f.removeOn(t, f.main, "hidden", "").DeleteMarkerVersionID
	over := f.putLocked(t, f.main, "over")
	removed := f.putLocked(t, f.main, "removed")
	f.branch(t)
	f.removeOn(t, f.other, "hidden", marker)
	f.putOn(t, f.other, "over")
	f.removeOn(t, f.other, "removed", "")
	came := f.putLocked(t, f.other, "new")
	f.commit(t, f.other)
	f.putLocked(t, f.main, "mine")
	require.ErrorIs(t, f.merge(graveler.MergeParams{}), graveler.ErrDirtyBranch)
	require.NoError(t, f.merge(graveler.MergeParams{AllowDirty: true}))
	for key, version := range map[string]string{"hidden": hidden, "over": over, "removed": removed, "new": came} {
		o, err := f.Catalog.Get(t.Context(), f.main, key, GetParams{VersionID: version})
		require.NoError(t, err, key)
		require.True(t, o.Lock.LegalHold)
	}
	require.Equal(t, hidden, f.get(t, "hidden", "").VersionID)
}

func TestAPrefixIsNotDeletedAsAWholeUnderObjectLock(t *testing.T) {
	f := newLockFixture(t, Lock{})
	f.putOn(t, f.main, "a/b")
	require.ErrorIs(t, f.Graveler.DeletePrefix(t.Context(), f.name, "main", graveler.Key("a/")), AccessDenied)
	n, err := f.Catalog.DeletePrefix(t.Context(), f.main, "a/")
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// A merge makes a locked version current, while a writer who has not seen that puts another one in the same place.
func TestAWriterDuringAMoveDoesNotCostALockedVersion(t *testing.T) {
	f := newLockFixture(t, Lock{LegalHold: true})
	locked := f.putLocked(t, f.main, "k")
	marker := f.removeOn(t, f.main, "k", "").DeleteMarkerVersionID
	f.branch(t)
	f.removeOn(t, f.other, "k", marker)
	f.commit(t, f.other)
	config := f.engine.config
	writes := 0
	config.Hooks = graveler.Hooks{
		Guard: KeepLocked(f.now),
		PreCommit: func(context.Context, graveler.PreCommitEvent) error {
			if writes++; writes == 1 {
				f.putOn(t, f.main, "k")
			}
			return nil
		},
	}
	g, err := graveler.New(config)
	require.NoError(t, err)
	_, err = g.Merge(t.Context(), f.name, "other", "main", graveler.MergeParams{AllowDirty: true})
	require.ErrorIs(t, err, AccessDenied)
	require.Equal(t, 2, writes)
	require.Contains(t, versionsIn(t, f.fixture, f.main, "k"), locked)
	f.commit(t, f.main)
	require.ErrorIs(t, f.merge(graveler.MergeParams{}), graveler.ErrConflict)
	require.ErrorIs(t, f.merge(graveler.MergeParams{Strategy: graveler.DestWins}), AccessDenied)
	require.NoError(t, f.merge(graveler.MergeParams{Strategy: graveler.SourceWins})) // the version that goes is not locked
	require.Contains(t, versionsIn(t, f.fixture, f.main, "k"), locked)
}
