// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler/dump/dumppb"
)

// maxLineBytes bounds a line. The largest is that of a setting of 16 MiB.
const maxLineBytes = 24 << 20

// encode returns the line of a record. Left to itself, protojson adds spaces at random.
func encode(r *dumppb.DumpRecord) ([]byte, error) {
	spaced, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(r)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, spaced); err != nil {
		return nil, err
	}
	line.WriteByte('\n')
	return line.Bytes(), nil
}

// decode reads a line. Of the first one it looks at the format before anything else, so that a dump of another format is known as such.
func decode(line []byte, first bool) (*dumppb.DumpRecord, error) {
	r := &dumppb.DumpRecord{}
	if first {
		if err := unmarshal(line, r, true); err != nil {
			return nil, fmt.Errorf("%w: it does not begin with a header: %w", ErrInvalid, err)
		}
		if h := r.GetHeader(); h != nil && h.Format != Format {
			return nil, fmt.Errorf("%w: its format is %d, this program reads format %d", ErrInvalid, h.Format, Format)
		}
	}
	if err := unmarshal(line, r, false); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return r, nil
}

func unmarshal(line []byte, m proto.Message, discardUnknown bool) error {
	err := protojson.UnmarshalOptions{DiscardUnknown: discardUnknown}.Unmarshal(line, m)
	if err == nil {
		return nil
	}
	// The messages of protojson begin differently from build to build, and may quote the whole line.
	const most = 200
	text := strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return errors.New(text)
}

// newScanner reads lines with their ends. A last line without one is an error.
func newScanner(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLineBytes)
	s.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			return i + 1, data[:i+1], nil
		}
		if atEOF && len(data) > 0 {
			return 0, nil, errCutOff
		}
		return 0, nil, nil
	})
	return s
}

var errCutOff = errors.New("it was cut off")
