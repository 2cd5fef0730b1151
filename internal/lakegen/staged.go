// SPDX-License-Identifier: Apache-2.0

package lakegen

import (
	"fmt"
	"slices"

	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// branches makes all branches on their heads.
func (g *generator) branches() {
	for _, name := range g.live() {
		g.r.Branches = append(g.r.Branches, g.branch(name))
	}
}

// branch makes a branch on its head, with what is staged there.
func (g *generator) branch(name string) *Branch {
	head := g.heads[name]
	b := &Branch{Branch: lakefs.Branch{ID: name, Commit: head.ID, Token: g.token(name)}, Staged: map[string][]lakefs.Staged{}}
	if !g.p.Tables {
		b.Hidden = g.rng.IntN(4) == 0
		for range g.rng.IntN(4) {
			b.Sealed = append(b.Sealed, g.token(name))
		}
	}
	for _, token := range append([]string{b.Token}, b.Sealed...) {
		if g.rng.IntN(5) > 0 {
			b.Staged[token] = g.changes(head.Tree)
		}
	}
	return b
}

func (g *generator) token(branch string) string {
	g.tokens++
	return fmt.Sprintf("%s-%s:%08x-%04x-4%03x-8%03x-%012x", g.r.ID, branch, g.rng.Uint32(), g.tokens, g.rng.IntN(1<<12), g.rng.IntN(1<<12), g.rng.Int64N(1<<48))
}

// changes returns some by key: new entries, deletions, also of what is not there, and entries that are as they were.
func (g *generator) changes(tree Tree) []lakefs.Staged {
	all := keys()
	slices.Sort(all)
	often := pick(g.rng, 3, 10, 40)
	var staged []lakefs.Staged
	for _, key := range all {
		if g.rng.IntN(often) > 0 {
			continue
		}
		s := lakefs.Staged{Record: lakefs.Record{Key: []byte(key)}}
		old, exists := tree.Get(s.Key)
		switch n := g.rng.IntN(4); {
		case n == 0:
			s.Tombstone = true
		case n == 1 && exists:
			s.Record = old
		default:
			s.Record = randomRecord(g.rng, key)
		}
		staged = append(staged, s)
	}
	return staged
}
