// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"fmt"
	"iter"
)

// DiffCount says how many entries below a prefix were added, removed and changed.
type DiffCount struct {
	Prefix                  Key
	Added, Removed, Changed int64
}

func (c *DiffCount) add(d Diff) {
	switch {
	case d.Left == nil:
		c.Added++
	case d.Right == nil:
		c.Removed++
	default:
		c.Changed++
	}
}

func (c *DiffCount) empty() bool { return c.Added+c.Removed+c.Changed == 0 }

// CountDiffs counts differences, as Diff, Compare, DiffUncommitted and MergeChanges yield them with prefix in their options: all
// whose keys agree up to the first delimiter after the prefix are one count. The counts come by prefix, each as soon as the
// differences of the next begin. Those of the keys without delimiter follow at the end, as the count of prefix itself. What
// differs nowhere has no count.
//
// A delimiter is required, and a key that does not start with prefix is ErrInvalidValue. It holds two counts in memory. After an
// error of diffs it yields that error, and no count that it cut short.
func CountDiffs(diffs iter.Seq2[Diff, error], prefix Key, delimiter string) iter.Seq2[DiffCount, error] {
	return sequence(func(emit func(DiffCount) bool) error {
		if delimiter == "" {
			return fmt.Errorf("count differences: %w: the delimiter must not be empty", ErrInvalidValue)
		}
		direct := DiffCount{Prefix: bytes.Clone(prefix)}
		var current DiffCount
		for d, err := range diffs {
			if err != nil {
				return err
			}
			rest, ok := bytes.CutPrefix(d.Key, prefix)
			if !ok {
				return fmt.Errorf("count differences: %w: key %s does not start with %s", ErrInvalidValue, printable(d.Key), printable(prefix))
			}
			i := bytes.Index(rest, []byte(delimiter))
			if i < 0 {
				direct.add(d)
				continue
			}
			if group := d.Key[:len(prefix)+i+len(delimiter)]; !bytes.Equal(group, current.Prefix) {
				if !current.empty() && !emit(current) {
					return nil
				}
				current = DiffCount{Prefix: bytes.Clone(group)}
			}
			current.add(d)
		}
		if current.empty() || emit(current) {
			if !direct.empty() {
				emit(direct)
			}
		}
		return nil
	})
}
