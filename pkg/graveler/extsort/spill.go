// SPDX-License-Identifier: Apache-2.0

package extsort

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"
)

// ErrDamaged: what was read from the temporary file is not what was written to it.
var ErrDamaged = errors.New("temporary file is damaged")

const (
	// blockBytes is the size from which a block is written. One record more may make it larger.
	blockBytes = 64 << 10
	// headerBytes is the size of what stands before a block in the file: its length there, and the xxhash64 of what is there, little-endian.
	headerBytes = 4 + 8
)

// file is what a spill asks of its file. Close removes it too.
type file interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// tempFile is a file that is removed when it is closed, unless its name is gone already.
type tempFile struct {
	*os.File
	named bool
}

// createTemp makes a file for its owner alone. Its name goes at once, on systems where an open file can do without.
func createTemp(dir string) (file, error) {
	f, err := os.CreateTemp(dir, "moraine-sort-*")
	if err != nil {
		return nil, err
	}
	return tempFile{f, os.Remove(f.Name()) != nil}, nil
}

func (f tempFile) Close() error {
	err := f.File.Close()
	if f.named {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// spill is a file of runs, one behind the other. A run is a sequence of blocks, compressed with s2, of records: the lengths of
// key and value as uvarints, key, value.
type spill struct {
	file   file
	end    int64
	runs   []*run
	block  []byte
	packed []byte
}

// run is a part of the file in which keys ascend strictly.
type run struct {
	start, end int64
	last       []byte // key
}

// last returns the last key of the last run, nil where there is no run.
func (s *spill) last() []byte {
	if len(s.runs) == 0 {
		return nil
	}
	return s.runs[len(s.runs)-1].last
}

// begin begins a run.
func (s *spill) begin() { s.runs = append(s.runs, &run{start: s.end, end: s.end}) }

// add moves a buffer to the file: as a new run, or at the end of the last one where all its keys are greater.
func (s *spill) add(b *buffer) error {
	in := b.sort()
	if last := s.last(); last == nil || bytes.Compare(last, in.first()) >= 0 {
		s.begin()
	}
	err := s.write(in)
	b.reset()
	return err
}

// write puts records at the end of the last run.
func (s *spill) write(in source) error {
	r := s.runs[len(s.runs)-1]
	for {
		key, value, err := in.next()
		if err == io.EOF {
			return s.writeBlock(r)
		}
		if err != nil {
			return err
		}
		s.block = binary.AppendUvarint(s.block, uint64(len(key)))
		s.block = binary.AppendUvarint(s.block, uint64(len(value)))
		s.block = append(append(s.block, key...), value...)
		r.last = append(r.last[:0], key...)
		if len(s.block) >= blockBytes {
			if err := s.writeBlock(r); err != nil {
				return err
			}
		}
	}
}

func (s *spill) writeBlock(r *run) error {
	if len(s.block) == 0 {
		return nil
	}
	if need := headerBytes + s2.MaxEncodedLen(len(s.block)); cap(s.packed) < need {
		s.packed = make([]byte, need)
	}
	s.packed = s.packed[:cap(s.packed)]
	packed := s2.Encode(s.packed[headerBytes:], s.block)
	binary.LittleEndian.PutUint32(s.packed, uint32(len(packed)))
	binary.LittleEndian.PutUint64(s.packed[4:], xxhash.Sum64(packed))
	n, err := s.file.Write(s.packed[:headerBytes+len(packed)])
	if err != nil {
		return err
	}
	s.block = s.block[:0]
	s.end += int64(n)
	r.end = s.end
	return nil
}

// sources returns runs, for reading.
func (s *spill) sources(runs []*run) (sources []source) {
	for _, r := range runs {
		sources = append(sources, &runReader{file: s.file, at: r.start, end: r.end})
	}
	return sources
}

// runReader reads a run.
type runReader struct {
	file    io.ReaderAt
	at, end int64 // of what was not read yet
	packed  []byte
	block   []byte
	rest    []byte // of block
}

func (r *runReader) next() (key, value []byte, err error) {
	if len(r.rest) == 0 {
		if r.at == r.end {
			return nil, nil, io.EOF
		}
		if err := r.readBlock(); err != nil {
			return nil, nil, fmt.Errorf("read sorted records: %w", err)
		}
	}
	k, n := binary.Uvarint(r.rest)
	v, m := binary.Uvarint(r.rest[max(n, 0):])
	head := uint64(n + m)
	if n <= 0 || m <= 0 || k > uint64(len(r.rest)) || v > uint64(len(r.rest)) || head+k+v > uint64(len(r.rest)) {
		return nil, nil, fmt.Errorf("read sorted records: %w: a record reaches beyond its block", ErrDamaged)
	}
	record := r.rest[head : head+k+v]
	r.rest = r.rest[head+k+v:]
	return record[:k], record[k:], nil
}

// readBlock reads the next block and checks it. A file that has become shorter is damaged too.
func (r *runReader) readBlock() error {
	var header [headerBytes]byte
	if err := r.read(header[:]); err != nil {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(header[:]))
	if length > r.end-r.at {
		return fmt.Errorf("%w: a block of %d bytes where %d are left", ErrDamaged, length, r.end-r.at)
	}
	if int64(cap(r.packed)) < length {
		r.packed = make([]byte, length)
	}
	packed := r.packed[:length]
	if err := r.read(packed); err != nil {
		return err
	}
	if xxhash.Sum64(packed) != binary.LittleEndian.Uint64(header[4:]) {
		return fmt.Errorf("%w: checksum of a block", ErrDamaged)
	}
	block, err := s2.Decode(r.block[:cap(r.block)], packed)
	if err != nil || len(block) == 0 {
		return errors.Join(ErrDamaged, err)
	}
	r.block, r.rest = block, block
	return nil
}

func (r *runReader) read(p []byte) error {
	n, err := r.file.ReadAt(p, r.at)
	r.at += int64(n)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it is shorter than it was", ErrDamaged)
	}
	return err
}
