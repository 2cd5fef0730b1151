// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"io"
	"strings"
)

// column is a column of a CSV listing.
type column struct {
	field field
	name  string // as the header has it
	pair  string // the name in metadata or tags
}

// columns are those of a CSV listing.
type columns struct {
	list  []column
	cells []string // memory for the cells of a line
}

// readHeader reads the line that names the columns: fields, or metadata.NAME and tags.NAME.
func readHeader(l *lines) (*columns, error) {
	line, err := l.next()
	if err == io.EOF {
		return nil, invalid("the line that names the columns is missing")
	}
	if err != nil {
		return nil, err
	}
	c := &columns{}
	if c.cells, err = splitCells(string(line), nil); err == nil {
		err = c.name()
	}
	if err != nil {
		return nil, l.failed(err)
	}
	return c, nil
}

// name makes columns of the cells of the header.
func (c *columns) name() error {
	d := draft{}
	for _, cell := range c.cells {
		col := column{field: fieldOf(cell), name: cell}
		group, pair, ok := strings.Cut(cell, ".")
		if ok {
			col.field, col.pair = fieldOf(group), pair
		}
		isPairs := col.field == metadataField || col.field == tagsField
		if col.field == 0 || isPairs != ok || isPairs && pair == "" {
			return invalid("unknown column %q", cell)
		}
		mark := func() error { return d.mark(col.field, cell) }
		if isPairs {
			mark = func() error { return d.pair(col.field, pair, "") }
		}
		if err := mark(); err != nil {
			return err
		}
		c.list = append(c.list, col)
	}
	if d.said&(1<<keyField|1<<exactKeyField) == 0 {
		return invalid("there is no column key or key_base64")
	}
	return nil
}

func (c *columns) parse(line []byte) (Item, error) {
	var err error
	if c.cells, err = splitCells(string(line), c.cells[:0]); err != nil {
		return Item{}, err
	}
	if len(c.cells) != len(c.list) {
		return Item{}, invalid("%d cells, and the header names %d columns", len(c.cells), len(c.list))
	}
	d := draft{}
	for i, col := range c.list {
		switch {
		case col.pair == "":
			err = d.set(col.field, col.name, c.cells[i])
		case c.cells[i] != "":
			err = d.pair(col.field, col.pair, c.cells[i])
		}
		if err != nil {
			return Item{}, err
		}
	}
	return d.done()
}

// splitCells appends the cells of a line of CSV, as RFC 4180 has them but for line ends inside quotes, so that a line is a line.
func splitCells(line string, cells []string) ([]string, error) {
	for more := true; more; {
		var cell string
		var err error
		if rest, ok := strings.CutPrefix(line, `"`); ok {
			cell, line, err = cutQuoted(rest)
			if err == nil && line != "" && line[0] != ',' {
				err = invalid("cell %d: there is something behind the closing quote", len(cells)+1)
			}
			line, more = strings.CutPrefix(line, ",")
		} else {
			cell, line, more = strings.Cut(line, ",")
			if strings.Contains(cell, `"`) {
				err = invalid("cell %d: a quote inside a cell without quotes", len(cells)+1)
			}
		}
		if err != nil {
			return nil, err
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

// cutQuoted reads a cell up to its closing quote. Two quotes stand for one.
func cutQuoted(text string) (cell, rest string, err error) {
	var parts strings.Builder
	for {
		before, after, ok := strings.Cut(text, `"`)
		if !ok {
			return "", "", invalid("a quoted cell does not end (a key with a line end goes into key_base64)")
		}
		if parts.Len() == 0 && !strings.HasPrefix(after, `"`) { // the usual one
			return before, after, nil
		}
		parts.WriteString(before)
		if !strings.HasPrefix(after, `"`) {
			return parts.String(), after, nil
		}
		parts.WriteByte('"')
		text = after[1:]
	}
}
