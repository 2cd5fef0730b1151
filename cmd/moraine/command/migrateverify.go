// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"

	"github.com/moraine-store/moraine/pkg/migrate"
)

// verifiedRow is a line of what verify prints.
type verifiedRow struct {
	Repository   string `json:"repository"`
	Kind         string `json:"kind"`
	Source       int64  `json:"source"`
	Target       int64  `json:"target"`
	SourceDigest string `json:"source_digest"`
	TargetDigest string `json:"target_digest"`
	Equal        bool   `json:"equal"`
	Lost         int    `json:"lost_files,omitempty"`
}

func (a *app) printVerified(v migrate.Verified) error {
	rows := func(yield func(verifiedRow, error) bool) {
		for _, r := range v.Repositories {
			for _, k := range r.Kinds {
				row := verifiedRow{r.Repository, k.Kind, k.Source, k.Target, k.SourceDigest, k.TargetDigest, k.SourceDigest == k.TargetDigest, 0}
				if k.Kind == migrate.CommittedEntries {
					row.Lost = len(r.Lost)
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
	err := table(a.printer, rows, []string{"REPOSITORY", "KIND", "SOURCE", "TARGET", "DIGEST", "EQUAL"}, func(r verifiedRow) any { r.Kind = kindName(r.Kind); return r }, func(r verifiedRow) []string {
		digest, equal := r.SourceDigest[:shortDigits], "yes"
		if r.Lost > 0 {
			equal += ", but for " + plural(r.Lost, "lost file", "lost files")
		}
		if !r.Equal {
			digest, equal = digest+" / "+r.TargetDigest[:shortDigits], a.colored(red, "no")
		}
		return []string{r.Repository, r.Kind, count(int(r.Source)), count(int(r.Target)), digest, equal}
	})
	for _, r := range v.Repositories {
		if err == nil {
			err = a.printAllLost(r.Lost)
		}
		for _, d := range r.First {
			if err == nil {
				err = a.printDifference(d)
			}
		}
		if more := r.Differences - int64(len(r.First)); more > 0 && err == nil {
			a.note("repository %s: %s more", r.Repository, plural(int(more), "difference", "differences"))
		}
	}
	return err
}

// kindName is the name of a kind in JSON.
func kindName(kind string) string { return strings.ReplaceAll(kind, " ", "_") }

func (a *app) printDifference(d migrate.Difference) error {
	if !a.printer.json {
		return a.printer.line("differs: " + d.String())
	}
	return a.printer.object(struct {
		Repository string `json:"repository"`
		Kind       string `json:"kind,omitempty"`
		keyView
		Difference string `json:"difference"`
	}{d.Repository, kindName(d.Kind), viewKey([]byte(d.Key)), d.What})
}
