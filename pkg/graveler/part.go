// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"slices"
)

// rightSides turns differences into the changes that make the left map the right one.
type rightSides struct{ Iterator[Diff] }

func (r rightSides) Item() Entry {
	d := r.Iterator.Item()
	return Entry{Key: d.Key, Value: d.Right}
}

// part is rightSides for the keys with one of some prefixes, without looking at what lies between them.
type part struct {
	rightSides
	prefixes []Key // in order, and none starts with another
	at       int   // the first prefix whose keys are not all behind
	started  bool
}

func newPart(changes Iterator[Diff], prefixes ...Key) *part {
	return &part{rightSides: rightSides{changes}, prefixes: disjoint(prefixes)}
}

// disjoint sorts prefixes and leaves out those that others cover.
func disjoint(prefixes []Key) (left []Key) {
	for _, p := range slices.SortedFunc(slices.Values(prefixes), func(a, b Key) int { return bytes.Compare(a, b) }) {
		if n := len(left); n == 0 || !bytes.HasPrefix(p, left[n-1]) {
			left = append(left, p)
		}
	}
	return left
}

// covers reports whether a key has one of the prefixes.
func covers(prefixes []Key, key Key) bool {
	return slices.ContainsFunc(prefixes, func(p Key) bool { return bytes.HasPrefix(key, p) })
}

func (p *part) Next() bool {
	if !p.started {
		p.SeekGE(p.prefixes[0])
		p.started = true
	}
	for p.rightSides.Next() {
		key := p.Item().Key
		for bytes.Compare(p.prefixes[p.at], key) < 0 && !bytes.HasPrefix(key, p.prefixes[p.at]) {
			if p.at++; p.at == len(p.prefixes) {
				p.at--
				return false
			}
		}
		if bytes.HasPrefix(key, p.prefixes[p.at]) {
			return true
		}
		p.SeekGE(p.prefixes[p.at])
	}
	return false
}
