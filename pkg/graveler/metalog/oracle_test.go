// SPDX-License-Identifier: Apache-2.0

package metalog_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
)

// history is what really happened: every head that every branch ever had.
type history struct {
	f    *fixture
	logs []*branchHistory
}

// branchHistory is one branch, from its creation on.
type branchHistory struct {
	source metalog.Source
	heads  []instant // by time, strictly ascending
	gone   bool
}

type instant struct {
	time   int64
	commit graveler.CommitID
	tree   contents // nil: the branch was deleted
}

// at returns the contents of the head as of a time.
func (b *branchHistory) at(time int64) contents {
	c := contents{}
	for _, h := range b.heads {
		if h.time <= time {
			c = h.tree.clone()
		}
	}
	return c
}

var (
	branchNames = []graveler.BranchID{"main", "dev", "side"}
	someKeys    = rapid.SampledFrom([]string{"a", "a/b", "b", "b/\xff", "c", "d/x", "d/y"})
	someTexts   = rapid.SampledFrom([]string{"1", "2", "3"})
)

// note adds what an operation has made of the branches.
func (h *history) note(t fataler) {
	t.Helper()
	ctx := context.Background()
	for _, name := range branchNames {
		i := slices.IndexFunc(h.logs, func(b *branchHistory) bool { return b.source.Branch == name && !b.gone })
		b, err := h.f.GetBranch(ctx, "lake", name)
		if i >= 0 && (err != nil || h.logs[i].source.UID != b.UID) {
			moves := h.f.kept(t, h.logs[i].source.UID)
			h.logs[i].heads = append(h.logs[i].heads, instant{time: moves[len(moves)-1].Time})
			h.logs[i].gone = true
			i = -1
		}
		if err != nil {
			require.ErrorIs(t, err, graveler.ErrBranchNotFound)
			continue
		}
		if i < 0 {
			h.logs = append(h.logs, &branchHistory{source: metalog.Source{Repository: "lake", Branch: name, UID: b.UID}})
			i = len(h.logs) - 1
		}
		l := h.logs[i]
		if n := len(l.heads); n == 0 || l.heads[n-1].time != b.LastMove.Time {
			tree := contents{}
			for e, err := range h.f.List(ctx, "lake", string(name)+"@", graveler.ListOptions{}) {
				require.NoError(t, err)
				tree[string(e.Key)] = string(e.Value.Data)
			}
			l.heads = append(l.heads, instant{b.LastMove.Time, b.Head, tree})
		}
	}
}

// randomHistory takes random operations, under a clock that goes on, stands still and sometimes goes back a little.
func randomHistory(t *rapid.T) *history {
	f := newFixture(t)
	h := &history{f: f}
	h.note(t)
	t.Repeat(map[string]func(*rapid.T){
		"commit":        h.commit,
		"commit a part": h.commitPart,
		"merge": func(t *rapid.T) {
			p := graveler.MergeParams{Strategy: graveler.SourceWins, AllowDirty: true}
			p.Squash, p.FastForward, p.AllowEmpty = rapid.Bool().Draw(t, "squash"), rapid.Bool().Draw(t, "forward"), rapid.Bool().Draw(t, "empty")
			_, err := f.Merge(t.Context(), "lake", h.anyCommit(t), h.anyBranch(t), p)
			refusedOnlyFor(t, err, graveler.ErrNoChanges)
		},
		"revert": func(t *rapid.T) {
			p := graveler.PickParams{AllowDirty: true, Strategy: graveler.SourceWins, CommitParams: graveler.CommitParams{AllowEmpty: rapid.Bool().Draw(t, "empty")}}
			_, err := f.Revert(t.Context(), "lake", h.anyBranch(t), h.anyCommit(t), p)
			refusedOnlyFor(t, err, graveler.ErrNoChanges, graveler.ErrInvalidValue)
		},
		"reset": func(t *rapid.T) {
			_, err := f.Reset(t.Context(), "lake", h.anyBranch(t), h.anyCommit(t), graveler.ResetParams{AllowDirty: true})
			refusedOnlyFor(t, err, graveler.ErrNoChanges)
		},
		"create": func(t *rapid.T) {
			_, err := f.CreateBranch(t.Context(), "lake", rapid.SampledFrom(branchNames).Draw(t, "name"), h.anyCommit(t))
			refusedOnlyFor(t, err, graveler.ErrExists)
		},
		"delete": func(t *rapid.T) {
			err := f.DeleteBranch(t.Context(), "lake", h.anyBranch(t), true)
			refusedOnlyFor(t, err, graveler.ErrDefaultBranch)
		},
		"time passes": func(t *rapid.T) { f.clock.Add(rapid.Int64Range(-2, 5).Draw(t, "ns")) },
		"":            func(t *rapid.T) { h.note(t) },
	})
	return h
}

func refusedOnlyFor(t fataler, err error, reasons ...error) {
	t.Helper()
	if !slices.ContainsFunc(reasons, func(r error) bool { return errors.Is(err, r) }) {
		require.NoError(t, err)
	}
}

func (h *history) commit(t *rapid.T) {
	b := h.anyBranch(t)
	h.write(t, b)
	_, err := h.f.Commit(t.Context(), "lake", b, graveler.CommitParams{AllowEmpty: rapid.Bool().Draw(t, "empty")})
	refusedOnlyFor(t, err, graveler.ErrNoChanges)
}

func (h *history) commitPart(t *rapid.T) {
	b := h.anyBranch(t)
	h.write(t, b)
	_, err := h.f.Commit(t.Context(), "lake", b, graveler.CommitParams{Prefixes: []graveler.Key{graveler.Key("a")}})
	refusedOnlyFor(t, err, graveler.ErrNoChanges)
}

func (h *history) write(t *rapid.T, b graveler.BranchID) {
	for _, k := range rapid.SliceOfN(someKeys, 1, 3).Draw(t, "keys") {
		if rapid.Bool().Draw(t, "delete") {
			require.NoError(t, h.f.Delete(t.Context(), "lake", b, graveler.Key(k)))
		} else {
			require.NoError(t, h.f.Set(t.Context(), "lake", b, graveler.Key(k), value(someTexts.Draw(t, "text"))))
		}
	}
}

func (h *history) anyBranch(t *rapid.T) graveler.BranchID {
	var names []graveler.BranchID
	for _, l := range h.logs {
		if !l.gone {
			names = append(names, l.source.Branch)
		}
	}
	return rapid.SampledFrom(names).Draw(t, "branch")
}

func (h *history) anyCommit(t *rapid.T) string {
	var commits []graveler.CommitID
	for _, l := range h.logs {
		for _, i := range l.heads {
			if i.commit != "" {
				commits = append(commits, i.commit)
			}
		}
	}
	return string(rapid.SampledFrom(commits).Draw(t, "commit"))
}

// anyTime is a time at, just before or just after a head of a log.
func (b *branchHistory) anyTime(t *rapid.T, what string) int64 {
	if rapid.IntRange(0, 9).Draw(t, what+" far away") == 0 {
		return rapid.SampledFrom([]int64{-1 << 63, -1, 0, 1, forever - 1, forever}).Draw(t, what)
	}
	return rapid.SampledFrom(b.heads).Draw(t, what+" head").time + rapid.Int64Range(-1, 1).Draw(t, what+" offset")
}

// What the feed says about random windows is what happened.
func TestTheFeedTellsWhatHappened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := randomHistory(t)
		chosen := h.logs[:0:0]
		for _, l := range h.logs {
			if l.source.Contents = rapid.Bool().Draw(t, "contents"); rapid.IntRange(0, 3).Draw(t, "chosen") > 0 {
				chosen = append(chosen, l)
			}
		}
		one := rapid.SampledFrom(h.logs).Draw(t, "log")
		after, until := one.anyTime(t, "after"), one.anyTime(t, "until")
		h.checkEvents(t, chosen, after, until)
		h.checkEvents(t, h.logs, 0, forever)
		for _, l := range h.logs {
			h.checkNet(t, l, after, until)
			h.checkHead(t, l, after)
		}
		h.checkMeeting(t, after)
		found, err := h.f.feed.Sources(t.Context(), "lake", "")
		require.NoError(t, err)
		require.Len(t, found, len(h.logs))
	})
}

// checkEvents applies the events of a window to what the branches were like at its beginning.
func (h *history) checkEvents(t *rapid.T, logs []*branchHistory, after, until int64) {
	byUID := map[string][]metalog.Event{}
	var sources []metalog.Source
	for _, l := range logs {
		sources = append(sources, l.source)
	}
	events := collect(t, h.f.feed.Events(t.Context(), sources, after, until))
	require.True(t, slices.IsSortedFunc(events, order), "%v", events)
	for _, e := range events {
		require.EqualValues(t, "lake", e.Repository)
		byUID[e.UID] = append(byUID[e.UID], e)
	}
	for _, l := range logs {
		left := byUID[l.source.UID]
		state := l.at(after)
		for i, head := range l.heads {
			if head.time <= after || head.time > until {
				continue
			}
			created, deleted := i == 0, head.tree == nil
			if created || deleted {
				require.NotEmpty(t, left)
				require.Equal(t, metalog.Event{
					Timestamp: head.time, Repository: "lake", Branch: l.source.Branch, UID: l.source.UID, Commit: head.commit, Op: left[0].Op, Kind: metalog.Head,
				}, left[0])
				left = left[1:]
				if !l.source.Contents {
					state = head.tree.clone()
				}
			}
			for len(left) > 0 && left[0].Timestamp == head.time {
				require.Equal(t, head.commit, left[0].Commit)
				require.Equal(t, l.source.Branch, left[0].Branch)
				state.apply(t, left[0])
				left = left[1:]
			}
			require.Equal(t, head.tree.clone(), state, "after the move at %d", head.time)
		}
		require.Empty(t, left)
		if after < until {
			require.Equal(t, l.at(until), state)
		}
	}
}

// order is the order in which events come.
func order(a, b metalog.Event) int {
	return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.Branch, b.Branch), cmp.Compare(a.UID, b.UID), bytes.Compare(a.Key, b.Key))
}

func (h *history) checkNet(t *rapid.T, l *branchHistory, after, until int64) {
	state := l.at(after)
	var last graveler.Key
	for _, e := range collect(t, h.f.feed.Net(t.Context(), l.source, after, until)) {
		require.Negative(t, bytes.Compare(last, e.Key), "by key")
		last = e.Key
		state.apply(t, e)
	}
	require.Equal(t, l.at(max(after, until)), state)
}

func (h *history) checkHead(t *rapid.T, l *branchHistory, at int64) {
	head, err := h.f.feed.HeadAt(t.Context(), l.source, at)
	require.NoError(t, err)
	var want instant
	for _, i := range l.heads {
		if i.time <= at {
			want = i
		}
	}
	require.Equal(t, want.time, head.Time)
	require.Equal(t, want.commit, head.Commit)
	h.checkTree(t, l, at)
}

func (h *history) checkTree(t *rapid.T, l *branchHistory, at int64) {
	tree, err := h.f.feed.TreeAt(t.Context(), l.source, at)
	require.NoError(t, err)
	require.Equal(t, l.at(at), h.f.contents(t, tree))
}

// checkMeeting: windows that meet repeat and miss nothing, and neither does a source that was read up to a time already.
func (h *history) checkMeeting(t *rapid.T, at int64) {
	var sources []metalog.Source
	for _, l := range h.logs {
		sources = append(sources, l.source)
	}
	whole := collect(t, h.f.feed.Events(t.Context(), sources, 0, forever))
	first := collect(t, h.f.feed.Events(t.Context(), sources, 0, at))
	require.Equal(t, whole, append(first, collect(t, h.f.feed.Events(t.Context(), sources, at, forever))...))

	i := rapid.IntRange(0, len(sources)-1).Draw(t, "source")
	sources[i].After = at
	rest := slices.DeleteFunc(whole, func(e metalog.Event) bool { return e.UID == sources[i].UID && e.Timestamp <= at })
	require.ElementsMatch(t, rest, collect(t, h.f.feed.Events(t.Context(), sources, 0, forever)))
}

// A log that retention has shortened says so exactly where it must, and is as before elsewhere.
func TestATruncatedLogRefusesWindowsThatBeginBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := randomHistory(t)
		l := rapid.SampledFrom(h.logs).Draw(t, "log")
		start := rapid.SampledFrom(l.heads).Draw(t, "start").time + rapid.Int64Range(0, 2).Draw(t, "start offset")
		h.f.truncate(t, l.source.UID, start)

		earliest, err := h.f.LogStart(t.Context(), "lake", graveler.LogName{Branch: l.source.Branch, UID: l.source.UID})
		require.NoError(t, err)
		require.Equal(t, start-1, earliest)
		l.source.Contents = true
		after, until := l.anyTime(t, "after"), l.anyTime(t, "until")
		if after >= earliest {
			h.checkEvents(t, []*branchHistory{l}, after, until)
			h.checkNet(t, l, after, until)
			h.checkTree(t, l, after)
			return
		}
		_, treeErr := h.f.feed.TreeAt(t.Context(), l.source, after)
		for _, err := range []error{
			treeErr,
			failure(h.f.feed.Net(t.Context(), l.source, after, until)),
			failure(h.f.feed.Events(t.Context(), []metalog.Source{l.source}, after, until)),
		} {
			require.ErrorIs(t, err, graveler.ErrLogTruncated)
			var truncated *graveler.LogTruncatedError
			require.ErrorAs(t, err, &truncated)
			require.Equal(t, earliest, truncated.Earliest)
		}
	})
}

// A move that is missing is an error of every window whose answer might depend on it, and of no other.
func TestAMissingMoveIsNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := randomHistory(t)
		var live []*branchHistory
		for _, l := range h.logs {
			if !l.gone && len(l.heads) > 1 {
				live = append(live, l)
			}
		}
		if len(live) == 0 {
			return
		}
		l := rapid.SampledFrom(live).Draw(t, "log")
		missing := rapid.IntRange(0, len(l.heads)-2).Draw(t, "missing")
		gap := l.heads[missing].time
		require.NoError(t, h.f.refs.RemoveMove(t.Context(), h.f.repository(t), l.source.UID, gap))

		after, until := l.anyTime(t, "after"), l.anyTime(t, "until")
		// The first move behind the window shows that its end is complete; what comes after that is not read.
		provenBefore := slices.ContainsFunc(l.heads[:missing], func(i instant) bool { return i.time > max(after, until) })
		l.source.Contents = true
		if after >= gap || provenBefore {
			h.checkEvents(t, []*branchHistory{l}, after, until)
		} else {
			require.ErrorIs(t, failure(h.f.feed.Events(t.Context(), []metalog.Source{l.source}, after, until)), graveler.ErrCorrupt)
		}
	})
}
