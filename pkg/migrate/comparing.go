// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// comparing goes through the items of two sides.
type comparing struct {
	result VerifiedRepository
	sums   [kinds][2]hash.Hash
	counts [kinds][2]int64
	buf    [2][]byte
}

func (c *comparing) run(source, target iter.Seq2[*item, error], advance func(int64)) error {
	for k := range c.sums {
		c.sums[k] = [2]hash.Hash{sha256.New(), sha256.New()}
	}
	left, stopLeft := iter.Pull2(source)
	defer stopLeft()
	right, stopRight := iter.Pull2(target)
	defer stopRight()
	a, err, more := left()
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	b, err, also := right()
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	for rows := int64(1); more || also; rows++ {
		order := 0
		switch {
		case !also:
			order = -1
		case !more:
			order = 1
		default:
			order = a.compare(b)
		}
		if order <= 0 {
			c.note(a, 0)
		}
		if order >= 0 {
			c.note(b, 1)
		}
		switch {
		case order < 0:
			c.differ(a, "it is not in the target")
		case order > 0:
			c.differ(b, "it is only in the target")
		case string(c.buf[0]) != string(c.buf[1]):
			c.differ(a, unlike(a, b))
		}
		if order <= 0 {
			if a, err, more = left(); err != nil {
				return fmt.Errorf("source: %w", err)
			}
		}
		if order >= 0 {
			if b, err, also = right(); err != nil {
				return fmt.Errorf("target: %w", err)
			}
		}
		if rows%reportRows == 0 {
			advance(reportRows)
		}
	}
	for k := range kinds {
		sum := func(side int) string { return hex.EncodeToString(c.sums[k][side].Sum(nil)) }
		c.result.Kinds = append(c.result.Kinds, VerifiedKind{k.String(), c.counts[k][0], c.counts[k][1], sum(0), sum(1)})
	}
	return nil
}

// note adds an item to what is known of a side.
func (c *comparing) note(i *item, side int) {
	c.buf[side] = i.append(c.buf[side][:0])
	c.sums[i.kind][side].Write(c.buf[side])
	c.counts[i.kind][side]++
}

func (c *comparing) differ(i *item, what string) {
	d := Difference{What: what}
	if i != nil {
		d.Kind, d.Key = i.kind.String(), i.name()
	}
	c.add(d)
}

func (c *comparing) add(d Difference) {
	d.Repository = c.result.Repository
	if c.result.Differences++; len(c.result.First) < shownDifferences {
		c.result.First = append(c.result.First, d)
	}
}

// name is what people call an item.
func (i *item) name() string {
	switch i.kind {
	case branchItem:
		return i.branch
	case moveItem:
		return i.branch + " at " + strconv.FormatInt(i.move.Time, 10)
	case entryItem:
		return i.branch + ":" + i.key
	default:
		return i.key
	}
}

// changedFields names the fields of a commit that differ.
func changedFields(a, b *graveler.Commit) (names []string) {
	for _, f := range []struct {
		name string
		same bool
	}{
		{"version", a.Version == b.Version},
		{"committer", a.Committer == b.Committer},
		{"message", a.Message == b.Message},
		{"creation date", a.CreatedAt.Equal(b.CreatedAt)},
		{"metadata", maps.Equal(a.Metadata, b.Metadata)},
		{"parents", slices.Equal(a.Parents, b.Parents)},
		{"tree", a.Tree == b.Tree},
		{"generation", a.Generation == b.Generation},
		{"log time", a.LogTime == b.LogTime},
	} {
		if !f.same {
			names = append(names, f.name)
		}
	}
	return names
}

// unlike says in what two items of one name differ.
func unlike(a, b *item) string {
	switch {
	case a.kind == commitItem && a.digest == b.digest:
		return "the digest that was taken of it is another in the target"
	case a.kind == commitItem:
		if names := changedFields(a.commit, b.commit); len(names) > 0 {
			return "its fields differ: " + strings.Join(names, ", ")
		}
		return "its digest differs"
	case a.kind == entryItem && (a.value == nil) != (b.value == nil):
		return "it is a deletion on one side only"
	case a.kind == entryItem && string(a.value.Identity) == string(b.value.Identity):
		return "its data differs"
	case a.kind == entryItem:
		return "its identity differs"
	case a.kind == settingItem:
		return "its document differs"
	case a.hidden != b.hidden:
		return fmt.Sprintf("it is hidden: %t, in the target %t", a.hidden, b.hidden)
	case a.protected != b.protected || a.readOnly != b.readOnly:
		return "its record forbids other things than the settings of its repository say"
	case a.head != b.head:
		return fmt.Sprintf("it is on commit %s, in the target on %s", a.head, b.head)
	case a.extra != b.extra:
		return "the target has more uncommitted changes, in items that were sealed since"
	default:
		return "its moves differ"
	}
}
