// SPDX-License-Identifier: Apache-2.0

package lakegen

import (
	"fmt"
	"hash/fnv"

	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// TreeWriter writes a tree: a range ends behind a key whose hash the raggedness divides. Add and Reuse are called in ascending order.
type TreeWriter struct {
	raggedness uint64
	put        func(id string, data []byte) error
	open       []lakefs.Record // of the range that has not ended
	ranges     []lakefs.Range
}

// NewTreeWriter gives each file to put, together with its ID. A range has about so many records as the raggedness says.
func NewTreeWriter(raggedness int, put func(id string, data []byte) error) *TreeWriter {
	return &TreeWriter{raggedness: uint64(raggedness), put: put}
}

// Add adds a record, which must not be changed until its range is written.
func (w *TreeWriter) Add(r lakefs.Record) error {
	w.open = append(w.open, r)
	if !Ends(r.Key, int(w.raggedness)) {
		return nil
	}
	return w.endRange()
}

// Ends reports whether a range ends behind a key.
func Ends(key []byte, raggedness int) bool {
	h := fnv.New64a()
	h.Write(key)
	return h.Sum64()%uint64(raggedness) == 0
}

// Reuse adds a range that is written already.
func (w *TreeWriter) Reuse(r lakefs.Range) error {
	err := w.endRange()
	w.ranges = append(w.ranges, r)
	return err
}

func (w *TreeWriter) endRange() error {
	n := len(w.open)
	if n == 0 {
		return nil
	}
	id, data, err := RangeFile(w.open)
	if err == nil {
		err = w.put(id, data)
	}
	if err != nil {
		return fmt.Errorf("write range: %w", err)
	}
	w.ranges = append(w.ranges, lakefs.Range{ID: id, First: w.open[0].Key, Last: w.open[n-1].Key, Count: int64(n)})
	w.open = nil
	return nil
}

// Finish writes the metarange, also one of no ranges, and returns its ID and ranges.
func (w *TreeWriter) Finish() (id string, ranges []lakefs.Range, err error) {
	if err := w.endRange(); err != nil {
		return "", nil, err
	}
	records := make([]lakefs.Record, len(w.ranges))
	for i, r := range w.ranges {
		data := marshal(&lakefspb.RangeData{First: r.First, Last: r.Last, EstimatedSize: uint64(r.Count) * 100, Count: r.Count})
		records[i] = lakefs.Record{Key: r.Last, Identity: []byte(r.ID), Data: data}
	}
	id, data, err := MetarangeFile(records)
	if err == nil {
		err = w.put(id, data)
	}
	return id, w.ranges, err
}
