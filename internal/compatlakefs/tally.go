// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// tally counts comparisons of one subject, by kind.
type tally struct {
	subject string
	kinds   []string // in the order in which they came
	counts  map[string]int
	differs map[string][]string
}

func newTally(set, target, subject string) *tally {
	return &tally{fmt.Sprintf("%-9s %-16s %-16s", set, target, subject), nil, map[string]int{}, map[string][]string{}}
}

// equal notes a comparison of what is named.
func (t *tally) equal(kind, what string, got, want any) {
	if !slices.Contains(t.kinds, kind) {
		t.kinds = append(t.kinds, kind)
	}
	t.counts[kind]++
	if g, w := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want); g != w {
		t.differs[kind] = append(t.differs[kind], fmt.Sprintf("%s: %.400s\n      expected %.400s", what, g, w))
	}
}

// print prints a line for each kind, and how it differs, and returns how many differences there are.
func (t *tally) print() (differences int) {
	for _, kind := range t.kinds {
		differs := t.differs[kind]
		result := "equal"
		if len(differs) > 0 {
			result = fmt.Sprintf("%d DIFFER", len(differs))
		}
		fmt.Printf("%s %-24s %5d compared: %s\n", t.subject, kind, t.counts[kind], result)
		for _, d := range differs {
			fmt.Printf("    %s\n", d)
		}
		differences += len(differs)
	}
	return differences
}
