// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moraine-store/moraine/benchmarks/result"
)

// What stands between these two lines of a page is written by the suite.
const (
	readmeBegin = "<!-- figures: begin -->\n"
	readmeEnd   = "<!-- figures: end -->\n"
)

// Refresh replaces the figures of a page, which are between two lines, by those of a document and by its plots, which are in a directory.
func Refresh(page string, d *result.Document, plots []string, dir string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, rest, begins := bytes.Cut(text, []byte(readmeBegin))
	_, tail, ends := bytes.Cut(rest, []byte(readmeEnd))
	if !begins || !ends {
		return fmt.Errorf("%s: figures go between the lines %q and %q, which are not there", page, readmeBegin, readmeEnd)
	}
	relative, err := filepath.Rel(filepath.Dir(page), dir)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(head)
	b.WriteString(readmeBegin + "\n")
	for _, name := range plots {
		fmt.Fprintf(&b, "![%s](%s/%s.svg)\n\n", name, filepath.ToSlash(relative), name)
	}
	if err := d.WriteMarkdown(&b); err != nil {
		return err
	}
	b.WriteString("\n" + readmeEnd)
	b.Write(tail)
	return os.WriteFile(page, b.Bytes(), 0o644)
}
