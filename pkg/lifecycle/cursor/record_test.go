// SPDX-License-Identifier: Apache-2.0

package cursor_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

func drawHash(t *rapid.T) (h [32]byte) {
	copy(h[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
	return h
}

func drawPoint(t *rapid.T, low, high int64) cursor.Point {
	p := cursor.Point{Time: rapid.Int64Range(low, high).Draw(t, "time")}
	if rapid.Bool().Draw(t, "has tree") {
		p.Tree = graveler.MetaRangeID(fmt.Sprintf("%x", drawHash(t)))
		if rapid.Bool().Draw(t, "has commit") {
			p.Commit = graveler.CommitID(fmt.Sprintf("%x", drawHash(t)))
		}
	}
	return p
}

func drawKey(t *rapid.T) graveler.Key {
	return rapid.SliceOfN(rapid.Byte(), 1, 1024).Draw(t, "key")
}

func drawLane(t *rapid.T, delay int) cursor.Lane {
	const end = 1<<63 - 1
	l := cursor.Lane{Delay: delay, RulesHash: drawHash(t), WaitingUntil: rapid.Int64Range(0, end).Draw(t, "waiting until")}
	l.Head = drawPoint(t, 0, end)
	l.Horizon = drawPoint(t, 0, l.Head.Time)
	l.Judged = rapid.Int64Range(0, end).Draw(t, "judged")
	if rapid.Bool().Draw(t, "has step") {
		s := &cursor.Step{RulesHash: drawHash(t), Started: rapid.Bool().Draw(t, "started")}
		s.Head = drawPoint(t, l.Head.Time, end)
		s.Horizon = drawPoint(t, l.Horizon.Time, s.Head.Time)
		s.Judged = rapid.Int64Range(0, end).Draw(t, "step's judged")
		if s.Started && rapid.Bool().Draw(t, "has done") {
			s.KeyDone = drawKey(t)
		}
		l.Step = s
	}
	if rapid.Bool().Draw(t, "blocked") {
		l.Blocked = &cursor.Block{Key: drawKey(t), Since: rapid.Int64Range(0, end).Draw(t, "since"), Reason: rapid.StringN(0, 100, 512).Draw(t, "reason")}
	}
	return l
}

func drawPosition(t *rapid.T) cursor.Position {
	p := cursor.Position{Shard: rapid.IntRange(0, 15).Draw(t, "shard"), RepositoryUID: "r", BranchUID: "b"}
	delays := rapid.SliceOfNDistinct(rapid.IntRange(0, 1<<31-1), 1, 5, rapid.ID[int]).Draw(t, "delays")
	slices.Sort(delays)
	for _, d := range delays {
		p.Lanes = append(p.Lanes, drawLane(t, d))
	}
	return p
}

func TestAnyPositionIsReadBack(t *testing.T) {
	store := open(t, "mem:")
	s := cursor.New(store)
	rapid.Check(t, func(rt *rapid.T) {
		p, q := drawPosition(rt), drawPosition(rt)
		require.NoError(rt, s.SavePositions(t.Context(), p))
		got, found, err := s.Position(t.Context(), p.Shard, "r", "b")
		require.NoError(rt, err)
		require.True(rt, found)
		require.Equal(rt, p, got)
		require.True(rt, p.Equal(got))
		first := raw(t, store)
		require.NoError(rt, s.SavePositions(t.Context(), got))
		require.Equal(rt, first, raw(t, store), "equal positions are equal bytes")
		require.False(rt, p.Equal(q))
	})
}

func TestPositionsDifferInWhateverIsChanged(t *testing.T) {
	for name, change := range map[string]func(p *cursor.Position){
		"shard":       func(p *cursor.Position) { p.Shard = 4 },
		"repository":  func(p *cursor.Position) { p.RepositoryUID = "x" },
		"branch":      func(p *cursor.Position) { p.BranchUID = "x" },
		"lanes":       func(p *cursor.Position) { p.Lanes = p.Lanes[:2] },
		"delay":       func(p *cursor.Position) { p.Lanes[2].Delay++ },
		"horizon":     func(p *cursor.Position) { p.Lanes[2].Horizon.Time++ },
		"tree":        func(p *cursor.Position) { p.Lanes[2].Horizon.Tree = tree(99) },
		"commit":      func(p *cursor.Position) { p.Lanes[2].Horizon.Commit = "" },
		"head":        func(p *cursor.Position) { p.Lanes[2].Head.Time++ },
		"rules":       func(p *cursor.Position) { p.Lanes[2].RulesHash[31]++ },
		"waiting":     func(p *cursor.Position) { p.Lanes[2].WaitingUntil++ },
		"judged":      func(p *cursor.Position) { p.Lanes[2].Judged++ },
		"step judged": func(p *cursor.Position) { p.Lanes[2].Step.Judged++ },
		"step":        func(p *cursor.Position) { p.Lanes[2].Step = nil },
		"new step":    func(p *cursor.Position) { p.Lanes[0].Step = &cursor.Step{Head: point(17, 8)} },
		"key done":    func(p *cursor.Position) { p.Lanes[2].Step.KeyDone = graveler.Key("b") },
		"started":     func(p *cursor.Position) { p.Lanes[1].Step.Started = true },
		"step's head": func(p *cursor.Position) { p.Lanes[2].Step.Head.Time++ },
		"unblocked":   func(p *cursor.Position) { p.Lanes[2].Blocked = nil },
		"reason":      func(p *cursor.Position) { p.Lanes[2].Blocked.Reason = "" },
	} {
		p := aPosition()
		change(&p)
		require.False(t, aPosition().Equal(p), name)
		require.True(t, p.Equal(p), name)
	}
	p := aPosition()
	p.Lanes[1].Step.KeyDone = graveler.Key{}
	require.True(t, aPosition().Equal(p), "no key is no key")
}

func TestAPositionWithoutLanesIsRemoved(t *testing.T) {
	store := open(t, "mem:")
	s := everything(t, store)
	p := aPosition()
	p.Lanes = nil
	require.NoError(t, s.SavePositions(t.Context(), p))
	_, found, err := s.Position(t.Context(), 3, repoUID, branchUID)
	require.NoError(t, err)
	require.False(t, found)
	require.NotContains(t, raw(t, store), positionKey)
}

// The longest configuration has a thousand rules.
func TestAThousandLanesAreOneRecord(t *testing.T) {
	store := open(t, "mem:")
	s := cursor.New(store)
	p := cursor.Position{Shard: 3, RepositoryUID: repoUID, BranchUID: branchUID}
	for delay := range 1000 {
		p.Lanes = append(p.Lanes, cursor.Lane{
			Delay: delay, Horizon: point(1<<60, byte(delay)), Head: point(1<<60+1, byte(delay+1)), RulesHash: digest(byte(delay)), WaitingUntil: 1 << 60,
		})
	}
	require.NoError(t, s.SavePositions(t.Context(), p))
	for i := range 300 {
		l := &p.Lanes[i]
		l.Step = &cursor.Step{Horizon: l.Horizon, Head: l.Head, RulesHash: l.RulesHash}
	}
	p.Lanes = p.Lanes[:500]
	require.NoError(t, s.SavePositions(t.Context(), p))
	for i := range p.Lanes {
		p.Lanes[i].Blocked = &cursor.Block{Key: make(graveler.Key, 1024), Reason: strings.Repeat("x", 512)}
	}
	require.ErrorIs(t, s.SavePositions(t.Context(), p), kv.ErrTooLarge)
}

func TestAnyReasonCanBeKept(t *testing.T) {
	s := cursor.New(open(t, "mem:"))
	for reason, kept := range map[string]string{
		"no\xffroute": "noroute", strings.Repeat("x", 600): strings.Repeat("x", 512), strings.Repeat("x", 511) + "é": strings.Repeat("x", 511), "": "",
	} {
		p := aPosition()
		p.Lanes[2].Blocked.Reason = reason
		require.NoError(t, s.SavePositions(t.Context(), p))
		got, _, err := s.Position(t.Context(), 3, repoUID, branchUID)
		require.NoError(t, err)
		require.Equal(t, kept, got.Lanes[2].Blocked.Reason)
		require.True(t, p.Equal(got), "saving it again changes nothing")
	}
}

func TestAnyCursorAndWalkIsReadBack(t *testing.T) {
	s := cursor.New(open(t, "mem:"))
	rapid.Check(t, func(rt *rapid.T) {
		times := rapid.Int64Range(0, 1<<63-1)
		c := cursor.Cursor{
			Shard: rapid.IntRange(0, 15).Draw(rt, "shard"), Time: times.Draw(rt, "time"), RuleSetHash: drawHash(rt), PromotedHash: drawHash(rt), LastWalked: times.Draw(rt, "walked"),
		}
		require.NoError(rt, s.SaveCursors(t.Context(), c))
		got, _, err := s.Cursor(t.Context(), c.Shard)
		require.NoError(rt, err)
		require.Equal(rt, c, got)

		w := cursor.Walk{
			RepositoryUID: "r", BranchUID: "b", Began: times.Draw(rt, "began"), Head: drawPoint(rt, 0, 1<<63-1), After: string(rapid.SliceOf(rapid.Byte()).Draw(rt, "after")),
			Shards: rapid.Uint16().Draw(rt, "shards"), RuleSetHash: drawHash(rt), PromotedHash: drawHash(rt), Last: times.Draw(rt, "last"),
		}
		require.NoError(rt, s.SaveWalk(t.Context(), w))
		walk, _, err := s.Walk(t.Context(), "r", "b", w.Shards)
		require.NoError(rt, err)
		require.Equal(rt, w, walk)
	})
}

// Against a list that is sorted.
func TestWhatIsDueComesInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store, err := mem.Open(t.Context(), "mem:", kv.OpenOptions{})
		require.NoError(rt, err)
		s := cursor.New(store)
		times := rapid.SampledFrom([]int64{0, 1, 9, 10, 15, 16, 255, 256, 1 << 40, 1<<63 - 2, 1<<63 - 1})
		want := map[string]cursor.Deferred{}
		for range rapid.IntRange(0, 20).Draw(rt, "n") {
			d := aDeferred()
			d.Shard = rapid.IntRange(2, 3).Draw(rt, "shard")
			d.Due = times.Draw(rt, "due")
			d.Key = graveler.Key(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key"))
			d.Identity = []byte(rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "identity"))
			require.NoError(rt, s.Defer(t.Context(), d))
			want[fmt.Sprintf("%d %d %s %s", d.Shard, d.Due, d.Key, d.Identity)] = d
		}
		shard, now := 3, rapid.OneOf(times, rapid.Int64()).Draw(rt, "now")
		var due []cursor.Deferred
		for _, d := range want {
			if d.Shard == shard && d.Due <= now {
				due = append(due, d)
			}
		}
		got, errs := all(s.Due(t.Context(), shard, now))
		require.Empty(rt, errs)
		require.ElementsMatch(rt, due, got)
		require.True(rt, slices.IsSortedFunc(got, func(a, b cursor.Deferred) int { return cmp.Compare(a.Due, b.Due) }))
		listed, errs := all(s.AllDeferred(t.Context()))
		require.Empty(rt, errs)
		require.Len(rt, listed, len(want))
		require.NoError(rt, s.RemoveDeferred(t.Context(), got...))
		none(t, s.Due(t.Context(), shard, now))
		require.Len(rt, raw(t, store), len(want)-len(got))
	})
}

func TestWhatIsDueMayBeRemovedWhileItIsRead(t *testing.T) {
	engines(t, func(t *testing.T, store kv.Store) {
		const n = 3000 // pages
		s := cursor.New(store)
		var deferred []cursor.Deferred
		for i := range n {
			d := aDeferred()
			d.Due, d.Identity = int64(i/2), fmt.Appendf(nil, "%d", i)
			deferred = append(deferred, d)
		}
		require.NoError(t, s.Defer(t.Context(), deferred...))
		require.NoError(t, s.Defer(t.Context(), deferred...), "again")
		require.Len(t, raw(t, store), n)
		seen, last := 0, int64(0)
		var done []cursor.Deferred
		for d, err := range s.Due(t.Context(), 3, n) {
			require.NoError(t, err)
			require.GreaterOrEqual(t, d.Due, last)
			last = d.Due
			seen++
			if done = append(done, d); len(done) == 100 {
				require.NoError(t, s.RemoveDeferred(t.Context(), done...))
				done = nil
			}
		}
		require.Equal(t, n, seen)
		require.Empty(t, raw(t, store))
	})
}

var allShards = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

func TestPruneLeavesOtherShardsAlone(t *testing.T) {
	ctx := t.Context()
	s := cursor.New(mem.New())
	for shard := range lifecycle.Shards {
		p, d := aPosition(), aDeferred()
		p.Shard, d.Shard = shard, shard
		require.NoError(t, s.SavePositions(ctx, p))
		require.NoError(t, s.Defer(ctx, d))
	}
	removed, err := s.Prune(ctx, []int{2, 3}, func(string, string) bool { return false })
	require.NoError(t, err)
	require.Equal(t, 4, removed)
	for shard := range lifecycle.Shards {
		n := 0
		for _, err := range s.Positions(ctx, shard) {
			require.NoError(t, err)
			n++
		}
		for _, err := range s.Due(ctx, shard, math.MaxInt64-1) {
			require.NoError(t, err)
			n++
		}
		if shard == 2 || shard == 3 {
			require.Zero(t, n)
		} else {
			require.Equal(t, 2, n)
		}
	}
}

func TestPruneRemovesWhatBelongsToSourcesThatAreGone(t *testing.T) {
	engines(t, func(t *testing.T, store kv.Store) {
		ctx, s := t.Context(), cursor.New(store)
		var positions []cursor.Position
		var deferred []cursor.Deferred
		for _, repo := range []string{"r1", "r2"} {
			for _, branch := range []string{"b1", "b2"} {
				for shard := range lifecycle.Shards {
					p := aPosition()
					p.Shard, p.RepositoryUID, p.BranchUID = shard, repo, branch
					positions = append(positions, p)
					for i := range 50 {
						d := aDeferred()
						d.Shard, d.Due, d.RepositoryUID, d.BranchUID = shard, int64(i), repo, branch
						deferred = append(deferred, d)
					}
				}
				w := aWalk()
				w.RepositoryUID, w.BranchUID = repo, branch
				require.NoError(t, s.SaveWalk(ctx, w))
				w.Shards = 0xff
				require.NoError(t, s.SaveWalk(ctx, w))
			}
		}
		require.NoError(t, s.SavePositions(ctx, positions...))
		require.NoError(t, s.Defer(ctx, deferred...))
		require.NoError(t, s.SaveCursors(ctx, aCursor()))
		put(t, store, "leases/shard-03", []byte("x"))
		const each = 16 + 16*50 + 2
		require.Len(t, raw(t, store), 4*each+2)

		removed, err := s.Prune(ctx, allShards, func(string, string) bool { return true })
		require.NoError(t, err)
		require.Zero(t, removed)
		_, err = s.Prune(ctx, []int{16}, func(string, string) bool { return false })
		require.ErrorIs(t, err, graveler.ErrInvalidValue)

		put(t, store, "positions/03/r1", []byte("x"))
		put(t, store, "positions/03/r1/b1", []byte("x"))
		put(t, store, "walks/r1/b1/c1", []byte("x"))
		put(t, store, "deferred/03/x", []byte("x"))
		removed, err = s.Prune(ctx, allShards, func(repo, branch string) bool { return repo == "r2" && branch == "b1" })
		require.Equal(t, 3*each, removed, "a position that is malformed is of its source all the same")
		for _, key := range []string{`"positions/03/r1"`, "walks/r1/b1/c1", "deferred/03/x"} {
			require.ErrorIs(t, err, cursor.ErrMalformed)
			require.ErrorContains(t, err, key)
		}
		left := raw(t, store)
		require.Len(t, left, each+2+3)
		for key := range left {
			require.False(t, strings.Contains(key, "r1/b2") || strings.Contains(key, "r2/b2"), key)
		}
	})
}
