// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// ruleAction is one thing that a rule asks for.
type ruleAction struct{ lifecycle.Action }

func (r ruleAction) view() any {
	view := struct {
		Rule            string     `json:"rule"`
		Enabled         bool       `json:"enabled"`
		Filter          filterView `json:"filter"`
		Action          string     `json:"action"`
		Days            *int       `json:"days,omitempty"`
		Date            time.Time  `json:"date,omitzero"`
		NewerNoncurrent int        `json:"newer_noncurrent_versions,omitempty"`
	}{r.Rule.ID, r.Rule.Enabled, viewFilter(r.Rule.Filter), r.Kind.String(), nil, r.Date, r.NewerNoncurrent}
	if r.Kind.Replay() {
		view.Days = &r.Delay
	}
	return view
}

type filterView struct {
	Prefix          *string           `json:"prefix,omitempty"`
	Tags            map[string]string `json:"tags,omitempty"`
	SizeGreaterThan *int64            `json:"size_greater_than,omitempty"`
	SizeLessThan    *int64            `json:"size_less_than,omitempty"`
}

func viewFilter(f lifecycle.Filter) filterView {
	view := filterView{Prefix: f.Prefix, SizeGreaterThan: f.SizeGreaterThan, SizeLessThan: f.SizeLessThan}
	for _, t := range f.Tags {
		if view.Tags == nil {
			view.Tags = map[string]string{}
		}
		view.Tags[t.Key] = t.Value
	}
	return view
}

func (r ruleAction) cells() []string {
	status := "disabled"
	if r.Rule.Enabled {
		status = "enabled"
	}
	return []string{escape(r.Rule.ID), status, filterText(r.Rule.Filter), r.Kind.String(), whenText(r.Action)}
}

// filterText is a filter in one line.
func filterText(f lifecycle.Filter) string {
	var all []string
	if f.Prefix != nil && *f.Prefix != "" {
		all = append(all, "prefix "+strconv.Quote(*f.Prefix))
	}
	for _, t := range f.Tags {
		all = append(all, "tag "+escape(t.Key)+"="+escape(t.Value))
	}
	if f.SizeGreaterThan != nil {
		all = append(all, fmt.Sprintf("more than %d B", *f.SizeGreaterThan))
	}
	if f.SizeLessThan != nil {
		all = append(all, fmt.Sprintf("less than %d B", *f.SizeLessThan))
	}
	if len(all) == 0 {
		return "all objects"
	}
	return strings.Join(all, ", ")
}

// whenText says when an action is due.
func whenText(a lifecycle.Action) string {
	var all []string
	switch {
	case a.Kind.Replay():
		all = append(all, "after "+plural(a.Delay, "day", "days"))
	case !a.Date.IsZero():
		all = append(all, "from "+a.Date.UTC().Format(time.DateOnly))
	default:
		all = append(all, "at once")
	}
	if a.NewerNoncurrent > 0 {
		all = append(all, "beyond "+plural(a.NewerNoncurrent, "newer one", "newer ones"))
	}
	return strings.Join(all, ", ")
}
