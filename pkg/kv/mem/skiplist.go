// SPDX-License-Identifier: Apache-2.0

package mem

import (
	"bytes"
	"math/rand/v2"
)

// skipList is an ordered map from key to value, after W. Pugh, "Skip lists: a probabilistic
// alternative to balanced trees" (1990): a linked list in which one node in four also takes part in a
// sparser list above, and so on, so that a search starts with long strides. It is not safe for
// concurrent use by itself.
type skipList struct {
	head *node // before the first key; of full height
}

const (
	maxHeight  = 16 // enough for 4^16 keys
	heightBits = 2  // one in 2^heightBits nodes of a level is in the level above
)

type node struct {
	key   string
	value []byte  // never modified, only replaced
	next  []*node // by level
}

func newSkipList() *skipList {
	return &skipList{head: &node{next: make([]*node, maxHeight)}}
}

// before returns, for each level, the last node whose key is less than key.
func (l *skipList) before(key []byte) (prev [maxHeight]*node) {
	n := l.head
	for level := maxHeight - 1; level >= 0; level-- {
		for n.next[level] != nil && n.next[level].key < string(key) {
			n = n.next[level]
		}
		prev[level] = n
	}
	return prev
}

// seek returns the first node whose key is not less than key, or nil.
func (l *skipList) seek(key []byte) *node {
	return l.before(key)[0].next[0]
}

func (l *skipList) set(key, value []byte) {
	prev := l.before(key)
	if n := prev[0].next[0]; n != nil && n.key == string(key) {
		n.value = bytes.Clone(value)
		return
	}
	n := &node{key: string(key), value: bytes.Clone(value), next: make([]*node, randomHeight())}
	for level := range n.next {
		n.next[level] = prev[level].next[level]
		prev[level].next[level] = n
	}
}

func (l *skipList) delete(key []byte) {
	prev := l.before(key)
	n := prev[0].next[0]
	if n == nil || n.key != string(key) {
		return
	}
	for level := range n.next {
		prev[level].next[level] = n.next[level]
	}
}

func randomHeight() int {
	height := 1
	for bits := rand.Uint64(); height < maxHeight && bits&(1<<heightBits-1) == 0; bits >>= heightBits {
		height++
	}
	return height
}
