// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// spool keeps lines that cannot be written yet, in a temporary file that exists once there are any.
type spool struct {
	file  *os.File
	w     *bufio.Writer
	lines int64
}

func (s *spool) add(line []byte) error {
	if s.file == nil {
		f, err := os.CreateTemp("", "moraine-dump-*")
		if err != nil {
			return err
		}
		s.file, s.w = f, bufio.NewWriter(f)
	}
	s.lines++
	_, err := s.w.Write(line)
	return err
}

// reset forgets all lines.
func (s *spool) reset() error {
	s.lines = 0
	if s.file == nil {
		return nil
	}
	s.w.Reset(s.file)
	_, err := s.file.Seek(0, io.SeekStart)
	return errors.Join(err, s.file.Truncate(0))
}

// each yields the lines, with their ends. They are valid until the next step.
func (s *spool) each() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if s.lines == 0 {
			return
		}
		err := s.w.Flush()
		if err == nil {
			_, err = s.file.Seek(0, io.SeekStart)
		}
		lines := newScanner(s.file)
		for err == nil && lines.Scan() {
			if !yield(lines.Bytes(), nil) {
				return
			}
		}
		if err = errors.Join(err, lines.Err()); err != nil {
			yield(nil, fmt.Errorf("temporary file: %w", err))
		}
	}
}

func (s *spool) addID(id graveler.CommitID) error { return s.add([]byte(id + "\n")) }

// ids yields what addID added.
func (s *spool) ids() iter.Seq2[graveler.CommitID, error] {
	return func(yield func(graveler.CommitID, error) bool) {
		for line, err := range s.each() {
			if !yield(graveler.CommitID(bytes.TrimSuffix(line, []byte("\n"))), err) {
				return
			}
		}
	}
}

// close removes the file.
func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
