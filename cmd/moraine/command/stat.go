// SPDX-License-Identifier: Apache-2.0

package command

import (
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
)

const aboutStat = "--stat counts the keys instead, per prefix up to the next delimiter. Those that have no further delimiter are counted together, as (others); those of noncurrent versions, delete markers and uploads by themselves. " +
	"In JSON there is one object per prefix, what --prefix says standing for the others, and no total."

// printStat prints how many keys differ below each prefix, and for people the total.
func (a *app) printStat(diffs iter.Seq2[graveler.Diff, error], prefix, delimiter string) error {
	var reserved statLine
	counts := graveler.CountDiffs(countReserved(diffs, &reserved), graveler.Key(prefix), delimiter)
	return table(a.printer, statLines(counts, prefix, &reserved, !a.printer.json), []string{"ADDED", "REMOVED", "CHANGED", "PREFIX"}, viewStat, func(l statLine) []string {
		return []string{count(int(l.Added)), count(int(l.Removed)), count(int(l.Changed)), l.name}
	})
}

// statLine is a count and what people call it.
type statLine struct {
	graveler.DiffCount
	name     string
	reserved bool
}

func (l *statLine) add(c graveler.DiffCount) {
	l.Added, l.Removed, l.Changed = l.Added+c.Added, l.Removed+c.Removed, l.Changed+c.Changed
}

func (l *statLine) empty() bool { return l.Added+l.Removed+l.Changed == 0 }

// countReserved leaves out the reserved keys, and counts them.
func countReserved(diffs iter.Seq2[graveler.Diff, error], reserved *statLine) iter.Seq2[graveler.Diff, error] {
	*reserved = statLine{name: "(versions and uploads)", reserved: true}
	return func(yield func(graveler.Diff, error) bool) {
		for d, err := range diffs {
			switch {
			case err == nil && isReserved(d.Key) && d.Left == nil:
				reserved.Added++
			case err == nil && isReserved(d.Key) && d.Right == nil:
				reserved.Removed++
			case err == nil && isReserved(d.Key):
				reserved.Changed++
			case !yield(d, err):
				return
			}
		}
	}
}

// statLines names counts, and adds up what they come to where there are any.
func statLines(counts iter.Seq2[graveler.DiffCount, error], prefix string, reserved *statLine, withTotal bool) iter.Seq2[statLine, error] {
	return func(yield func(statLine, error) bool) {
		total := statLine{name: "total"}
		for c, err := range counts {
			l := statLine{DiffCount: c, name: escape(c.Prefix)}
			if string(c.Prefix) == prefix {
				l.name = "(others)"
			}
			if !yield(l, err) || err != nil {
				return
			}
			total.add(c)
		}
		if !reserved.empty() {
			if !yield(*reserved, nil) {
				return
			}
			total.add(reserved.DiffCount)
		}
		if withTotal && !total.empty() {
			yield(total, nil)
		}
	}
}

func viewStat(l statLine) any {
	prefix := viewKey(l.Prefix)
	return struct {
		Prefix       string  `json:"prefix"`
		PrefixBase64 *string `json:"prefix_base64,omitempty"`
		Reserved     bool    `json:"reserved,omitempty"`
		Added        int64   `json:"added"`
		Removed      int64   `json:"removed"`
		Changed      int64   `json:"changed"`
	}{prefix.Key, prefix.KeyBase64, l.reserved, l.Added, l.Removed, l.Changed}
}
