// SPDX-License-Identifier: Apache-2.0

package command

import (
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
)

const aboutStat = "--stat counts the keys instead, per prefix up to the next delimiter. Those that have no further delimiter are counted together, as (others). " +
	"In JSON there is one object per prefix, what --prefix says standing for the others, and no total."

// printStat prints how many keys differ below each prefix, and for people the total.
func (a *app) printStat(diffs iter.Seq2[graveler.Diff, error], prefix, delimiter string) error {
	counts := graveler.CountDiffs(diffs, graveler.Key(prefix), delimiter)
	return table(a.printer, statLines(counts, prefix, !a.printer.json), []string{"ADDED", "REMOVED", "CHANGED", "PREFIX"}, viewStat, func(l statLine) []string {
		return []string{count(int(l.Added)), count(int(l.Removed)), count(int(l.Changed)), l.name}
	})
}

// statLine is a count and what people call it.
type statLine struct {
	graveler.DiffCount
	name string
}

// statLines names counts, and adds up what they come to where there are any.
func statLines(counts iter.Seq2[graveler.DiffCount, error], prefix string, withTotal bool) iter.Seq2[statLine, error] {
	return func(yield func(statLine, error) bool) {
		total := statLine{name: "total"}
		for c, err := range counts {
			l := statLine{c, escape(c.Prefix)}
			if string(c.Prefix) == prefix {
				l.name = "(others)"
			}
			if !yield(l, err) || err != nil {
				return
			}
			total.Added, total.Removed, total.Changed = total.Added+c.Added, total.Removed+c.Removed, total.Changed+c.Changed
		}
		if withTotal && total.Added+total.Removed+total.Changed > 0 {
			yield(total, nil)
		}
	}
}

func viewStat(l statLine) any {
	prefix := viewKey(l.Prefix)
	return struct {
		Prefix       string  `json:"prefix"`
		PrefixBase64 *string `json:"prefix_base64,omitempty"`
		Added        int64   `json:"added"`
		Removed      int64   `json:"removed"`
		Changed      int64   `json:"changed"`
	}{prefix.Key, prefix.KeyBase64, l.Added, l.Removed, l.Changed}
}
