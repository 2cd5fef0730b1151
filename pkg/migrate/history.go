// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// history is the graph of a repository's commits. They are known by their place in the order of IDs.
type history struct {
	commits    []historyCommit
	parents    []int32  // of all commits
	metaranges []string // of all commits, each once; nil where nobody asked for them
}

type historyCommit struct {
	id          commitHash
	logTime     int64
	generation  int32 // 0: not known yet
	first, last int32 // its parents are parents[first:last], the main one first
	tree        int32 // the place of its metarange, noTree for the empty one or where nobody asked
}

// noteRow is told of a row that cannot be carried over. It returns an error to stop there.
type noteRow func(*RowError) error

// readHistory makes the graph of rows, which come in any order, and works out generations and log times: creation dates that are
// no later than began, moved on where they would not be later than those of the parents. What is wrong is noted; the rows are as
// good as not there then, if whoever is told wants to go on. With trees it remembers the metaranges, which take about 100 bytes
// each.
func readHistory(rows iter.Seq2[commitRow, error], began int64, trees bool, bad func(id string, reason error) error) (*history, error) {
	h := &history{}
	places := map[string]int32{}
	var parents []commitHash
	for row, err := range rows {
		if record := badRecord(err); record != nil {
			if err := bad(record.Key, record.Reason); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		id, err := parseCommitID(row.id)
		created, timeErr := timeOf(row.created)
		first := int32(len(parents))
		var linksErr error
		parents, linksErr = row.appendParents(parents)
		if err = errors.Join(err, timeErr, linksErr); err != nil {
			parents = parents[:first]
			if err := bad(row.id, err); err != nil {
				return nil, err
			}
			continue
		}
		tree := int32(noTree)
		if trees && row.tree != "" {
			tree = h.place(places, row.tree)
		}
		h.commits = append(h.commits, historyCommit{id: id, logTime: min(max(created.UnixNano(), 1), began), first: first, last: int32(len(parents)), tree: tree})
	}
	slices.SortFunc(h.commits, func(a, b historyCommit) int { return bytes.Compare(a.id[:], b.id[:]) })
	h.parents = make([]int32, len(parents))
	for _, c := range h.commits {
		for at := c.first; at < c.last; at++ {
			p := h.find(parents[at])
			if p < 0 {
				if err := bad(string(c.id.id()), fmt.Errorf("its parent %s does not exist", parents[at].id())); err != nil {
					return nil, err
				}
			}
			h.parents[at] = int32(p)
		}
	}
	for i := range h.commits {
		if at := h.date(int32(i)); at >= 0 {
			if err := bad(string(h.id(at)), errors.New("it is its own ancestor")); err != nil {
				return nil, err
			}
		}
	}
	return h, nil
}

// place returns the place of a metarange, which it is given the first time.
func (h *history) place(places map[string]int32, metarange string) int32 {
	at, known := places[metarange]
	if !known {
		at = int32(len(h.metaranges))
		places[metarange] = at
		h.metaranges = append(h.metaranges, metarange)
	}
	return at
}

// find returns the place of a commit, -1 where there is none.
func (h *history) find(id commitHash) int {
	at, found := slices.BinarySearchFunc(h.commits, id, func(c historyCommit, id commitHash) int { return bytes.Compare(c.id[:], id[:]) })
	if !found {
		return -1
	}
	return at
}

func (h *history) id(i int32) graveler.CommitID { return h.commits[i].id.id() }

func (h *history) parentsOf(i int32) []int32 { return h.parents[h.commits[i].first:h.commits[i].last] }

// mainParent returns -1 for a first commit.
func (h *history) mainParent(i int32) int32 {
	if p := h.parentsOf(i); len(p) > 0 {
		return p[0]
	}
	return -1
}

// treeOf returns the place of a commit's metarange, noTree where there is no commit.
func (h *history) treeOf(commit int32) int32 {
	if commit < 0 {
		return noTree
	}
	return h.commits[commit].tree
}

// byGeneration returns the places of the commits, each behind its parents.
func (h *history) byGeneration() []int32 {
	order := make([]int32, len(h.commits))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(h.commits[a].generation, h.commits[b].generation) })
	return order
}

// onStack is the generation of a commit whose ancestors are being dated.
const onStack = -1

// date sets generation and log time of a commit, after those of its ancestors. It returns a commit that is its own ancestor, or -1.
func (h *history) date(start int32) int32 {
	if h.commits[start].generation != 0 {
		return -1
	}
	cyclic := int32(-1)
	h.commits[start].generation = onStack
	for stack := []int32{start}; len(stack) > 0; {
		i := stack[len(stack)-1]
		above := int32(-1)
		for _, p := range h.parentsOf(i) {
			switch {
			case p < 0:
			case h.commits[p].generation == onStack:
				cyclic = p
			case h.commits[p].generation == 0:
				above = p
			}
		}
		if above >= 0 {
			h.commits[above].generation = onStack
			stack = append(stack, above)
			continue
		}
		generation, logTime := int32(0), h.commits[i].logTime
		for _, p := range h.parentsOf(i) {
			if p >= 0 {
				generation, logTime = max(generation, h.commits[p].generation), max(logTime, h.commits[p].logTime+1)
			}
		}
		h.commits[i].generation, h.commits[i].logTime = generation+1, logTime
		stack = stack[:len(stack)-1]
	}
	return cyclic
}

// logs says where the logs of branches begin. A commit is in one log only, along first parents: in that of the branch that comes
// first; the log of another begins with the creation of the branch on such a commit. So all logs together are no longer than the
// history and the branches. heads are in the order in which branches come; what is returned is for each where its log begins.
func (h *history) logs(heads []int32) []int32 {
	taken := make([]bool, len(h.commits))
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
	at := chain[i]
	m := graveler.Move{Time: h.commits[at].logTime, Op: graveler.OpCreate, New: h.id(at)}
	if i > 0 {
		before := chain[i-1]
		m.Op, m.Previous, m.Old = graveler.OpMigrate, h.commits[before].logTime, h.id(before)
	}
	return m
}
