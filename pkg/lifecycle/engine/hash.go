// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// Hash is a SHA-256; the zero Hash stands for nothing at all.
type Hash [sha256.Size]byte

// IsZero reports whether h stands for nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns h in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ReplayContentHash covers the enabled actions of the kinds that have a delay, and the versioning state of their repositories. It
// does not depend on the order of rules, on the IDs of rules or on how long the log is kept; it changes when such a rule is
// edited, disabled or enabled. It is zero where there is none.
func (s *Snapshot) ReplayContentHash() Hash {
	return s.hash("moraine lifecycle replay content 1", func(a *CompiledAction) bool { return a.Kind.Replay() })
}

// PromotedHash covers those of them that are found by walking because the log is kept for retention only. It changes when one
// crosses over in either direction. It is zero where there is none.
func (s *Snapshot) PromotedHash(retention time.Duration) Hash {
	return s.hash("moraine lifecycle promoted 1", func(a *CompiledAction) bool { return s.promoted(a, retention) })
}

// hash covers the enabled actions that are wanted, sorted by rule hash, kind and repository.
func (s *Snapshot) hash(tag string, wanted func(*CompiledAction) bool) Hash {
	var actions []*CompiledAction
	for _, id := range s.Repositories() {
		for _, a := range s.actions[id] {
			if a.Active && wanted(a) {
				actions = append(actions, a)
			}
		}
	}
	if len(actions) == 0 {
		return Hash{}
	}
	slices.SortFunc(actions, func(a, b *CompiledAction) int {
		return cmp.Or(bytes.Compare(a.RuleHash[:], b.RuleHash[:]), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Repository, b.Repository))
	})
	h := newHash(tag)
	h.number(int64(len(actions)))
	for _, a := range actions {
		h.text(string(a.RuleHash[:]))
		h.number(int64(a.Kind))
		h.text(string(a.Repository))
		h.text(string(a.Versioning))
	}
	return h.sum()
}

// ruleHash covers the filter of a's rule and what makes a due. An empty prefix is none, and the order of tags means nothing.
func ruleHash(a *lifecycle.Action) Hash {
	f := &a.Rule.Filter
	h := newHash("moraine lifecycle rule 1")
	if f.Prefix != nil {
		h.text(*f.Prefix)
	} else {
		h.text("")
	}
	tags := slices.SortedFunc(slices.Values(f.Tags), func(a, b lifecycle.Tag) int { return strings.Compare(a.Key, b.Key) })
	h.number(int64(len(tags)))
	for _, t := range tags {
		h.text(t.Key)
		h.text(t.Value)
	}
	h.optional(f.SizeGreaterThan)
	h.optional(f.SizeLessThan)
	h.number(int64(a.Kind))
	h.number(int64(a.Delay))
	h.number(a.Date.Unix())
	h.number(int64(a.NewerNoncurrent))
	return h.sum()
}

// fieldHash hashes fields so that no two different sequences of them are the same bytes: numbers are 8 bytes big-endian, texts
// are preceded by their length, what may be absent by a number that says whether it is there.
type fieldHash struct{ hash.Hash }

func newHash(tag string) fieldHash {
	h := fieldHash{sha256.New()}
	h.text(tag)
	return h
}

func (h fieldHash) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}

func (h fieldHash) text(s string) {
	h.number(int64(len(s)))
	h.Write([]byte(s))
}

func (h fieldHash) optional(n *int64) {
	if n == nil {
		h.number(0)
		return
	}
	h.number(1)
	h.number(*n)
}

func (h fieldHash) sum() Hash { return Hash(h.Sum(nil)) }
