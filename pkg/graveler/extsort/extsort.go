// SPDX-License-Identifier: Apache-2.0

// Package extsort sorts more records than fit into memory.
//
// A [Sorter] takes records, which have a key and a value, in any order. What does not fit into its memory is sorted in parts
// (buffer.go) and written to a temporary file as runs (spill.go), which are merged when all records are there (merge.go): the
// external merge sort of Knuth, The Art of Computer Programming, volume 3, section 5.4. Records that come in order already make
// one long run, so that sorting them costs no more than writing and reading them once; few records never leave memory.
//
// What it promises: the records come back by strictly ascending key, and of those with equal keys only the one that was added
// last. Memory does not depend on how many there are. What is read from the file is what was written to it, or there is an error.
// The file can be read by its owner alone, and is gone after Close; where the system lets an open file go without a name, it has
// none as soon as it is made, so that no data stay behind a process that is killed.
package extsort

import (
	"context"
	"errors"
)

// DefaultMemory is what a Sorter holds in memory where Config does not say.
const DefaultMemory = 64 << 20

// Config says how to sort. The zero value will do.
type Config struct {
	// Memory bounds the records that are held in memory before they go to the file, in bytes: half of it for those that are added
	// while the other half is written. Merging takes some megabytes, but not at the same time. 0: DefaultMemory.
	Memory int
	// Dir is the directory of the temporary file; "": that of os.TempDir.
	Dir string
}

// Sorter sorts records. It belongs to one goroutine, has one of its own while it writes, and must be closed.
type Sorter struct {
	config  Config
	newFile func() (file, error)
	buffer  buffer
	spilled *spill // nil: all records are in the buffer
	sorted  bool

	writing chan error // gets the outcome of what is written to spilled; nil: nothing is
	full    buffer     // what is being written, or memory to be used again
}

// New returns a sorter without records.
func New(c Config) *Sorter {
	if c.Memory <= 0 {
		c.Memory = DefaultMemory
	}
	return &Sorter{config: c, newFile: func() (file, error) { return createTemp(c.Dir) }}
}

// Add adds a record, of which it keeps copies. After an error the sorter can only be closed.
func (s *Sorter) Add(key, value []byte) error {
	if s.sorted {
		return errors.New("a record was added after sorting")
	}
	if s.buffer.size+recordSize(key, value) > s.config.Memory/2 && len(s.buffer.items) > 0 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.buffer.add(key, value)
	return nil
}

// flush has the buffer written to the file while records are added to another one.
func (s *Sorter) flush() error {
	if err := s.written(); err != nil {
		return err
	}
	if s.spilled == nil {
		f, err := s.newFile()
		if err != nil {
			return err
		}
		s.spilled = &spill{file: f}
	}
	s.buffer, s.full = s.full, s.buffer
	done := make(chan error, 1)
	s.writing = done
	go func() { done <- s.spilled.add(&s.full) }()
	return nil
}

// written waits for what is being written.
func (s *Sorter) written() error {
	if s.writing == nil {
		return nil
	}
	err := <-s.writing
	s.writing = nil
	return err
}

// Sort ends the adding and returns the records in order. It merges runs until few are left, which may take long: it ends with an
// error when ctx does. Called again, it returns them once more, from the first.
func (s *Sorter) Sort(ctx context.Context) (*Iterator, error) {
	s.sorted = true
	if s.spilled == nil {
		return merge([]source{s.buffer.sort()})
	}
	if len(s.buffer.items) > 0 {
		if err := s.flush(); err != nil {
			return nil, err
		}
	}
	if err := s.written(); err != nil {
		return nil, err
	}
	s.buffer, s.full = buffer{}, buffer{}
	for len(s.spilled.runs) > fanIn {
		if err := s.mergePass(ctx); err != nil {
			return nil, err
		}
	}
	return merge(s.spilled.sources(s.spilled.runs))
}

// mergePass merges neighbouring runs, so that each one is still older than the next.
func (s *Sorter) mergePass(ctx context.Context) (err error) {
	f, err := s.newFile()
	if err != nil {
		return err
	}
	merged := &spill{file: f}
	for runs := s.spilled.runs; len(runs) > 0 && err == nil; {
		group := runs[:min(fanIn, len(runs))]
		runs = runs[len(group):]
		var in *Iterator
		if in, err = merge(s.spilled.sources(group)); err == nil {
			merged.begin()
			err = merged.write(whileAlive{ctx, in})
		}
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	err = s.spilled.file.Close()
	s.spilled = merged
	return err
}

// Close removes the file. It may be repeated; what Sort returned must not be used any more.
func (s *Sorter) Close() error {
	err := s.written()
	s.sorted, s.buffer, s.full = true, buffer{}, buffer{}
	if s.spilled == nil {
		return err
	}
	f := s.spilled.file
	s.spilled = nil
	return errors.Join(err, f.Close())
}

// whileAlive is a source that ends with its context.
type whileAlive struct {
	ctx context.Context
	source
}

func (w whileAlive) next() (key, value []byte, err error) {
	if err := w.ctx.Err(); err != nil {
		return nil, nil, err
	}
	return w.source.next()
}
