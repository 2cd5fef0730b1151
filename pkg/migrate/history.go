// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// history is the graph of a repository's commits. Commits are known by their place in the order of IDs.
type history struct {
	ids        []commitHash // ascending
	first      []int32      // where the parents of each begin in parents, and, last, where they end
	parents    []int32      // the main parent first
	generation []int32      // 0: not known yet
	logTime    []int64
}

// noteRow is told of a row that cannot be carried over. It returns an error to stop there.
type noteRow func(*RowError) error

// readHistory reads the graph, and works out generations and log times: creation dates that are no later than began, moved on where they would not be later than those of the parents. What is wrong is noted; the rows are as good as
// not there then, if whoever is told wants to go on.
func readHistory(ctx context.Context, r *reader, repo string, began int64, note noteRow) (*history, error) {
	h := &history{}
	var parents []commitHash
	bad := func(id string, reason error) error {
		return note(&RowError{Table: commitsTable, Repository: repo, Key: id, Reason: reason})
	}
	for row, err := range r.commitLinks(ctx, repo) {
		if err != nil {
			return nil, err
		}
		id, err := parseCommitID(row.id)
		created, timeErr := timeOf(row.created)
		links, linksErr := row.parentHashes()
		if err = errors.Join(err, timeErr, linksErr); err != nil {
			if err := bad(row.id, err); err != nil {
				return nil, err
			}
			continue
		}
		h.ids = append(h.ids, id)
		h.first = append(h.first, int32(len(parents)))
		parents = append(parents, links...)
		h.logTime = append(h.logTime, min(max(created.UnixNano(), 1), began))
	}
	h.first = append(h.first, int32(len(parents)))
	h.parents = make([]int32, len(parents))
	for i := range h.ids {
		for at := h.first[i]; at < h.first[i+1]; at++ {
			p := h.find(parents[at])
			if p < 0 {
				if err := bad(string(h.ids[i].id()), fmt.Errorf("its parent %s does not exist", parents[at].id())); err != nil {
					return nil, err
				}
			}
			h.parents[at] = int32(p)
		}
	}
	h.generation = make([]int32, len(h.ids))
	for i := range h.ids {
		if at := h.date(int32(i)); at >= 0 {
			if err := bad(string(h.ids[at].id()), errors.New("it is its own ancestor")); err != nil {
				return nil, err
			}
		}
	}
	return h, nil
}

// find returns the place of a commit, -1 where there is none.
func (h *history) find(id commitHash) int {
	at, found := slices.BinarySearchFunc(h.ids, id, func(a, b commitHash) int { return bytes.Compare(a[:], b[:]) })
	if !found {
		return -1
	}
	return at
}

func (h *history) parentsOf(i int32) []int32 { return h.parents[h.first[i]:h.first[i+1]] }

// mainParent returns -1 for a first commit.
func (h *history) mainParent(i int32) int32 {
	if p := h.parentsOf(i); len(p) > 0 {
		return p[0]
	}
	return -1
}

// onStack is the generation of a commit whose ancestors are being dated.
const onStack = -1

// date sets generation and log time of a commit, after those of its ancestors. It returns a commit that is its own ancestor, or -1.
func (h *history) date(start int32) int32 {
	if h.generation[start] != 0 {
		return -1
	}
	cyclic := int32(-1)
	h.generation[start] = onStack
	for stack := []int32{start}; len(stack) > 0; {
		i := stack[len(stack)-1]
		above := int32(-1)
		for _, p := range h.parentsOf(i) {
			switch {
			case p < 0:
			case h.generation[p] == onStack:
				cyclic = p
			case h.generation[p] == 0:
				above = p
			}
		}
		if above >= 0 {
			h.generation[above] = onStack
			stack = append(stack, above)
			continue
		}
		generation, logTime := int32(0), h.logTime[i]
		for _, p := range h.parentsOf(i) {
			if p >= 0 {
				generation, logTime = max(generation, h.generation[p]), max(logTime, h.logTime[p]+1)
			}
		}
		h.generation[i], h.logTime[i] = generation+1, logTime
		stack = stack[:len(stack)-1]
	}
	return cyclic
}

// logs says where the logs of branches begin. A commit is in one log only, along first parents: in that of the branch that comes first; the log of another begins with the creation of the branch on such a commit. So all logs together are no longer
// than the history and the branches. heads are in the order in which branches come; what is returned is for each where its log begins.
func (h *history) logs(heads []int32) []int32 {
	taken := make([]bool, len(h.ids))
	starts := make([]int32, len(heads))
	for i, head := range heads {
		at := head
		for !taken[at] {
			taken[at] = true
			p := h.mainParent(at)
			if p < 0 {
				break
			}
			at = p
		}
		starts[i] = at
	}
	return starts
}

// chain returns the commits along first parents from where a log begins to the head.
func (h *history) chain(start, head int32) []int32 {
	var chain []int32
	for at := head; at != start; at = h.mainParent(at) {
		chain = append(chain, at)
	}
	chain = append(chain, start)
	slices.Reverse(chain)
	return chain
}

// move returns the i-th move of a log that leads along a chain.
func (h *history) move(chain []int32, i int) graveler.Move {
	m := graveler.Move{Time: h.logTime[chain[i]], Op: graveler.OpCreate, New: h.ids[chain[i]].id()}
	if i > 0 {
		before := chain[i-1]
		m.Op, m.Previous, m.Old = graveler.OpMigrate, h.logTime[before], h.ids[before].id()
	}
	return m
}
