// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moraine-store/moraine/pkg/migrate"
)

// plannedRepository, leftBehind and problem are lines of what plan prints.
type plannedRepository struct {
	Repository string `json:"repository"`
	Branches   int64  `json:"branches"`
	Tags       int64  `json:"tags"`
	Commits    int64  `json:"commits"`
	Staged     int64  `json:"staged_entries"`
	Trees      int64  `json:"trees_to_convert,omitempty"`
	Store      string `json:"in_store,omitempty"`           // what earlier runs have brought: complete or begun
	Bare       bool   `json:"empty_first_commit,omitempty"` // it is given one
}

type leftBehind struct {
	Table string `json:"table"`
	Owner string `json:"left_behind"`
	Rows  int64  `json:"rows"`
	What  string `json:"what,omitempty"`
}

type planProblem struct {
	Table      string `json:"table,omitempty"`
	Repository string `json:"repository,omitempty"`
	Key        string `json:"key,omitempty"`
	Problem    string `json:"problem"`
}

func (a *app) printPlan(p migrate.Plan) error {
	rows := func(yield func(plannedRepository, error) bool) {
		for _, r := range p.Repositories {
			row := plannedRepository{r.Repository, r.Branches, r.Tags, r.Commits, r.Staged, r.Trees, "", slices.Contains(p.Bare, r.Repository)}
			switch {
			case r.There:
				row.Store = "complete"
			case r.Begun:
				row.Store = "begun"
			}
			if !yield(row, nil) {
				return
			}
		}
	}
	err := table(a.printer, rows, []string{"REPOSITORY", "BRANCHES", "TAGS", "COMMITS", "STAGED", "IN STORE"}, func(r plannedRepository) any { return r }, func(r plannedRepository) []string {
		return []string{escape(r.Repository), count(int(r.Branches)), count(int(r.Tags)), count(int(r.Commits)), count(int(r.Staged)), orDash(r.Store)}
	})
	for _, l := range p.Left {
		if err == nil {
			text := "left behind: " + l.Table + ", " + plural(int(l.Rows), "row", "rows")
			if l.Owner != "" {
				text += " of " + escape(l.Owner) + ": " + escape(l.What)
			}
			err = a.planLine(leftBehind{l.Table, l.Owner, l.Rows, l.What}, text)
		}
	}
	if p.MoreLeft > 0 {
		a.note("left behind: what %s had", plural(p.MoreLeft, "more owner", "more owners"))
	}
	for _, l := range p.Lost {
		if err == nil {
			err = a.printLost(l)
		}
	}
	if p.MoreLost > 0 {
		a.note("lost: %s more", plural(p.MoreLost, "file", "files"))
	}
	for _, name := range p.Unlisted {
		a.note("repository %s has too many trees to look at all of them: only the files of those that branches and tags show were looked for", escape(name))
	}
	for _, name := range p.Bare {
		if err == nil && !a.printer.json {
			err = a.printer.line("given an empty first commit: " + escape(name))
		}
	}
	for _, problem := range p.Problems {
		if err == nil {
			err = a.planLine(viewProblem(problem), "refused: "+shorten(oneLine(problem.Error())))
		}
	}
	if p.MoreProblems > 0 {
		a.note("refused: %s more", plural(p.MoreProblems, "row", "rows"))
	}
	if err != nil {
		return err
	}
	trees := int64(0)
	for _, r := range p.Repositories {
		trees += r.Trees
	}
	view := struct {
		Rows          int64   `json:"rows"`
		RowsThere     int64   `json:"rows_there,omitempty"`
		Bytes         int64   `json:"bytes"`
		Layout        string  `json:"layout"`
		SchemaVersion int64   `json:"schema_version"`
		Problems      int     `json:"problems"`
		Trees         int64   `json:"trees_to_convert,omitempty"`
		Seconds       float64 `json:"estimated_seconds"`
	}{p.Rows, p.RowsThere, p.Bytes, p.Layout, p.SchemaVersion, len(p.Problems) + p.MoreProblems, trees, p.Estimate.Seconds()}
	if len(p.Repositories) == 0 {
		a.note("there are no repositories")
	}
	fields := []string{"Source", fmt.Sprintf("%s, schema version %d", p.Layout, p.SchemaVersion), "Rows to carry over", count(int(p.Rows))}
	if p.RowsThere > 0 {
		fields = append(fields, "Rows that are there", count(int(p.RowsThere)))
	}
	fields = append(fields, "Size of the tables", formatSize(p.Bytes))
	if trees > 0 {
		fields = append(fields, "Trees to convert", count(int(trees)))
	}
	return a.printer.record(view, append(fields, "Time it may take", plannedTime(p.Estimate))...)
}

// refusal is the error of a plan that was shown. What it is says the first thing that is refused, as for a run.
type refusal struct {
	error
	n int
}

func refusedBy(p migrate.Plan) error {
	err := p.Err()
	if err == nil {
		return nil
	}
	return refusal{err, len(p.Problems) + p.MoreProblems}
}

func (r refusal) Error() string {
	return "a run would be refused for " + plural(r.n, "reason", "reasons")
}

func (r refusal) Unwrap() error { return r.error }

// printLost names a range file that is left out.
func (a *app) printLost(l migrate.Lost) error {
	view := struct {
		Repository string   `json:"repository"`
		Lost       string   `json:"lost"`
		Reason     string   `json:"reason"`
		Entries    int64    `json:"entries,omitempty"`
		Commits    int      `json:"commits,omitempty"`
		Refs       []string `json:"shown_by,omitempty"`
	}{l.Repository, l.File, l.Reason, l.Entries, l.Commits, l.Refs}
	return a.planLine(view, "lost: "+shorten(oneLine(l.String())))
}

func (a *app) planLine(view any, text string) error {
	if a.printer.json {
		return a.printer.object(view)
	}
	return a.printer.line(text)
}

func viewProblem(err error) planProblem {
	if row := (*migrate.RowError)(nil); errors.As(err, &row) {
		return planProblem{row.Table, strings.ToValidUTF8(row.Repository, "\uFFFD"), strings.ToValidUTF8(row.Key, "\uFFFD"), row.Reason.Error()}
	}
	return planProblem{Problem: err.Error()}
}
