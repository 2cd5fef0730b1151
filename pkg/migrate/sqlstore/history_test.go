// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// longLine is a history of n commits, each of which follows three, one of which is not there. Every other clock is an hour slow.
func longLine(n int) (*history, []*graveler.Commit) {
	h, line := &history{index: map[string]int32{}}, make([]*graveler.Commit, n)
	for i := range line {
		c := &graveler.Commit{ID: graveler.CommitID(fmt.Sprint(i)), CreatedAt: time.Unix(int64(i), 0).Add(-time.Duration(i%2) * time.Hour)}
		var parents []string
		if i > 0 {
			parents = []string{fmt.Sprint(i - 1), fmt.Sprint(i / 2), "elsewhere"}
		}
		for _, p := range parents {
			c.Parents = append(c.Parents, graveler.CommitID(p))
		}
		line[i] = c
		h.add(string(c.ID), parents, firstPlace(&c.CreatedAt), unplaced)
	}
	return h, line
}

func TestCommitsStandBehindTheirAncestors(t *testing.T) {
	const n = 200_000
	h, line := longLine(n)
	h.add("7", []string{"6"}, firstPlace(&line[7].CreatedAt), unplaced) // a row that is read twice
	line[7].Parents = line[7].Parents[:1]
	require.NoError(t, h.settle())
	last := int64(0)
	for i, c := range line {
		p, ok := h.placeOf(c)
		require.True(t, ok)
		require.EqualValues(t, i+1, p.generation)
		require.Equal(t, max(c.CreatedAt.UnixNano(), last+1), p.logTime)
		last = p.logTime
	}
	for why, c := range map[string]*graveler.Commit{
		"its parents are others":     {ID: "9", CreatedAt: line[9].CreatedAt, Parents: []graveler.CommitID{"3"}},
		"it was created later":       {ID: "9", CreatedAt: line[9].CreatedAt.Add(time.Hour * 2), Parents: line[9].Parents},
		"it is new":                  {ID: "new", CreatedAt: line[9].CreatedAt, Parents: line[9].Parents},
		"it follows one that is new": {ID: "9", CreatedAt: line[9].CreatedAt, Parents: []graveler.CommitID{"8", "new"}},
		"it has no row":              {ID: "elsewhere", CreatedAt: time.Unix(0, 0)},
	} {
		_, ok := h.placeOf(c)
		require.False(t, ok, why)
	}
}

func TestACommitThatIsItsOwnAncestorIsNamed(t *testing.T) {
	h, _ := longLine(1000)
	h.add("3", []string{"3"}, firstPlace(nil), unplaced)
	require.ErrorContains(t, h.settle(), `"3": is its own ancestor`)
	h, _ = longLine(1000)
	h.add("0", []string{"999"}, firstPlace(nil), unplaced)
	require.ErrorIs(t, h.settle(), graveler.ErrCorrupt)
}
