// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler/extsort"
)

// importSort checks the entries of an import and brings them in order. All go through the sorter, those that come in order too:
// whatever the stream holds or does, no file of a tree is written before it has ended well, and one that is slow does not make
// such files old before anything refers to them.
type importSort struct {
	sorter   *extsort.Sorter
	replaced []Key  // as in importing
	record   []byte // memory for a value in the form of the sorter
}

func newImportSort(p ImportParams, replaced []Key) *importSort {
	return &importSort{sorter: extsort.New(extsort.Config{Memory: p.SortMemory, Dir: p.TempDir}), replaced: replaced}
}

// Close removes the temporary file.
func (s *importSort) Close() error { return s.sorter.Close() }

// read takes all entries.
func (s *importSort) read(ctx context.Context, entries iter.Seq2[Entry, error]) error {
	n := 0
	for e, err := range entries {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		n++
		if err := s.check(e); err != nil {
			return fmt.Errorf("entry %d, %s: %w", n, printable(e.Key), err)
		}
		s.record = binary.AppendUvarint(s.record[:0], uint64(len(e.Value.Identity)))
		s.record = append(append(s.record, e.Value.Identity...), e.Value.Data...)
		if err := s.sorter.Add(e.Key, s.record); err != nil {
			return fmt.Errorf("sort entries: %w", err)
		}
	}
	return ctx.Err()
}

func (s *importSort) check(e Entry) error {
	if err := ValidateKey(e.Key); err != nil {
		return err
	}
	if _, covered := covering(s.replaced, e.Key); len(s.replaced) > 0 && !covered {
		return fmt.Errorf("%w: the key has none of the prefixes that are replaced", ErrInvalidName)
	}
	return ValidateValue(e.Value)
}

// sorted returns the entries by key, the last of each. They may be asked for again.
func (s *importSort) sorted(ctx context.Context) (*sortedEntries, error) {
	it, err := s.sorter.Sort(ctx)
	if err != nil {
		return nil, fmt.Errorf("sort entries: %w", err)
	}
	return &sortedEntries{it: it}, nil
}

// sortedEntries is one reading of sorted entries.
type sortedEntries struct {
	it    *extsort.Iterator
	value Value
	err   error
}

func (s *sortedEntries) Next() bool {
	if s.err != nil || !s.it.Next() {
		return false
	}
	record := s.it.Value()
	identity, n := binary.Uvarint(record)
	s.value = Value{Identity: record[n : n+int(identity)], Data: record[n+int(identity):]}
	return true
}

func (s *sortedEntries) Item() Entry { return Entry{Key: s.it.Key(), Value: &s.value} }

// SeekGE makes the iteration an error: nobody seeks among changes.
func (s *sortedEntries) SeekGE(Key) { s.err = errors.New("sorted entries are read in order") }

func (s *sortedEntries) Err() error {
	if s.err != nil {
		return s.err
	}
	return s.it.Err()
}

func (s *sortedEntries) Close() error { return s.Err() }
