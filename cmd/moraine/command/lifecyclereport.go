// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// planned is what a pass would remove.
type planned struct {
	source dispatch.Source
	item   dispatch.Item
}

func (p planned) view() any {
	return struct {
		Repository graveler.RepositoryID `json:"repository"`
		Branch     graveler.BranchID     `json:"branch"`
		keyView
		Version string    `json:"version,omitempty"`
		Action  string    `json:"action"`
		Rule    string    `json:"rule"`
		Due     time.Time `json:"due"`
	}{
		p.source.Repository, p.source.Branch, viewKey(graveler.Key(p.item.LogicalKey)), p.item.VersionID, p.item.Action.Kind.String(), p.item.Action.Rule.ID, p.item.Due.UTC(),
	}
}

func (p planned) cells() []string {
	return []string{
		sourceText(p.source), p.item.Action.Kind.String(), escape(p.item.Action.Rule.ID), formatTime(p.item.Due), orDash(p.item.VersionID), escape(p.item.LogicalKey),
	}
}

func sourceText(s dispatch.Source) string { return string(s.Repository) + "/" + string(s.Branch) }

// printPass prints what a pass did, and returns what went wrong.
func (a *app) printPass(r *dailyrun.Report, failure error) error {
	if r == nil {
		return failure
	}
	if err := a.printReportOf(r); err != nil {
		return errors.Join(passFailure(r, failure), err)
	}
	return a.conclude(r, failure)
}

// conclude says what a pass left out and how it went, and returns what went wrong: its error, or that something is blocked.
func (a *app) conclude(r *dailyrun.Report, failure error) error {
	var blocked []string
	over := false
	for _, s := range r.Sources {
		over = over || s.OverBudget
		if s.Skipped != "" {
			a.note("%s is left out: %s", sourceText(s.Source), s.Skipped)
		}
		switch {
		case s.OverBudget && r.DryRun:
			a.note("%s: the event budget is used up: there may be more", sourceText(s.Source))
		case s.OverBudget:
			a.note("%s: the event budget is used up: the next pass goes on there", sourceText(s.Source))
		}
		if s.Blocked > 0 {
			blocked = append(blocked, sourceText(s.Source))
		}
	}
	switch {
	case r.CutOff && r.DryRun:
		a.note("it ended early: there may be more")
	case r.CutOff:
		a.note("the pass ended early: the next one goes on there")
	case r.DryRun && len(r.Outcomes) == 0 && len(blocked) == 0 && !over:
		a.note("nothing is due of what is committed")
	}
	a.note("%s", r.Heartbeat())
	if failure == nil && len(blocked) > 0 {
		failure = hinted{fmt.Errorf("%w: %s", errBlocked, strings.Join(blocked, ", ")), "'moraine lifecycle status' says by what"}
	}
	return passFailure(r, failure)
}

// outcomes are what came of actions, by repository, kind and outcome.
func outcomes(r *dailyrun.Report) []dailyrun.Dispatched {
	return slices.SortedFunc(maps.Keys(r.Outcomes), func(a, b dailyrun.Dispatched) int {
		return cmp.Or(cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Outcome, b.Outcome))
	})
}

type outcomeView struct {
	Repository graveler.RepositoryID `json:"repository"`
	Action     string                `json:"action"`
	Outcome    string                `json:"outcome"`
	Number     int                   `json:"number"`
}

type passSourceView struct {
	Repository   graveler.RepositoryID `json:"repository"`
	Branch       graveler.BranchID     `json:"branch"`
	Skipped      string                `json:"skipped,omitempty"`
	BlockedLanes int                   `json:"blocked_lanes"`
	Events       int                   `json:"events"`
	Walked       bool                  `json:"walked"`
	OverBudget   bool                  `json:"over_budget"`
	Error        string                `json:"error,omitempty"`
}

// printReportOf prints the outcomes, or all of the report as one object.
func (a *app) printReportOf(r *dailyrun.Report) error {
	view := struct {
		Time          time.Time        `json:"time"`
		TookSeconds   float64          `json:"took_seconds"`
		WaitedSeconds float64          `json:"waited_seconds"`
		CutOff        bool             `json:"cut_off"`
		Shards        int              `json:"shards"`
		Errors        int              `json:"errors"`
		Outcomes      []outcomeView    `json:"outcomes"`
		Sources       []passSourceView `json:"sources"`
	}{r.Now, r.Took.Seconds(), r.Waited.Seconds(), r.CutOff, len(r.Shards), r.Errors, []outcomeView{}, []passSourceView{}}
	for _, d := range outcomes(r) {
		view.Outcomes = append(view.Outcomes, outcomeView{d.Repository, d.Kind.String(), d.Outcome.String(), r.Outcomes[d]})
	}
	if !a.printer.json {
		return table(a.printer, func(yield func(outcomeView, error) bool) {
			for _, o := range view.Outcomes {
				if !yield(o, nil) {
					return
				}
			}
		}, []string{"REPOSITORY", "ACTION", "OUTCOME", "NUMBER"}, nil, func(o outcomeView) []string {
			return []string{string(o.Repository), o.Action, o.Outcome, count(o.Number)}
		})
	}
	for _, s := range r.Sources {
		one := passSourceView{Repository: s.Repository, Branch: s.Branch, Skipped: s.Skipped, BlockedLanes: s.Blocked, Events: s.Events, Walked: s.Walked, OverBudget: s.OverBudget}
		if s.Err != nil {
			one.Error = oneLine(s.Err.Error())
		}
		view.Sources = append(view.Sources, one)
	}
	return a.printer.object(view)
}

// notInNames is what names of workers do not have.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// hostName is what the ID of a worker begins with, so that people know it; "" where the machine has no name.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "" // the rest of the ID will do
	}
	name = strings.TrimLeft(notInNames.ReplaceAllString(name, "-"), "-._")
	return name[:min(len(name), 64)]
}
