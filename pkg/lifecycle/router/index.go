// SPDX-License-Identifier: Apache-2.0

package router

import (
	"slices"
	"sort"
	"strings"

	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
)

// index finds the actions whose prefix a key begins with: a binary search, and a climb from there.
type index struct {
	nodes []node // by prefix, each once
}

type node struct {
	prefix  string
	parent  int // the longest other prefix that this one begins with, or -1
	actions []*engine.CompiledAction
}

// newIndex returns the index of those actions that are about objects of one kind.
func newIndex(actions []*engine.CompiledAction, kind lifecycle.ObjectKind) index {
	byPrefix := map[string][]*engine.CompiledAction{}
	for _, a := range actions {
		if a.Kind.On(kind) {
			prefix := ""
			if p := a.Rule.Filter.Prefix; p != nil {
				prefix = *p
			}
			byPrefix[prefix] = append(byPrefix[prefix], a)
		}
	}
	var x index
	for prefix, actions := range byPrefix {
		x.nodes = append(x.nodes, node{prefix: prefix, actions: actions})
	}
	slices.SortFunc(x.nodes, func(a, b node) int { return strings.Compare(a.prefix, b.prefix) })
	for i := range x.nodes {
		p := i - 1
		for p >= 0 && !strings.HasPrefix(x.nodes[i].prefix, x.nodes[p].prefix) {
			p = x.nodes[p].parent
		}
		x.nodes[i].parent = p
	}
	return x
}

// find returns the longest prefix that key begins with, or -1; its ancestors are all the others. Whatever sorts between a prefix
// of key and key begins with that prefix too, so the last prefix that does not sort after key is one of key's or has all of them
// as ancestors.
func (x *index) find(key []byte) int {
	n := sort.Search(len(x.nodes), func(i int) bool { return x.nodes[i].prefix > string(key) }) - 1
	for n >= 0 {
		if p := x.nodes[n].prefix; len(key) >= len(p) && string(key[:len(p)]) == p {
			break
		}
		n = x.nodes[n].parent
	}
	return n
}
