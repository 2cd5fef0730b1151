// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// table is rows of cells below a header, and lines below them.
type table struct {
	title  string
	header []string
	rows   [][]string
	notes  []string
}

// WriteText writes everything that people look at first: what it ran on, a table per workload with the engines side by side, and the targets.
func (d *Document) WriteText(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s\n", d.about()); err != nil {
		return err
	}
	for _, t := range d.tables() {
		if _, err := fmt.Fprintf(w, "\n%s\n\n", t.title); err != nil {
			return err
		}
		out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		row(out, t.header...)
		for _, cells := range t.rows {
			row(out, cells...)
		}
		if err := out.Flush(); err != nil {
			return err
		}
		for _, note := range t.notes {
			if _, err := fmt.Fprintln(w, note); err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteMarkdown writes the same as WriteText as a part of a page, below headings of the third level.
func (d *Document) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", strings.ReplaceAll(d.about(), "\n", "  \n"))
	for _, t := range d.tables() {
		fmt.Fprintf(&b, "\n### %s\n\n| %s |\n|%s\n", t.title, strings.Join(t.header, " | "), strings.Repeat("---|", len(t.header)))
		for _, cells := range t.rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
		if len(t.notes) > 0 {
			fmt.Fprintf(&b, "\n<details><summary>Calls and checks</summary>\n\n- %s\n\n</details>\n", strings.Join(t.notes, "\n- "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d *Document) about() string {
	m := d.Machine
	lines := []string{
		fmt.Sprintf("%s; %d cores of %s; %.1f GiB of memory; %s; %s", d.Began.UTC().Format("2006-01-02 15:04 UTC"), m.Cores, m.CPU, float64(m.MemoryBytes)/(1<<30), m.Filesystem, m.System),
		fmt.Sprintf("Setting %s, %d rounds, values of %d bytes, seed %d; took %s.", d.Setting, d.Rounds, d.ValueBytes, d.Seed, formatSeconds(d.Took)),
	}
	var versions []string
	for name, version := range d.Versions {
		versions = append(versions, name+" "+version)
	}
	slices.Sort(versions)
	lines = append(lines, "Versions: "+strings.Join(versions, ", ")+".")
	durable := map[string]bool{}
	for _, r := range d.Runs {
		if line := r.durable(); !durable[line] {
			durable[line] = true
			lines = append(lines, line)
		}
	}
	return strings.Join(append(lines, d.Notes...), "\n")
}

func (r *Run) durable() string {
	var settings []string
	for name, value := range r.Durability {
		settings = append(settings, name+" "+value)
	}
	slices.Sort(settings)
	return "Durability of " + r.Engine + ": " + strings.Join(settings, ", ") + "."
}

// tables are one per workload and variant, then the targets.
func (d *Document) tables() []table {
	var titles []string
	for _, r := range d.Runs {
		if !slices.Contains(titles, r.Title()) {
			titles = append(titles, r.Title())
		}
	}
	var all []table
	for _, title := range titles {
		var runs []*Run
		for _, r := range d.Runs {
			if r.Title() == title {
				runs = append(runs, r)
			}
		}
		all = append(all, sideBySide(title, runs))
	}
	if len(d.Targets) > 0 {
		all = append(all, targetTable(d.Targets))
	}
	return all
}

// sideBySide puts a figure in each row and an engine in each column. References are in brackets.
func sideBySide(title string, runs []*Run) table {
	t := table{title: title, header: []string{"metric"}}
	var ids []string
	cells := map[string][]string{}
	last := -1 // where the row before is: what one engine alone has stays next to it
	put := func(id string, column int, text string) {
		at := slices.Index(ids, id)
		if at < 0 {
			at = last + 1
			ids = slices.Insert(ids, at, id)
			cells[id] = slices.Repeat([]string{"–"}, len(runs))
		}
		last = at
		cells[id][column] = text
	}
	for i, r := range runs {
		last = -1
		t.header = append(t.header, r.Engine)
		for _, m := range r.Metrics {
			id := m.ID()
			if m.Reference {
				id = "[" + id + "]"
			}
			put(id, i, m.Format())
		}
		if r.Memory.PeakBytes > 0 {
			put("peak of anonymous memory", i, Bytes.Format(float64(r.Memory.PeakBytes)))
		}
		for _, c := range r.Counts {
			t.notes = append(t.notes, c.text(r.Engine))
		}
		if len(r.Checked) > 0 {
			t.notes = append(t.notes, "Checked on "+r.Engine+": "+strings.Join(r.Checked, "; ")+".")
		}
		if r.Error != "" {
			t.notes = append(t.notes, "FAILED on "+r.Engine+": "+r.Error)
		}
	}
	for _, id := range ids {
		t.rows = append(t.rows, append([]string{id}, cells[id]...))
	}
	return t
}

// text shows what was asked for on one line.
func (c Counts) text(engine string) string {
	var calls []string
	for _, name := range slices.Sorted(maps.Keys(c.Calls)) {
		calls = append(calls, name+" "+Count.Format(float64(c.Calls[name])))
	}
	return fmt.Sprintf("Calls on %s, %s: %s.", engine, c.Part, strings.Join(calls, ", "))
}

func targetTable(verdicts []Verdict) table {
	t := table{title: "Targets", header: []string{"target", "workload", "engine", "figure", "aim", ""}}
	for _, v := range verdicts {
		figure, met := "–", "not measured"
		if v.Measured {
			figure, met = v.Unit.Format(v.Figure), "missed"
			if v.Min != v.Max {
				figure += fmt.Sprintf(" (%s–%s)", v.Unit.Format(v.Min), v.Unit.Format(v.Max))
			}
			if v.Met {
				met = "met"
			}
		}
		aim := ""
		if v.AtLeast != nil {
			aim = "≥ " + v.Unit.Format(*v.AtLeast)
		} else if v.AtMost != nil {
			aim = "≤ " + v.Unit.Format(*v.AtMost)
		}
		t.rows = append(t.rows, []string{v.Target + ": " + v.Metric, v.Workload, v.Engine, figure, aim, met})
	}
	return t
}
