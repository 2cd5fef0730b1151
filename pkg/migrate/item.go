// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"encoding/binary"
	"strconv"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// kind is a kind of item. Items of a repository come by kind, except that the branches come one after another, each with its log
// and what is staged on it.
type kind int

const (
	settingItem kind = iota
	tagItem
	commitItem
	branchItem
	moveItem
	entryItem
	kinds
)

func (k kind) String() string {
	return [...]string{"settings", "tags", "commits", "branches", "moves", "staged entries"}[k]
}

// item is one thing that a repository has.
type item struct {
	kind   kind
	branch string // of branches, moves and entries
	key    string // of entries; the ID of a commit, the name of a setting or a tag; the time of a move, as 8 bytes
	// What it is, by its kind:
	document []byte // of a setting
	commit   *graveler.Commit
	digest   string            // of the commit
	head     graveler.CommitID // of a tag or a branch
	move     graveler.Move     // of a branch its last one
	value    *graveler.Value
	hidden   bool // a branch that listings leave out
	// What the record of a branch says of the settings of its repository.
	protected graveler.Actions
	readOnly  bool
	// extra is what a branch has that no migrated one has: sealed items or a base.
	extra int
}

// row names the row that an item comes from, for people.
func (i *item) row(rows rowReader) (table, branch, key string) {
	if i.kind == moveItem { // which no table has: it leads to a commit
		return rows.table(moveItem), i.branch, string(i.move.New)
	}
	return rows.table(i.kind), i.branch, i.key
}

// compare orders items as they come.
func (i *item) compare(o *item) int {
	group := func(k kind) kind { return min(k, branchItem) }
	return cmp.Or(
		cmp.Compare(group(i.kind), group(o.kind)),
		cmp.Compare(i.branch, o.branch),
		cmp.Compare(i.kind, o.kind),
		cmp.Compare(i.key, o.key),
	)
}

// append adds all that the item says to b, so that two items are the same if and only if that is.
func (i *item) append(b []byte) []byte {
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = append(b, byte(i.kind))
	text(i.branch)
	text(i.key)
	switch i.kind {
	case settingItem:
		text(string(i.document))
	case commitItem:
		text(i.digest)
		text(i.commit.Nonce)
	case tagItem:
		text(string(i.head))
	case branchItem:
		text(string(i.head))
		b = appendMove(b, i.move)
		b = binary.AppendUvarint(b, uint64(i.extra))
		b = binary.AppendUvarint(b, uint64(i.protected))
		for _, is := range []bool{i.hidden, i.readOnly} {
			b = strconv.AppendBool(b, is)
		}
	case moveItem:
		b = appendMove(b, i.move)
	case entryItem:
		if i.value == nil {
			return append(b, 0)
		}
		b = append(b, 1)
		b = binary.AppendUvarint(b, uint64(len(i.value.Identity)))
		b = append(b, i.value.Identity...)
		b = binary.AppendUvarint(b, uint64(len(i.value.Data)))
		b = append(b, i.value.Data...)
	}
	return b
}

func appendMove(b []byte, m graveler.Move) []byte {
	for _, n := range []int64{m.Time, m.Previous, int64(m.Op), int64(m.CommittedThrough)} {
		b = binary.AppendVarint(b, n)
	}
	for _, s := range []string{string(m.Old), string(m.New), m.Actor} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

func timeKey(t int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(t))) }
