// SPDX-License-Identifier: Apache-2.0

package router

import (
	"bytes"
	"fmt"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
)

// Router is an index of actions of one repository. It never changes, and is safe for concurrent use.
type Router struct {
	indexes [lifecycle.Upload + 1]index // by the kind of object; none for 0
}

// New returns the router of some actions of one repository, such as those of a lane. Its time is that of sorting their prefixes.
func New(actions []*engine.CompiledAction) *Router {
	r := &Router{}
	for kind := lifecycle.Current; kind <= lifecycle.Upload; kind++ {
		r.indexes[kind] = newIndex(actions, kind)
	}
	return r
}

// Match is what an entry matches. One may be used for many entries, one after the other.
type Match struct {
	Object lifecycle.Object
	// Actions accept the object, its siblings not considered. Those with a longer prefix come first, and of one prefix they are in the order of New.
	Actions []*engine.CompiledAction
}

// Match fills in m with the actions that accept the object which an entry holds, and reports whether there are any; where there
// are none, m is of no use. The value is decoded only where an action is about objects of that kind and the logical key begins
// with its prefix; nothing is allocated otherwise. An entry that is looked at and holds no object is an error.
func (r *Router) Match(key graveler.Key, value graveler.Value, m *Match) (bool, error) {
	kind, rest := classify(key)
	x := &r.indexes[kind]
	node := x.find(rest)
	if node < 0 {
		return false, nil
	}
	place, err := catalog.ParseKey(key)
	if err != nil {
		return false, fmt.Errorf("match lifecycle rules: %w", err)
	}
	if m.Object, err = lifecycle.NewObject(place, value, x.nodes[node].actions[0].Versioning); err != nil {
		return false, fmt.Errorf("match lifecycle rules: %w", err)
	}
	m.Actions = m.Actions[:0]
	for ; node >= 0; node = x.nodes[node].parent {
		for _, a := range x.nodes[node].actions {
			if a.Accepts(&m.Object) {
				m.Actions = append(m.Actions, a)
			}
		}
	}
	return len(m.Actions) > 0, nil
}

// classify tells from the key of an entry what kind of object it holds, 0 for none, and returns the part of the key that begins
// with the logical key. It is catalog.ParseKey without allocations: in a reserved key the logical key is escaped, which makes no
// difference to the prefix of a rule, since that has no zero byte. What it says of a key that no bucket has is of no account.
func classify(key graveler.Key) (lifecycle.ObjectKind, []byte) {
	switch {
	case len(key) == 0 || key[0] != 0:
		return lifecycle.Current, key
	case bytes.HasPrefix(key, versions) && bytes.HasSuffix(key, marker):
		return lifecycle.Marker, key[len(versions):]
	case bytes.HasPrefix(key, versions):
		return lifecycle.Noncurrent, key[len(versions):]
	case bytes.HasPrefix(key, uploads):
		return lifecycle.Upload, key[len(uploads):]
	default:
		return 0, nil
	}
}

var (
	versions = []byte("\x00v")
	marker   = []byte("\x00\x01c")
	uploads  = []byte("\x00u")
)
