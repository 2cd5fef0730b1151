// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

var (
	retainedBranches = rapid.SampledFrom([]graveler.BranchID{"main", "dev", "side"})
	retainedKeys     = rapid.SampledFrom([]string{"a", "a/b", "b", "c"})
)

// may refuses errors but those that are expected.
func may(t *rapid.T, err error, expected ...error) {
	if err != nil && !slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
		require.NoError(t, err)
	}
}

// actions are what users do; time passes, and retention runs.
func (x *retained) actions() map[string]func(*rapid.T) {
	branch := func(t *rapid.T) graveler.BranchID { return retainedBranches.Draw(t, "branch") }
	commit := func(t *rapid.T) graveler.CommitID {
		return rapid.SampledFrom(slices.Sorted(maps.Keys(x.shown))).Draw(t, "commit")
	}
	tag := func(t *rapid.T) graveler.TagID { return rapid.SampledFrom([]graveler.TagID{"v1", "v2"}).Draw(t, "tag") }
	gone, dirty, conflict := graveler.ErrBranchNotFound, graveler.ErrDirtyBranch, graveler.ErrConflict
	none, expired := graveler.ErrNoChanges, graveler.ErrExpired
	return map[string]func(*rapid.T){
		"set": func(t *rapid.T) {
			may(t, x.Set(t.Context(), "lake", branch(t), key(retainedKeys.Draw(t, "key")), x.text()), gone)
		},
		"copy": func(t *rapid.T) {
			v, err := x.Get(t.Context(), "lake", string(commit(t)), key(retainedKeys.Draw(t, "key")))
			if may(t, err, expired, graveler.ErrEntryNotFound); err == nil {
				may(t, x.Set(t.Context(), "lake", branch(t), key(retainedKeys.Draw(t, "to")), *v), gone)
			}
		},
		"commit": func(t *rapid.T) {
			b := branch(t)
			may(t, x.Set(t.Context(), "lake", b, key(retainedKeys.Draw(t, "key")), x.text()), gone)
			p := graveler.CommitParams{}
			if rapid.IntRange(0, 3).Draw(t, "part") == 0 {
				p.Prefixes = []graveler.Key{key("a")}
			}
			_, err := x.Commit(t.Context(), "lake", b, p)
			may(t, err, gone, none)
		},
		"compact":      func(t *rapid.T) { may(t, x.Compact(t.Context(), "lake", branch(t)), gone) },
		"reset staged": func(t *rapid.T) { may(t, x.ResetStaged(t.Context(), "lake", branch(t), nil), gone) },
		"fork": func(t *rapid.T) {
			_, err := x.CreateBranch(t.Context(), "lake", branch(t), string(commit(t)))
			may(t, err, graveler.ErrExists, expired)
		},
		"delete": func(t *rapid.T) {
			may(t, x.DeleteBranch(t.Context(), "lake", branch(t), true), gone, graveler.ErrDefaultBranch)
		},
		"restore": x.restore,
		"merge": func(t *rapid.T) {
			_, err := x.Merge(t.Context(), "lake", string(branch(t)), branch(t), graveler.MergeParams{
				Strategy: graveler.Strategy(rapid.IntRange(0, 2).Draw(t, "strategy")), AllowDirty: rapid.Bool().Draw(t, "dirty"), FastForward: rapid.Bool().Draw(t, "fast"),
			})
			if may(t, err, graveler.ErrNotFound, dirty, conflict, none, expired); errors.Is(err, expired) {
				require.NotEmpty(t, x.expired(t))
			}
		},
		"reset": func(t *rapid.T) {
			_, err := x.Reset(t.Context(), "lake", branch(t), string(commit(t)), graveler.ResetParams{AllowDirty: rapid.Bool().Draw(t, "dirty")})
			may(t, err, gone, dirty, none, expired)
		},
		"undo": x.undo,
		"revert": func(t *rapid.T) {
			_, err := x.Revert(t.Context(), "lake", branch(t), string(commit(t)), graveler.PickParams{Parent: 0, AllowDirty: true})
			may(t, err, gone, conflict, none, expired, graveler.ErrInvalidValue, graveler.ErrInvalidRef)
		},
		"tag": func(t *rapid.T) {
			_, err := x.CreateTag(t.Context(), "lake", tag(t), string(commit(t)))
			may(t, err, graveler.ErrExists, expired)
		},
		"delete tag": func(t *rapid.T) { may(t, x.DeleteTag(t.Context(), "lake", tag(t)), graveler.ErrTagNotFound) },
		"pin": func(t *rapid.T) {
			p := graveler.PinParams{Commits: []graveler.CommitID{commit(t)}, Logs: map[string]int64{}}
			if log := x.anyLog(t); log.UID != "" {
				p.Logs[log.UID] = x.some(t)
			}
			may(t, x.PutPin(t.Context(), "lake", rapid.SampledFrom([]string{"p", "q"}).Draw(t, "owner"), p), expired, graveler.ErrLogTruncated)
		},
		"unpin": func(t *rapid.T) {
			require.NoError(t, x.RemovePin(t.Context(), "lake", rapid.SampledFrom([]string{"p", "q"}).Draw(t, "owner")))
		},
		"import": func(t *rapid.T) {
			v := x.text()
			_, err := x.Import(t.Context(), "lake", branch(t), one(graveler.Entry{Key: key("a/i"), Value: &v}), graveler.ImportParams{Prefixes: []graveler.Key{key("a/")}, AllowDirty: true})
			may(t, err, gone, none)
		},
		"head": x.headAt,
		"rules": func(t *rapid.T) {
			x.days = map[graveler.BranchID]int{"": rapid.SampledFrom([]int{0, 1, 1, 3}).Draw(t, "days"), "dev": rapid.IntRange(0, 2).Draw(t, "of dev")}
			x.setRules(t)
		},
		"pass": func(t *rapid.T) {
			x.now = x.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "hours")) * time.Hour / 4)
		},
		"pass a day": func(t *rapid.T) { x.now = x.now.Add(25 * time.Hour) },
		"retain":     func(t *rapid.T) { x.retain(t, rapid.Bool().Draw(t, "release")) },
		"a day later": func(t *rapid.T) {
			x.now = x.now.Add(25 * time.Hour)
			x.retain(t, true)
		},
		"dry run": func(t *rapid.T) {
			views, expired, held := x.views(t), x.expired(t), x.held(t)
			_, err := x.Retain(t.Context(), "lake", graveler.RetainParams{DryRun: true})
			require.NoError(t, err)
			require.Equal(t, views, x.views(t))
			require.Equal(t, expired, x.expired(t))
			require.Equal(t, held, x.held(t))
		},
	}
}

func (x *retained) text() graveler.Value {
	x.texts++
	return value(fmt.Sprint("t", x.texts))
}

// some returns a time in the last days.
func (x *retained) some(t *rapid.T) int64 {
	return x.now.Add(-time.Duration(rapid.IntRange(0, 300).Draw(t, "quarters")) * time.Hour / 4).UnixNano()
}

func (x *retained) anyLog(t *rapid.T) graveler.LogName {
	logs := collect(t, x.LogNames(t.Context(), "lake", ""))
	return rapid.SampledFrom(logs).Draw(t, "log")
}

// headOf returns what a log said of a time, when it was whole.
func (x *retained) headOf(log graveler.LogName, at int64) (head graveler.CommitID) {
	for _, m := range x.moves[log] {
		if m.Time <= at {
			head = m.New
		}
	}
	return head
}

func (x *retained) headAt(t *rapid.T) {
	log, at := x.anyLog(t), x.some(t)
	start, err := x.LogStart(t.Context(), "lake", log)
	require.NoError(t, err)
	head, err := x.HeadAt(t.Context(), "lake", log, at)
	if at < start {
		require.ErrorIs(t, err, graveler.ErrLogTruncated)
		return
	}
	require.NoError(t, err)
	require.Equal(t, x.headOf(log, at), head.Commit)
}

func (x *retained) undo(t *rapid.T) {
	b, err := x.GetBranch(t.Context(), "lake", retainedBranches.Draw(t, "branch"))
	if may(t, err, graveler.ErrBranchNotFound); err != nil {
		return
	}
	log, at := graveler.LogName{Branch: b.ID, UID: b.UID}, x.some(t)
	start, err := x.LogStart(t.Context(), "lake", log)
	require.NoError(t, err)
	head := x.headOf(log, at)
	c, err := x.ResetToMove(t.Context(), "lake", b.ID, at, graveler.ResetParams{AllowDirty: true})
	switch {
	case at < start || head == "":
		require.ErrorIs(t, err, graveler.ErrNotFound)
	case head == b.Head:
		require.ErrorIs(t, err, graveler.ErrNoChanges)
	default:
		require.NoError(t, err)
		require.Equal(t, head, c.ID)
	}
}

// restore brings a deleted branch back, which must work while its deletion is in the log.
func (x *retained) restore(t *rapid.T) {
	id := retainedBranches.Draw(t, "branch")
	there := false
	for log, err := range x.LogNames(t.Context(), "lake", id) {
		require.NoError(t, err)
		start, err := x.LogStart(t.Context(), "lake", log)
		require.NoError(t, err)
		last := x.moves[log][len(x.moves[log])-1]
		there = there || last.Op == graveler.OpDelete && last.Time > start
	}
	_, err := x.RestoreBranch(t.Context(), "lake", id, "")
	if errors.Is(err, graveler.ErrExists) {
		return
	}
	if there {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, graveler.ErrBranchNotFound)
}
