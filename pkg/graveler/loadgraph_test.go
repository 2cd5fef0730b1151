// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// loadedHistory is what a load is made of: a line of commits with merges, along which the branch main has moved.
type loadedHistory struct {
	commits     []*graveler.Commit
	moves       []graveler.Move // the last is in the record of the branch
	expirations []graveler.Expiration
}

// historyOfLoad has n commits whose IDs are in another order than they are.
func historyOfLoad(n int, tree graveler.MetaRangeID) *loadedHistory {
	h := &loadedHistory{}
	for i := range n {
		c := &graveler.Commit{ID: idOfLoad(i*5%n + 1), Version: graveler.CarriedVersion, Tree: tree, Generation: int64(i + 1), LogTime: int64(i + 1)}
		m := graveler.Move{Time: c.LogTime, Op: graveler.OpCreate, New: c.ID}
		if i > 0 {
			c.Parents = append(c.Parents, h.commits[i-1].ID)
			m.Op, m.Previous, m.Old = graveler.OpMigrate, m.Time-1, h.commits[i-1].ID
		}
		if i > 2 {
			c.Parents = append(c.Parents, h.commits[i-3].ID)
		}
		h.commits, h.moves = append(h.commits, c), append(h.moves, m)
	}
	return h
}

func idOfLoad(n int) graveler.CommitID {
	return graveler.CommitID(fmt.Sprintf("%02x", n) + strings.Repeat("0", 62))
}

func (h *loadedHistory) load(t *testing.T, window int) error {
	ctx, f := t.Context(), newFixture(t)
	l, err := f.LoadRepository(ctx, "copy", graveler.LoadParams{DefaultBranch: "main"})
	require.NoError(t, err)
	l.CheckAtATime(window)
	for _, c := range h.commits {
		c.Nonce = c.Digest()
		require.NoError(t, l.PutCommit(ctx, c))
	}
	for _, e := range h.expirations {
		require.NoError(t, l.PutExpiration(ctx, e))
	}
	last := len(h.moves) - 1
	for _, m := range h.moves[:last] {
		require.NoError(t, l.PutMove(ctx, "uid", m))
	}
	_, err = l.PutBranch(ctx, graveler.Branch{ID: "main", UID: "uid", Head: h.moves[last].New, LastMove: h.moves[last]})
	require.NoError(t, err)
	if _, err = l.Finish(ctx); err != nil {
		require.NoError(t, l.Abort(ctx))
	}
	return err
}

// Whatever is wrong in a history is found, however many commits are checked at a time.
func TestALoadChecksAllReferencesToCommits(t *testing.T) {
	const n = 9
	missing := idOfLoad(0xff)
	empty := newFixture(t).EmptyTree()
	for name, c := range map[string]struct {
		edit func(*loadedHistory)
		want string // "": nothing is wrong
	}{
		"a history": {func(*loadedHistory) {}, ""},
		"a parent that is missing": {func(h *loadedHistory) { h.commits[4].Parents[1] = missing },
			"commit " + string(idOfLoad(4*5%n+1)) + ": invalid value: commit " + string(missing) + " is missing"},
		"a parent before all others that is missing": {func(h *loadedHistory) { h.commits[4].Parents[1] = idOfLoad(0) }, "commit " + string(idOfLoad(0)) + " is missing"},
		"a parent that is no ID":                     {func(h *loadedHistory) { h.commits[4].Parents[1] = "zzz" }, "commit zzz is missing"},
		"a parent that retention has removed": {func(h *loadedHistory) {
			h.commits[4].Parents[1] = missing
			h.expirations = []graveler.Expiration{{Commit: missing, At: 1}}
		}, ""},
		"a parent that retention may yet remove": {func(h *loadedHistory) {
			h.commits[4].Parents[1] = missing
			h.expirations = []graveler.Expiration{{Commit: missing, At: 1, Pending: true}}
		}, "is missing"},
		"a commit that is its own parent": {func(h *loadedHistory) { h.commits[4].Parents[1] = h.commits[4].ID }, "is not greater than that of its parent"},
		"a log that names a missing commit": {func(h *loadedHistory) { h.moves[5].New, h.moves[6].Old = missing, missing },
			"log uid of branch main: the move at 6: invalid value: commit " + string(missing) + " is missing"},
		"a log with a gap":       {func(h *loadedHistory) { h.moves[5].Old = h.moves[2].New }, "does not begin where the one before it ended"},
		"a tree that is missing": {func(h *loadedHistory) { h.commits[3].Tree = "gone" }, "no tree gone"},
		"trees that retention has taken": {func(h *loadedHistory) {
			for _, digit := range "123456789" { // their commits have gone, too
				h.expirations = append(h.expirations, graveler.Expiration{Commit: idOfLoad(0)[:63] + graveler.CommitID(digit), At: 1})
			}
			for _, i := range []int{7, 1, 3} {
				h.commits[i].Tree = "gone"
				h.expirations = append(h.expirations, graveler.Expiration{Commit: h.commits[i].ID, At: 1})
			}
		}, ""},
		"a tree that retention may yet take": {func(h *loadedHistory) {
			h.commits[3].Tree = "gone"
			h.expirations = []graveler.Expiration{{Commit: h.commits[3].ID, At: 1, Pending: true}}
		}, "no tree gone"},
	} {
		for _, window := range []int{1, 2, 4, n, n + 1} {
			t.Run(fmt.Sprintf("%s, %d at a time", name, window), func(t *testing.T) {
				h := historyOfLoad(n, empty)
				c.edit(h)
				err := h.load(t, window)
				if c.want == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, c.want)
			})
		}
	}
	// Each commit in turn is no younger than one of its parents, whichever of the two has the greater ID.
	for i := 1; i < n; i++ {
		for _, window := range []int{1, 3, n} {
			h := historyOfLoad(n, empty)
			h.commits[i].Generation--
			require.ErrorContains(t, h.load(t, window), "commit "+string(h.commits[i].ID)+": invalid value: its generation or log time is not greater")
			h = historyOfLoad(n, empty)
			h.commits[i].LogTime--
			require.ErrorContains(t, h.load(t, window), "is not greater than that of its parent "+string(h.commits[i-1].ID))
		}
	}
}
