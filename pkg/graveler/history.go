// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"cmp"
	"slices"
)

// history is all commits of a repository in memory.
type history struct {
	commits []pastCommit
	byID    map[CommitID]int
}

type pastCommit struct {
	id                  CommitID
	tree                MetaRangeID
	parents             []int // indexes
	generation, logTime int64
	carried             bool
	kept                bool
	followed            bool // its parents are kept too
}

// keepSince keeps a commit, and of those that it reaches all that are not before a time, with their parents. Calls must come in
// the order of their times: what an earlier one did not follow a later one does not either.
func (h *history) keepSince(head int, since int64) {
	for next := []int{head}; len(next) > 0; {
		c := &h.commits[next[len(next)-1]]
		next = next[:len(next)-1]
		c.kept = true
		if c.followed || c.logTime < since {
			continue
		}
		c.followed = true
		next = append(next, c.parents...)
	}
}

// keepPartings keeps the best common ancestors of any two of the heads: the commits from which their merges start.
//
// Of a commit it is asked which of the heads reach it. It is a best common ancestor of two of them if they reach it and not both
// reach any child of it; so if some child is reached by all heads that reach the commit, it is none.
func (h *history) keepPartings(heads []int) {
	isHead := map[int]bool{}
	for _, i := range heads {
		isHead[i] = true
	}
	reachedBy := map[int]headSet{} // of commits that were reached and not yet visited
	parting := map[int]bool{}      // of these, whether no child is reached by all
	for _, i := range h.reached(heads) {
		by := reachedBy[i]
		if parting[i] {
			h.commits[i].kept = true
		}
		delete(reachedBy, i)
		delete(parting, i)
		if isHead[i] {
			by = by.with(headSet{i})
		}
		for _, p := range h.commits[i].parents {
			switch others := reachedBy[p]; {
			case others.within(by):
				reachedBy[p] = by
				delete(parting, p)
			case !by.within(others):
				reachedBy[p], parting[p] = others.with(by), true
			}
		}
	}
}

// carriedBeside returns the carried commits that neither the heads reach nor another carried commit beside them follows: the
// heads that branches had in the other system, where they were deleted.
func (h *history) carriedBeside(heads []int) (tips []int) {
	reached, followed := h.reach(heads), make([]bool, len(h.commits))
	for i, c := range h.commits {
		if c.carried && !reached[i] {
			for _, p := range c.parents {
				followed[p] = true
			}
		}
	}
	for i, c := range h.commits {
		if c.carried && !reached[i] && !followed[i] {
			tips = append(tips, i)
		}
	}
	return tips
}

// reach says of each commit whether some of the heads reach it.
func (h *history) reach(heads []int) []bool {
	reached := make([]bool, len(h.commits))
	for next := slices.Clone(heads); len(next) > 0; {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		if !reached[i] {
			reached[i] = true
			next = append(next, h.commits[i].parents...)
		}
	}
	return reached
}

// reached returns the commits that some of the heads reach, children before their parents.
func (h *history) reached(heads []int) []int {
	var all []int
	for i, is := range h.reach(heads) {
		if is {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(h.commits[b].generation, h.commits[a].generation) })
	return all
}

// headSet is a sorted set of heads. It is shared, and never modified.
type headSet []int

func (s headSet) within(t headSet) bool {
	if len(s) > len(t) {
		return false
	}
	for _, head := range s {
		i, found := slices.BinarySearch(t, head)
		if !found {
			return false
		}
		t = t[i+1:]
	}
	return true
}

func (s headSet) with(t headSet) headSet {
	union := append(slices.Clone(s), t...)
	slices.Sort(union)
	return slices.Compact(union)
}
