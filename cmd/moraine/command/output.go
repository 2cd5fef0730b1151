// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
)

// rowsAligned is how many rows of a table are aligned with each other. More are not kept in memory.
const rowsAligned = 1000

// printer writes results: for people, or as one JSON object per line. A write that fails is reported by flush.
type printer struct {
	w    *bufio.Writer
	json bool
}

func newPrinter(w io.Writer) *printer { return &printer{w: bufio.NewWriter(w)} }

func (p *printer) flush() error {
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	return nil
}

func (p *printer) line(text string) error {
	_, err := p.w.WriteString(text + "\n")
	return err
}

func (p *printer) object(v any) error {
	e := json.NewEncoder(p.w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table prints a list as it comes: as rows below a header, or as JSON objects. An empty list prints nothing.
func table[T any](p *printer, items iter.Seq2[T, error], header []string, view func(T) any, cells func(T) []string) error {
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	rows := 0
	for item, err := range items {
		if err == nil && p.json {
			err = p.object(view(item))
		} else if err == nil {
			if rows == 0 {
				writeRow(t, header)
			}
			writeRow(t, cells(item))
			if rows++; rows%rowsAligned == 0 {
				err = t.Flush()
			}
		}
		if err != nil {
			// What came before the error is shown; the error says that it is not all.
			_ = t.Flush()
			return err
		}
	}
	return t.Flush()
}

// writeRow adds a row. The writer keeps it, and reports what goes wrong when it is flushed.
func writeRow(t *tabwriter.Writer, cells []string) {
	_, _ = io.WriteString(t, strings.Join(cells, "\t")+"\n")
}

// record prints one thing: as lines of names and values, which follow each other in fields, or as a JSON object.
func (p *printer) record(view any, fields ...string) error {
	if p.json {
		return p.object(view)
	}
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for i := 0; i < len(fields); i += 2 {
		writeRow(t, []string{fields[i] + ":", fields[i+1]})
	}
	return t.Flush()
}

// done prints what a command did that has nothing to say to people: view, unless there was an error.
func (a *app) done(err error, view func() any) error {
	if err != nil || !a.printer.json {
		return err
	}
	return a.printer.object(view())
}

// limited yields the first n items, all where n is 0.
func limited[T any](items iter.Seq2[T, error], n int) iter.Seq2[T, error] {
	if n == 0 {
		return items
	}
	return func(yield func(T, error) bool) {
		left := n
		for item, err := range items {
			left--
			if !yield(item, err) || left == 0 {
				return
			}
		}
	}
}
