// SPDX-License-Identifier: Apache-2.0

package walker

import (
	"slices"
	"sort"
	"strings"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
)

// Prefixes is a set of prefixes of logical keys.
type Prefixes struct{ sorted []string } // none begins with another

// PrefixesOf returns the prefixes of the keys that actions are about.
func PrefixesOf(actions ...[]*engine.CompiledAction) Prefixes {
	var all []string
	for _, a := range slices.Concat(actions...) {
		prefix := ""
		if p := a.Rule.Filter.Prefix; p != nil {
			prefix = *p
		}
		all = append(all, prefix)
	}
	slices.Sort(all)
	var p Prefixes
	for _, prefix := range all {
		if n := len(p.sorted); n == 0 || !strings.HasPrefix(prefix, p.sorted[n-1]) {
			p.sorted = append(p.sorted, prefix)
		}
	}
	return p
}

// Cover reports whether the logical key of an entry begins with one of the prefixes. It costs a binary search and no memory.
// Rules name no zero bytes, so that it does not matter that these are escaped.
func (p Prefixes) Cover(entry graveler.Key) bool {
	key := catalog.LogicalPart(entry)
	return key != nil && p.CoverKey(string(key))
}

// CoverKey is Cover for a logical key.
func (p Prefixes) CoverKey(key string) bool {
	n := sort.Search(len(p.sorted), func(i int) bool { return p.sorted[i] > key })
	return n > 0 && strings.HasPrefix(key, p.sorted[n-1])
}
