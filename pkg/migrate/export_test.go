// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"iter"
	"time"
)

// CheckpointEvery makes checkpoints frequent, so that small data have some.
func (m *Migration) CheckpointEvery(items uint64) { m.checkpoint = items }

// CheckpointAfter makes a checkpoint when so much time has passed.
func (m *Migration) CheckpointAfter(d time.Duration) { m.checkpointWait = d }

// OurPatterns is ourPatterns.
func OurPatterns(pattern string) ([]string, bool) { return ourPatterns(pattern) }

// Ahead is ahead of items with these keys.
func Ahead(keys iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		items := func(yield func(*item, error) bool) {
			for k, err := range keys {
				if !yield(&item{key: k}, err) {
					return
				}
			}
		}
		for i, err := range ahead(items) {
			key := ""
			if err == nil {
				key = i.key
			}
			if !yield(key, err) {
				return
			}
		}
	}
}
