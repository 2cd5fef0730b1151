// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/migrate"
)

func (a *app) printMigrationStatus(s migrate.Status) error {
	rows := func(yield func(migrate.RepositoryStatus, error) bool) {
		for _, r := range s.Repositories {
			if !yield(r, nil) {
				return
			}
		}
	}
	err := table(a.printer, rows, []string{"REPOSITORY", "STATE", "ITEMS", "BEHIND"}, func(r migrate.RepositoryStatus) any {
		return struct {
			Repository string `json:"repository"`
			Done       bool   `json:"done"`
			Items      uint64 `json:"items"`
			Table      string `json:"table,omitempty"`
			Branch     string `json:"branch,omitempty"`
			keyView
		}{r.Repository, r.Done, r.Items, r.Table, r.Branch, viewKey([]byte(r.Key))}
	}, func(r migrate.RepositoryStatus) []string {
		state := "under way"
		if r.Done {
			state = "complete"
		}
		return []string{r.Repository, state, count(int(r.Items)), behind(r)}
	})
	complete := 0
	for _, r := range s.Repositories {
		if r.Done {
			complete++
		}
		if err == nil {
			err = a.printAllLost(r.Lost)
		}
	}
	if err != nil {
		return err
	}
	underWay := len(s.Repositories) - complete
	view := struct {
		Source     string    `json:"source"`
		Began      time.Time `json:"began"`
		Complete   int       `json:"complete"`
		UnderWay   int       `json:"under_way"`
		Planned    int       `json:"planned,omitempty"`
		NotStarted int       `json:"not_begun"`
	}{s.Source, s.Began, complete, underWay, s.Planned, max(s.Planned-len(s.Repositories), 0)}
	of := ""
	if s.Planned > 0 {
		of = " of " + count(s.Planned)
	}
	return a.printer.record(view, "From database", s.Source, "Begun", formatTime(s.Began), "Repositories complete", count(complete)+of,
		"Under way", count(underWay), "Not begun", count(view.NotStarted))
}

// behind names the row up to which a repository has come, as BRANCH:KEY where it belongs to a branch.
func behind(r migrate.RepositoryStatus) string {
	name := escape(r.Branch)
	switch {
	case r.Table == "":
		return "-"
	case r.Branch != "" && r.Key != "":
		name += ":" + escape(r.Key)
	case r.Branch == "":
		name = escape(r.Key)
	}
	return strings.TrimSuffix(r.Table+" "+name, " ")
}
