// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// maxLine is the longest line in bytes, its end included. An object at its limits fits, written plainly.
const maxLine = 1 << 20

// lines reads a text by lines. Both kinds of line ends will do, and the last line needs none.
type lines struct {
	r      *bufio.Reader
	number int // of the line that was read last
}

// newLines looks at what kind of file it is.
func newLines(r io.Reader) (*lines, error) {
	b := bufio.NewReaderSize(r, maxLine)
	if magic, _ := b.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) { // an error comes again with the first line
		unzipped, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		b = bufio.NewReaderSize(unzipped, maxLine)
	}
	if mark := []byte("\ufeff"); startsWith(b, mark) { // spreadsheets write one
		if _, err := b.Discard(len(mark)); err != nil {
			return nil, err
		}
	}
	return &lines{r: b}, nil
}

func startsWith(b *bufio.Reader, text []byte) bool {
	start, _ := b.Peek(len(text))
	return bytes.Equal(start, text)
}

// next returns a line without its end, valid until the next call; io.EOF after the last.
func (l *lines) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err == io.EOF && len(line) == 0 {
		return nil, io.EOF
	}
	l.number++
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, l.failed(fmt.Errorf("%w: more than %d bytes", graveler.ErrTooLarge, maxLine))
	case err != nil && err != io.EOF:
		return nil, l.failed(err)
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
}

// failed says at which line something went wrong.
func (l *lines) failed(err error) error { return fmt.Errorf("line %d: %w", l.number, err) }
